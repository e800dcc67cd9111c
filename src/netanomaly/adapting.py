"""Training that starts from a trained bundle: its classifier, made to fit the metrics and classes of other rows.

Metrics and classes go by name. What the bundle knows is kept: the input weights and the scaling of metrics that both
have, all that lies between input and head, the head's rows of its classes. What it does not know starts so that it
changes nothing at first (input weights of zero) or as in any training (a class's row of the head).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netanomaly.bundle import Bundle, load_bundle
from netanomaly.bundle_files import WEIGHTS, read_manifest
from netanomaly.config import Config
from netanomaly.data.channels import Channels
from netanomaly.data.schema import UNITS, Metric
from netanomaly.errors import BundleError, ConfigError
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.predictor import Predictor

log = logging.getLogger(__name__)

_INPUT = ("encoder.row_layer.weight", "encoder.convolution.weight")
"""What reads the channels: the first of these that a classifier has."""
_HEAD = ("head.weight", "head.bias")


@dataclass(frozen=True)
class Start:
    """The bundle that training starts from.

    Attributes:
        path: as the config says.
        sha256: of its weights.
    """

    path: str
    sha256: str
    bundle: Bundle

    def facts(self) -> dict[str, str]:
        """As plain values, for the bundle that comes of it."""
        return {"path": self.path, "sha256": self.sha256}


@dataclass(frozen=True)
class Matched:
    """Where names that both have stand: the i-th of them at `old[i]` in the bundle, at `new[i]` in the new rows."""

    old: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True)
class Adaptation:
    """A trained bundle as the start of a classifier for other rows.

    Attributes:
        channels: of the new metrics, those that the bundle has scaled as there.
        classes: the bundle's and the new ones.
        members: weights of each of the bundle's members.
        metrics, known: which of the new metrics and classes are which of the bundle's.
        old_metrics: how many the bundle has.
    """

    channels: Channels
    classes: tuple[str, ...]
    members: tuple[Mapping[str, Tensor], ...]
    metrics: Matched
    known: Matched
    old_metrics: int

    def fill(self, model: NetworkAnomalyClassifier, place: int) -> None:
        """Give a fresh classifier what the bundle's member at `place` has learnt."""
        fresh = model.state_dict()
        (reader, *_) = (name for name in _INPUT if name in fresh)
        weights = dict(self.members[place])
        groups = fresh[reader].shape[1] // len(self.channels.centre)  # a member that sees no levels has fewer
        weights[reader] = self._input(weights[reader], groups)
        for name in _HEAD:
            rows = fresh[name].cpu().clone()  # (K, width) or (K,); the bundle's are on the CPU
            rows[list(self.known.new)] = weights[name][list(self.known.old)]
            weights[name] = rows
        model.load_state_dict(weights)

    def _input(self, old: Tensor, groups: int) -> Tensor:
        """Weights of the channels, zero for metrics that the bundle does not have.

        (D, G M_old) to (D, G M), or with the kernel behind both: each group holds one channel of every metric.
        """
        by_metric = old.unflatten(1, (groups, self.old_metrics))  # (D, G, M_old, ...)
        new = old.new_zeros(*by_metric.shape[:2], len(self.channels.centre), *by_metric.shape[3:])  # (D, G, M, ...)
        new[:, :, list(self.metrics.new)] = by_metric[:, :, list(self.metrics.old)]
        return new.flatten(1, 2)


def read_start(config: Config) -> Start | None:
    """The bundle of `training.init_from`; None where training starts from random weights.

    Raises:
        BundleError: there is no bundle, or it is damaged.
    """
    path = config.training.init_from
    if path is None:
        return None
    try:
        bundle = load_bundle(Path(path))  # first: it says best what is missing
        return Start(path, read_manifest(Path(path)).files[WEIGHTS].sha256, bundle)
    except BundleError as error:
        raise BundleError(f"training.init_from: {error}") from error
    except OSError as error:
        raise BundleError(f"training.init_from: {path}: no bundle here ({error.strerror or error})") from error


