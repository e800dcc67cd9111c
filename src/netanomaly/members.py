"""Training the members of the model one after the other, and settling on validation which of them see the levels.

Where a metric stands tells much in the network that was learnt from and misleads in another; how it moves is true of
both. Which of the two the user's split asks about, its validation part knows: members are trained that see the levels
and members that do not, and together or alone they answer for the rows of the validation part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.build import build_recipe
from netanomaly.build_members import build_member, build_metric_dropout, build_views
from netanomaly.config import Config
from netanomaly.data.batches import IGNORED, ChannelSegment, channel_segment
from netanomaly.data.channels import Channels
from netanomaly.data.ingest import NO_DATA
from netanomaly.data.splits import TRAIN, VALIDATION
from netanomaly.errors import TrainingError
from netanomaly.evaluation.metrics import macro_f1
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.ensemble import Ensemble
from netanomaly.prepare import Prepared
from netanomaly.training import trainer
from netanomaly.training.engine import segment_logits

Levels = Literal["hidden", "seen", "both"]
Initial = Callable[[NetworkAnomalyClassifier, int], None]
"""Gives a fresh member, the i-th, the weights that it starts from."""
MARGIN = 0.01
"""By how much members of one kind have to be better on validation than both together: less is within the noise."""


@dataclass(frozen=True)
class Outcome:
    """What training came to.

    Attributes:
        members: of each member that is kept.
        levels: what `channels.levels` came to.
        validation_macro_f1: of all members kept, together.
        candidates: macro-F1 on validation of what `levels` was chosen from.
        seconds: of all members trained.
        parameters: of all members kept.
    """

    members: tuple[trainer.Outcome, ...]
    levels: Levels
    validation_macro_f1: float
    candidates: Mapping[Levels, float]
    seconds: float
    parameters: int
    stopped_by: KeyboardInterrupt | TrainingError | None = None

    def facts(self) -> dict[str, Any]:
        """As plain values for the bundle."""
        return {
            "members": [
                {
                    "kept_epoch": member.kept_epoch,
                    "epochs": member.epochs,
                    "validation_macro_f1": member.validation_macro_f1,
                }
                for member in self.members
            ],
            "levels": dict(self.candidates),
            "validation_macro_f1": self.validation_macro_f1,
            "seconds": round(self.seconds, 1),
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class Learnt:
    """Trained members as one model, and the config that builds it."""

    config: Config
    model: Ensemble
    outcome: Outcome


@dataclass(frozen=True)
class _Member:
    model: NetworkAnomalyClassifier
    view: list[int] | None
    outcome: trainer.Outcome


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows of a part.

    Attributes:
        segments: those that hold such rows, with targets there only.
        series: name of the series of each.
        masks: which rows of each segment, (T,).
        truth: their labels, (rows,).
        names: of the classes, (K,).
    """

    segments: list[ChannelSegment]
    series: list[str]
    masks: list[NDArray[np.bool_]]
    truth: NDArray[np.object_]
    names: NDArray[np.object_]

    def seen(self, view: list[int] | None) -> LabelledRows:
        """With the channels of a view alone."""
        if view is None:
            return self
        return replace(self, segments=[replace(one, channels=one.channels[:, view]) for one in self.segments])

    def score(self, model: NetworkAnomalyClassifier | Ensemble, device: torch.device) -> float:
        """A model's macro-F1 on these rows."""
        logits = segment_logits(model, self.segments, len(self.names), model.history_rows, device)
        predicted = [
            np.where(segment.valid[mask], self.names[rows[mask].argmax(axis=1)], NO_DATA)
            for rows, segment, mask in zip(logits, self.segments, self.masks, strict=True)
        ]
        return macro_f1(self.truth, np.concatenate(predicted))


def fit_members(
    prepared: Prepared,
    channels: Channels,
    classes: tuple[str, ...],
    device: torch.device,
    log_path: Path,
    initial: Initial | None = None,
) -> Learnt:
    """Train as many members as the config says of each kind that may be wanted, and keep what validation prefers.

    Args:
        initial: None: random weights, or a language model's pretrained ones.

    Raises:
        KeyboardInterrupt, TrainingError: training was stopped before there was an epoch to keep. Later, the outcome
            holds what stopped it, and the members are those that were done.
    """
    config = prepared.config
    workshop = _Workshop(prepared, channels, classes, device, log_path, initial)
    found, seconds, stopped_by = _train_all(workshop, config)
    candidates: dict[Levels, list[_Member]] = dict(found)
    if len(found) == 2:
        candidates["both"] = [member for some in found.values() for member in some]
    models = {
        levels: Ensemble([member.model for member in some], [member.view for member in some]).to(device)
        for levels, some in candidates.items()
    }
    scores = {levels: workshop.validation.score(model, device) for levels, model in models.items()}
    levels = preferred(scores) if config.channels.levels == "auto" else list(scores)[-1]  # all that was asked for
    kept = candidates[levels]
    outcome = Outcome(
        tuple(member.outcome for member in kept),
        levels,
        scores[levels],
        scores,
        seconds,
        sum(parameter.numel() for parameter in models[levels].parameters()),
        stopped_by,
    )
    each = len(kept) // (2 if levels == "both" else 1)
    return Learnt(_settled(config, levels, each), models[levels], outcome)


