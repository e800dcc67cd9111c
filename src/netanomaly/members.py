"""Training the members of the model one after the other, and settling on validation which of them see the levels.

Where a metric stands tells much in the network that was learnt from and misleads in another; how it moves is true of
both. Which of the two the user's split asks about, its validation part knows: members are trained that see the levels
and members that do not, and together or alone they answer for the rows of the validation part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from netanomaly.build import build_recipe
from netanomaly.build_members import build_member, build_metric_dropout, build_views
from netanomaly.checkpoints import Checkpoints
from netanomaly.config import Config
from netanomaly.data.channels import Channels
from netanomaly.data.splits import TRAIN, VALIDATION
from netanomaly.errors import TrainingError
from netanomaly.interrupts import Terminated
from netanomaly.labelled_rows import labelled_rows
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.ensemble import Ensemble
from netanomaly.prepare import Prepared
from netanomaly.training import trainer
from netanomaly.training.extremes import most_extreme
from netanomaly.training.recipe import OnEpoch
from netanomaly.training.recipe import Outcome as MemberOutcome
from netanomaly.training.world import ALONE, World

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

    members: tuple[MemberOutcome, ...]
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
    outcome: MemberOutcome


def fit_members(
    prepared: Prepared,
    channels: Channels,
    classes: tuple[str, ...],
    device: torch.device,
    log_path: Path,
    initial: Initial | None = None,
    checkpoints: Checkpoints | None = None,
    on_epoch: OnEpoch | None = None,
    world: World = ALONE,
) -> Learnt:
    """Train as many members as the config says of each kind that may be wanted, and keep what validation prefers.

    Args:
        initial: None: random weights, or a language model's pretrained ones.
        checkpoints: to go on from, and to write; None: none.
        on_epoch: is told of every epoch of every member.
        world: this process and those that it trains with; all come to the same.

    Raises:
        KeyboardInterrupt, TrainingError: training was stopped before there was an epoch to keep. Later, the outcome
            holds what stopped it, and the members are those that were done.
    """
    config = prepared.config
    workshop = _Workshop(prepared, channels, classes, device, log_path, initial, checkpoints, on_epoch, world)
    found, seconds, stopped_by = _train_all(workshop, config)
    candidates: dict[Levels, list[_Member]] = dict(found)
    if len(found) == 2:
        candidates["both"] = [member for some in found.values() for member in some]
    models = {
        levels: Ensemble([member.model for member in some], [member.view for member in some]).to(device)
        for levels, some in candidates.items()
    }
    scores = {levels: workshop.validation.score(model, device, world) for levels, model in models.items()}
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
        checkpoints: Checkpoints | None,
        on_epoch: OnEpoch | None,
        world: World,
    ) -> None:
        self.config, self.classes, self.device, self.log_path = prepared.config, classes, device, log_path
        self.on_epoch = on_epoch
        self.channels, self.initial, self.checkpoints, self.world = channels.count, initial, checkpoints, world
        self.metrics = [metric.name for metric in prepared.config.data.metrics]
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
        kept, world = self.checkpoints, self.world
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed)
            seen = self.channels if view is None else len(view)
            fresh = self.initial is None
            among = place % self.config.model.members  # of its kind
            model = build_member(self.config, among, seen, len(self.classes), pretrained=fresh).to(self.device)
            if self.initial is not None:
                self.initial(model, place)
            if kept is not None and (done := kept.kept(place + 1, model, world)) is not None:
                if world.is_first:
                    trainer.write_log(self.log_path, done.records)
                return _Member(model, view, done)
            outcome = trainer.fit(
                model,
                training.segments,
                lambda: validation.score(model, self.device, world),
                self.counts,
                model.history_rows,
                build_recipe(self.config),
                seed=seed,
                device=self.device,
                log_path=self.log_path,
                member=place + 1,
                members=total,
                hide=build_metric_dropout(self.config, self.channels),
                checkpoint=None if kept is None else kept.part(place + 1),
                extremes=lambda batch: most_extreme(batch, training.series, self.metrics),
                on_epoch=self.on_epoch,
                world=world,
            )
            if kept is not None and outcome.stopped_by is None and world.is_first:
                kept.keep(place + 1, model, outcome)
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
        except Terminated:
            raise
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