def adapt(
    start: Start, metrics: Sequence[Metric], fitted: Channels, classes: Sequence[str], normal: str, levels: str
) -> Adaptation:
    """The bundle's classifier for other metrics and classes; what is taken over and what is not is told.

    Args:
        metrics: of the new rows.
        fitted: channels of the new rows, of the bundle's kinds and baselines.
        classes: of the new rows.
        normal: that of them which is no anomaly.
        levels: which members are wanted, as `channels.levels`.

    Raises:
        ConfigError: no metric is the bundle's, or one has another kind or unit than there.
        BundleError: the bundle's weights do not fit its config.
    """
    bundle = start.bundle
    old_metrics = [Metric(one.name, one.column or one.name, one.unit, one.kind) for one in bundle.config.data.metrics]
    _check_metrics(old_metrics, metrics, start.path)
    matched = _matched([one.name for one in old_metrics], [one.name for one in metrics])
    every = tuple(sorted({*bundle.classes, *classes}, key=lambda name: (name != normal, name)))
    _tell_metrics([one.name for one in old_metrics], [one.name for one in metrics])
    _tell_classes(bundle.classes, classes)
    _tell_levels(levels, bundle.config.channels.levels)
    return Adaptation(
        _with_scaling(fitted, bundle.channels, matched),
        every,
        _members(bundle),
        matched,
        _matched(bundle.classes, every),
        len(old_metrics),
    )


def _check_metrics(old: Sequence[Metric], new: Sequence[Metric], path: str) -> None:
    """Raise a ConfigError if a metric is another quantity than the bundle's of that name, or none is the bundle's."""
    known = {metric.name: metric for metric in old}
    shared = [(metric, known[metric.name]) for metric in new if metric.name in known]
    if not shared:
        raise ConfigError(
            f"data.metrics: none is a metric of the bundle that training starts from ({path}); metrics go by name, it "
            f"has {', '.join(list(known)[:8])}{', ...' if len(known) > 8 else ''}; name yours so, with column: for the "
            "header"
        )
    for metric, before in shared:
        units = [UNITS[one.unit][0] for one in (metric, before)]
        if metric.kind != before.kind:
            raise ConfigError(
                f"data.metrics: '{metric.name}' is a {metric.kind}, in the bundle that training starts from ({path}) a "
                f"{before.kind}; correct the kind, or call it by another name"
            )
        if units[0] != units[1]:
            raise ConfigError(
                f"data.metrics: '{metric.name}' {_unit(metric)}, in the bundle that training starts from ({path}) it "
                f"{_unit(before)}, which is another quantity; correct the unit, or call it by another name"
            )


def _unit(metric: Metric) -> str:
    return "has no unit" if metric.unit == "1" else f"is in {metric.unit}"


def _matched(old: Sequence[str], new: Sequence[str]) -> Matched:
    places = {name: place for place, name in enumerate(old)}
    found = [(places[name], place) for place, name in enumerate(new) if name in places]
    return Matched(tuple(before for before, _ in found), tuple(after for _, after in found))


def _tell_metrics(old: Sequence[str], new: Sequence[str]) -> None:
    """Name the metrics that only the bundle has, and those that only the new rows have."""
    if dropped := [name for name in old if name not in new]:
        log.warning("metrics that only the bundle has; what it learnt of them is dropped: %s", ", ".join(dropped))
    if added := [name for name in new if name not in old]:
        log.info("metrics that the bundle does not have; they count for nothing at first: %s", ", ".join(added))


def _tell_classes(old: Sequence[str], new: Sequence[str]) -> None:
    """Name the classes that only the bundle has, and those that only the new rows have."""
    if kept := [name for name in old if name not in new]:
        log.info("classes that only the bundle has stay, but no row of theirs is learnt from: %s", ", ".join(kept))
    if added := [name for name in new if name not in old]:
        log.info("classes that the bundle does not have: %s", ", ".join(added))


def _tell_levels(wanted: str, trained: str) -> None:
    """A word about members that know where the metrics of another network stand."""
    if wanted == "hidden":
        return
    advice = "channels.levels: hidden takes those that do not" if trained == "both" else "it has none that do not"
    log.warning("members of the bundle see the levels, which mislead in a network that was not learnt from; %s", advice)


def _with_scaling(fitted: Channels, old: Channels, matched: Matched) -> Channels:
    """The channels, those of shared metrics scaled as in the bundle: its weights were made for that."""

    def merged(new: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of every group, or of the metrics themselves: (G M,) or (M,), as both attributes are."""
        result = new.reshape(-1, len(fitted.centre)).copy()  # (G, M)
        result[:, list(matched.new)] = before.reshape(-1, len(old.centre))[:, list(matched.old)]
        return result.ravel()

    return replace(
        fitted,
        centre=merged(fitted.centre, old.centre),
        floor=merged(fitted.floor, old.floor),
        offset=merged(fitted.offset, old.offset),
        scale=merged(fitted.scale, old.scale),
    )


def _members(bundle: Bundle) -> tuple[Mapping[str, Tensor], ...]:
    """The weights of the bundle's members, in their order, held to what its config says."""
    whole = Predictor(bundle, torch.device("cpu")).model
    return tuple(member.state_dict() for member in whole.members)