def preferred(scores: Mapping[Levels, float]) -> Levels:
    """Both kinds of members together, unless one kind alone is better by more than the margin."""
    best = max(scores, key=lambda levels: scores[levels])
    if "both" in scores and scores[best] <= scores["both"] + MARGIN:
        return "both"
    return best


def member_seed(seed: int, place: int) -> int:
    """The seed of a member's draws: that of the config for the first, for the others what NumPy derives from it.

    32 bits, as PyTorch's generator on the CPU looks at no more of a seed.
    """
    return seed if place == 0 else int(np.random.SeedSequence(seed).generate_state(place)[-1])


class _Workshop:
    """What every member is trained with."""

    def __init__(
        self,
        prepared: Prepared,
        channels: Channels,
        classes: tuple[str, ...],
        device: torch.device,
        log_path: Path,
        initial: Initial | None,
    ) -> None:
        self.config, self.classes, self.device, self.log_path = prepared.config, classes, device, log_path
        self.channels, self.initial = channels.count, initial
        self.training, self.validation = (
            labelled_rows(prepared, channels, part, classes) for part in (TRAIN, VALIDATION)
        )
        counts = prepared.report["train"]["classes"]
        self.counts = torch.tensor([counts.get(name, 0) for name in classes], dtype=torch.float64)

    def train(self, kind: Levels, place: int, total: int) -> _Member:
        """One member; `place` of `total` says which draws are its own."""
        (view,) = build_views(_settled(self.config, kind, 1), self.channels)
        training, validation = self.training.seen(view), self.validation.seen(view)
        seed = member_seed(self.config.seed, place)
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed)
            seen = self.channels if view is None else len(view)
            fresh = self.initial is None
            among = place % self.config.model.members  # of its kind
            model = build_member(self.config, among, seen, len(self.classes), pretrained=fresh).to(self.device)
            if self.initial is not None:
                self.initial(model, place)
            outcome = trainer.fit(
                model,
                training.segments,
                lambda: validation.score(model, self.device),
                self.counts,
                model.history_rows,
                build_recipe(self.config),
                seed=seed,
                device=self.device,
                log_path=self.log_path,
                member=place + 1,
                members=total,
                hide=build_metric_dropout(self.config, self.channels),
            )
        return _Member(model, view, outcome)


def _train_all(
    workshop: _Workshop, config: Config
) -> tuple[dict[Levels, list[_Member]], float, KeyboardInterrupt | TrainingError | None]:
    """Members of each kind, as many of one as of the other; the seconds it took; what stopped it early."""
    found: dict[Levels, list[_Member]] = {kind: [] for kind in _kinds(config)}
    wanted = [kind for kind in found for _ in range(config.model.members)]
    seconds, stopped_by = 0.0, None
    for place, kind in enumerate(wanted):
        try:
            member = workshop.train(kind, place, len(wanted))
        except (KeyboardInterrupt, TrainingError) as stop:
            if place == 0:
                raise
            stopped_by = stop
            break
        stopped_by = member.outcome.stopped_by
        seconds += member.outcome.seconds
        if stopped_by is None or place == 0:  # else a half-learnt one beside whole ones
            found[kind].append(member)
        if stopped_by is not None:
            break
    count = len(next(iter(found.values())))
    return {kind: some for kind, some in found.items() if len(some) == count}, seconds, stopped_by


def _kinds(config: Config) -> list[Levels]:
    """The kinds of members to train."""
    match config.channels.levels:
        case "hidden":
            return ["hidden"]
        case "seen":
            return ["seen"]
        case _:
            return ["hidden", "seen"] if config.channels.may_hide else ["seen"]


def _settled(config: Config, levels: Levels, members: int) -> Config:
    """The config of so many members of each kind."""
    return config.model_copy(
        update={
            "channels": config.channels.model_copy(update={"levels": levels}),
            "model": config.model.model_copy(update={"members": members}),
        }
    )


def labelled_rows(prepared: Prepared, channels: Channels, part: int, classes: Sequence[str]) -> LabelledRows:
    """The labelled rows of a part, from the segments that hold some."""
    number = {name: i for i, name in enumerate(classes)}
    segments, series, masks, truth = [], [], [], []
    for segment, mask in zip(prepared.grid.segments, prepared.labelled(part), strict=True):
        if mask.any():
            targets = np.array([number.get(name, IGNORED) for name in segment.labels], dtype=np.int64)
            targets[~mask] = IGNORED
            segments.append(channel_segment(segment, channels, targets))
            series.append(segment.series)
            masks.append(mask)
            truth.append(segment.labels[mask])
    return LabelledRows(segments, series, masks, np.concatenate(truth), np.array(classes, dtype=object))
