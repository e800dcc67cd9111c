"""A trained bundle's decisions are settled on the validation rows: calibration first, then the alarms."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.alarms.tuning import Tuned, tune
from netanomaly.build import build_spans
from netanomaly.build_members import without_levels
from netanomaly.bundle import Bundle
from netanomaly.calibration import as_logits, fit_calibration
from netanomaly.data.batches import IGNORED, ChannelSegment
from netanomaly.data.ingest import UNLABELLED
from netanomaly.data.splits import TRAIN, VALIDATION
from netanomaly.decisions import Decisions, tell_tuned
from netanomaly.errors import ConfigError
from netanomaly.evaluation.rows import ScoredRows
from netanomaly.labelled_rows import LabelledRows, labelled_rows
from netanomaly.predictor import Predictor
from netanomaly.prepare import Prepared
from netanomaly.scoring import scored_rows
from netanomaly.training.losses import class_weights
from netanomaly.unknown import KnownRows

log = logging.getLogger(__name__)

FOLDS = 8
"""Groups of training series that are left out in turn, at most."""


@dataclass(frozen=True)
class _Validation:
    """Labelled validation rows, and a bundle's class probabilities of them. (rows,), (rows, K)"""

    rows: ScoredRows
    probabilities: NDArray[np.float64]


def settle(bundle: Bundle, prepared: Prepared, device: torch.device) -> Bundle:
    """The bundle with a calibration and a rule for alarms from the validation part, as its config's `alarms` says."""
    plain = Decisions.plain(bundle.classes, bundle.config.data.normal)
    found = _validation(replace(bundle, decisions=plain), prepared, device)
    number = {name: i for i, name in enumerate(bundle.classes)}
    truth = np.array([number.get(str(name), -1) for name in found.rows.truth])
    known = (truth >= 0) & found.probabilities.any(axis=1)
    weights = _training_weights(bundle, prepared)
    stretches = _stretches(found.rows)
    calibration = fit_calibration(as_logits(found.probabilities[known]), truth[known], weights, stretches)
    wanted, calibrated = bundle.config.alarms, calibration.done(found.probabilities)
    tuned = tune(found.rows, calibrated, bundle.classes, wanted.false_alarms_per_day, wanted.hysteresis)
    tell_tuned(tuned, wanted.false_alarms_per_day)
    settled = Decisions(calibration, tuned.rule, _known_rows(bundle, prepared))
    return with_rule(replace(bundle, decisions=settled), tuned)


def with_unknown_share(bundle: Bundle, prepared: Prepared, share: float) -> Bundle:
    """The bundle with another share of the rows of a series that may be called unknown.

    Raises:
        ConfigError: the bundle was trained by a version that did not look at what it knows.
    """
    if bundle.decisions.known is None:
        raise ConfigError("--unknown-share: this bundle does not say what its training rows were like; train it again")
    known = limited(bundle.decisions.known, bundle, prepared, share)
    alarms = bundle.config.alarms.model_copy(update={"unknown_share": share})
    config = bundle.config.model_copy(update={"alarms": alarms})
    return replace(bundle, config=config, decisions=replace(bundle.decisions, known=known))


def _known_rows(bundle: Bundle, prepared: Prepared) -> KnownRows:
    """Where the training rows lie, in channels that do not say where metrics stand, if there are others."""
    training = labelled_rows(prepared, bundle.channels, TRAIN, bundle.classes)
    known = KnownRows.fit(training.segments, *_seen(bundle))
    return limited(known, bundle, prepared, bundle.config.alarms.unknown_share)


def _seen(bundle: Bundle) -> tuple[list[int], int]:
    """The channels that novelty looks at, and of how many rows: those that the encoder joins, as a stream has them."""
    channels = bundle.channels.count
    return without_levels(bundle.config, channels) or list(range(channels)), build_spans(bundle.config).stem


def limited(known: KnownRows, bundle: Bundle, prepared: Prepared, share: float) -> KnownRows:
    """With a limit that no series has a larger share of its rows above, as seen from other series.

    Series differ more than the rows of one do, so the limit is the largest of those that each series asks for:
    validation series, and training series seen from the others.
    """
    if share == 0:
        return replace(known, limit=np.inf)
    parts = (labelled_rows(prepared, bundle.channels, part, bundle.classes) for part in (TRAIN, VALIDATION))
    training, validation = (_by_series(part) for part in parts)
    limits = [known.with_limit(segments, share).limit for segments in validation.values()]
    names = list(training)
    for group in [names[i::FOLDS] for i in range(min(FOLDS, len(names)))]:
        others = [one for name in names if name not in group for one in training[name]]
        if others:
            apart = KnownRows.fit(others, *_seen(bundle))
            limits += [apart.with_limit(training[name], share).limit for name in group]
    if not limits:
        log.warning("alarms.unknown_share: no validation row is of a class of training, so no row is called unknown")
    return replace(known, limit=max(limits, default=np.inf))


def _by_series(rows: LabelledRows) -> dict[str, list[ChannelSegment]]:
    """The segments of each series that have a row with a class of training."""
    found: dict[str, list[ChannelSegment]] = {}
    for name, segment in zip(rows.series, rows.segments, strict=True):
        if (segment.targets != IGNORED).any():
            found.setdefault(name, []).append(segment)
    return found


def with_rule(bundle: Bundle, tuned: Tuned) -> Bundle:
    """The bundle with a tuned rule for alarms, and what it did on the rows that it was chosen on."""
    facts = {
        "validation_recall": tuned.recall,
        "validation_false_alarms": tuned.false_alarms,
        "validation_series_days": tuned.series_days,
        "meets_target": tuned.meets_target,
    }
    decisions = replace(bundle.decisions, alarms=tuned.rule)
    return replace(bundle, decisions=decisions, facts={**bundle.facts, "alarms": facts})


def tuned_again(bundle: Bundle, prepared: Prepared, device: torch.device, false_alarms_per_day: float | None) -> Tuned:
    """Another rule for a bundle's alarms, from the validation part; its calibration stays."""
    found = _validation(bundle, prepared, device)
    hysteresis = bundle.decisions.alarms.hysteresis
    tuned = tune(found.rows, found.probabilities, bundle.classes, false_alarms_per_day, hysteresis)
    tell_tuned(tuned, false_alarms_per_day)
    return tuned


def _validation(bundle: Bundle, prepared: Prepared, device: torch.device) -> _Validation:
    grid, wanted = prepared.grid, prepared.labelled(VALIDATION)
    counted = grid.to_rows(wanted) & (prepared.table.labels != UNLABELLED)
    probabilities = Predictor(bundle, device).probabilities(grid.segments, wanted)
    return _Validation(scored_rows(bundle.config, prepared.table, counted), grid.to_rows(probabilities)[counted])


def _stretches(rows: ScoredRows) -> int:
    """Runs of rows of one series with one label, normal ones too."""
    order = np.lexsort((rows.times, rows.series.astype(str)))
    series, labels = rows.series[order], rows.truth[order]
    return 1 + int(((series[1:] != series[:-1]) | (labels[1:] != labels[:-1])).sum())


def _training_weights(bundle: Bundle, prepared: Prepared) -> list[float]:
    """What a row of each class counted for in training. (K,)"""
    counts = prepared.report["train"]["classes"]
    per_class = torch.tensor([counts.get(name, 0) for name in bundle.classes], dtype=torch.float64)
    weights: list[float] = class_weights(per_class, bundle.config.training.class_weights).tolist()
    return weights
