"""What the model sees of a metric: how it moved against its own recent past.

Levels do not carry over to a link the model has not met; change against the link's own baseline does. Every
channel is causal and depends on a fixed number of past rows, so a row has the same channels in a batch, in a
chunk, and alone with its history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.rolling import newest_median, newest_std, rolling_median, rolling_std

CHANNEL_KINDS = ("deviation", "log_ratio", "spread", "change", "missing", "level", "log_level")
LEVELS = ("level", "log_level")
"""Kinds that say where a metric stands, not how it moved: of use where the network stays the same."""
_NEEDS_BASELINE = ("deviation", "log_ratio", "spread")
_BLOCK = 4096
"""Rows whose channels are computed at a time: few enough for all that comes in between to stay in the cache."""
_FURTHEST = 1000.0  # squashed channels end here; asinh of the largest float is 710


@dataclass(frozen=True)
class Channels:
    """Fitted channels: values (T, M) in, channels (T, C) out.

    For a metric x with baseline b, the median of its last `baseline` rows:
        deviation   x - b
        log_ratio   log((x + e) / (b + e)), negative values taken as 0
        spread      (x - b) / (s + e / 2), s the standard deviation of the same rows
        change      x - x of the row before
        missing     1 where x is missing, else 0
        level       x
        log_level   log(1 + |x| / e), with the sign of x
    where e, the metric's `floor`, is its small positive value in training (for a metric that stays far from zero e is
    large against s, and spread is nearly deviation). Each but `missing` is centred and
    scaled as in training and squashed by asinh, so that a value 20 deviations away stays usable; log_level ends at 10
    instead. What cannot be computed (missing) is 0.

    Attributes:
        kinds: of `CHANNEL_KINDS`, in this order in the output.
        baselines: rows of each baseline; kinds that need one appear once for each.
        centre, floor: per metric, (M,).
        offset, scale: per channel, (C,).
    """

    kinds: tuple[str, ...]
    baselines: tuple[int, ...]
    centre: NDArray[np.float64]
    floor: NDArray[np.float64]
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(
        cls,
        segments: Sequence[NDArray[np.float64]],
        training: Sequence[NDArray[np.bool_]],
        kinds: Sequence[str],
        baselines: Sequence[int],
    ) -> Self:
        """Channels scaled by the training rows alone.

        Args:
            segments: metrics of each segment, (T, M) each.
            training: which rows are training rows, (T,) each.
        """
        ordered = tuple(kind for kind in CHANNEL_KINDS if kind in kinds)
        metrics = segments[0].shape[1]
        columns = []
        with np.errstate(over="ignore", invalid="ignore"):
            for metric in range(metrics):  # one at a time: all channels of a long history would not fit in memory
                pieces = [values[:, metric : metric + 1] for values in segments]
                columns.append(_fit_metric(pieces, training, ordered, tuple(baselines)))
        centre, floor, offsets, scales = (np.array(values) for values in zip(*columns, strict=True))
        return cls(ordered, tuple(baselines), centre, floor, offsets.T.ravel(), scales.T.ravel())

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Channels of one segment: metrics (T, M) to channels (T, C), finite everywhere."""
        result = np.empty((len(values), self.count), dtype=np.float32)
        rows = max(_BLOCK, 4 * self.history_rows)  # a block computes its history again
        for first in range(0, len(values), rows):
            start = max(0, first - self.history_rows)
            result[first : first + rows] = self._of_block(values[start : first + rows])[first - start :]
        return result

    def at_usual(self, usual: NDArray[np.float64]) -> NDArray[np.float32]:
        """Channels of rows in which every metric stands where it usually does, and its baseline too: nothing moves.

        (T, M), NaN where a metric is usually missing, to (T, C)
        """
        return self._scaled(_Past(usual, usual, lambda length: usual, lambda length: np.zeros_like(usual)))

    def newest(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Channels of the newest row of N series at once, to the bit those of `__call__`.

        Args:
            values: the last history_rows + 1 rows (or more) of each, NaN before the first. (N, T, M)

        Returns:
            (N, C)
        """
        past = _Past(
            values[:, -1],
            values[:, -2] if values.shape[1] > 1 else np.full_like(values[:, -1], np.nan),
            lambda length: newest_median(values, length),
            lambda length: newest_std(values - self.centre, length),
        )
        return self._scaled(past)

    def _of_block(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """(T, M) to (T, C)"""
        return self._scaled(_past_of_rows(values, self.centre))

    def _scaled(self, past: _Past) -> NDArray[np.float32]:
        rows, width = past.values.shape
        result = np.empty((rows, self.count), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # values near the largest float; what comes of them is cut
            for group, (kind, raw) in enumerate(_raw_channels(past, self.kinds, self.baselines, self.floor)):
                columns = slice(group * width, (group + 1) * width)
                scaled = (
                    raw if kind == "missing" else _squashed(kind, (raw - self.offset[columns]) / self.scale[columns])
                )
                result[:, columns] = np.nan_to_num(scaled, nan=0.0, posinf=_FURTHEST, neginf=-_FURTHEST)
        return result

    @property
    def history_rows(self) -> int:
        """How many earlier rows the channels of a row depend on."""
        return channel_history(self.kinds, self.baselines)

    @property
    def count(self) -> int:
        """Channels per row, C."""
        return len(self.offset)

    def state(self) -> dict[str, Any]:
        """The fitted channels as plain values; `from_state` gives them back exactly."""
        return {
            "kinds": list(self.kinds),
            "baselines": list(self.baselines),
            "centre": self.centre.tolist(),
            "floor": self.floor.tolist(),
            "offset": self.offset.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Channels from what `state` gave. Raises ValueError, KeyError or TypeError for anything else."""
        kinds, baselines = tuple(state["kinds"]), tuple(state["baselines"])
        arrays = {key: np.array(state[key], dtype=np.float64) for key in ("centre", "floor", "offset", "scale")}
        ordered = tuple(kind for kind in CHANNEL_KINDS if kind in kinds)
        if kinds != ordered or any(type(length) is not int or length < 1 for length in baselines):
            raise ValueError(f"unknown channels: kinds {kinds}, baselines {baselines}")
        groups = len(channel_groups(kinds, baselines))
        metrics = arrays["centre"].size
        wanted = {"centre": metrics, "floor": metrics, "offset": groups * metrics, "scale": groups * metrics}
        if (arrays["scale"] <= 0).any() or (arrays["floor"] <= 0).any():
            raise ValueError("the channels' scales are not all positive")
        if any(array.shape != (wanted[key],) or not np.isfinite(array).all() for key, array in arrays.items()):
            raise ValueError("the channels' numbers do not fit their kinds and metrics")
        return cls(kinds, baselines, **arrays)


@dataclass(frozen=True)
class _Past:
    """Rows and what channels take from the rows before them.

    Attributes:
        values, before: of each row and of the row before it. (rows, M)
        median, deviation: of the last rows up to each row, given how many; the deviation is that from the centre.
    """

    values: NDArray[np.float64]
    before: NDArray[np.float64]
    median: Callable[[int], NDArray[np.float64]]
    deviation: Callable[[int], NDArray[np.float64]]


def _past_of_rows(values: NDArray[np.float64], centre: NDArray[np.float64]) -> _Past:
    """Rows that follow each other. (T, M)"""
    before = np.concatenate([np.full_like(values[:1], np.nan), values[:-1]])
    return _Past(
        values,
        before,
        lambda length: rolling_median(values, length),
        lambda length: rolling_std(values - centre, length),
    )


def _raw_channels(
    past: _Past, kinds: Sequence[str], baselines: Sequence[int], floor: NDArray[np.float64]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """(kind, channel of every metric (rows, M)) before scaling, in output order; NaN where it cannot be computed."""
    values = past.values
    baseline = {length: past.median(length) for length in baselines if set(kinds) & set(_NEEDS_BASELINE)}
    for kind in kinds:
        if kind == "change":
            yield kind, values - past.before
        elif kind == "missing":
            yield kind, np.isnan(values).astype(np.float64)
        elif kind == "level":
            yield kind, values
        elif kind == "log_level":
            yield kind, np.sign(values) * np.log1p(np.abs(values) / floor)
        else:
            for length, middle in baseline.items():
                if kind == "deviation":
                    yield kind, values - middle
                elif kind == "log_ratio":
                    yield kind, np.log((np.maximum(values, 0) + floor) / (np.maximum(middle, 0) + floor))
                else:
                    yield kind, (values - middle) / (past.deviation(length) + floor / 2)


def _fit_metric(
    segments: Sequence[NDArray[np.float64]],
    training: Sequence[NDArray[np.bool_]],
    kinds: Sequence[str],
    baselines: Sequence[int],
) -> tuple[float, float, list[float], list[float]]:
    """Centre and floor of one metric, offset and scale of each of its channels; segments of (T, 1)."""
    rows = np.concatenate([values[mask, 0] for values, mask in zip(segments, training, strict=True)])
    centre, floor = np.array([_median(rows)]), np.array([_floor(rows)])
    raw = [
        [channel[mask, 0] for _, channel in _raw_channels(_past_of_rows(values, centre), kinds, baselines, floor)]
        for values, mask in zip(segments, training, strict=True)
        if mask.any()
    ]
    names = [kind for kind, _ in _raw_channels(_past_of_rows(rows[:1, None], centre), kinds, baselines, floor)]
    scaling = [
        (0.0, 1.0) if kind == "missing" else _robust_scale(np.concatenate(channel))
        for kind, channel in zip(names, zip(*raw, strict=True), strict=True)
    ]
    return float(centre[0]), float(floor[0]), [offset for offset, _ in scaling], [scale for _, scale in scaling]


def _squashed(kind: str, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """A channel without its far values; what is a logarithm has few of them."""
    return np.clip(scaled, -10, 10) if kind == "log_level" else np.arcsinh(scaled)


def channel_groups(kinds: Sequence[str], baselines: Sequence[int]) -> list[str]:
    """The kind of each group of channels, one channel of every metric, in the order of the output."""
    return [
        kind for kind in CHANNEL_KINDS if kind in kinds for _ in range(len(baselines) if kind in _NEEDS_BASELINE else 1)
    ]


def channel_history(kinds: Sequence[str], baselines: Sequence[int]) -> int:
    """How many earlier rows the channels of a row depend on."""
    longest = max(baselines) if set(kinds) & set(_NEEDS_BASELINE) else 1
    return max(longest - 1, 1 if "change" in kinds else 0)


def _median(column: NDArray[np.float64]) -> float:
    known = column[~np.isnan(column)]
    return float(np.median(known)) if len(known) else 0.0


def _floor(column: NDArray[np.float64]) -> float:
    """A small positive value of a metric, so that ratios to zero stay finite: the lowest tenth of |x| > 0."""
    sizes = np.abs(column[(column != 0) & ~np.isnan(column)])
    return float(np.quantile(sizes, 0.1)) if len(sizes) else 1.0


def _robust_scale(column: NDArray[np.float64]) -> tuple[float, float]:
    """Centre and scale of a channel: the median, and a quarter of the span that holds 96 % of the rows.

    Where that span is narrow against the standard deviation (mostly zeros, a few bursts), a tenth of the
    latter, without the outermost thousandth: one glitch must not silence a metric. 1 for a constant or wholly
    missing channel.
    """
    known = column[np.isfinite(column)]
    if len(known) == 0:
        return 0.0, 1.0
    if known.min() == known.max():  # its standard deviation may be a rounding error, and no scale to divide by
        return float(known[0]), 1.0
    lowest, low, middle, high, highest = np.quantile(known, [0.0005, 0.02, 0.5, 0.98, 0.9995])
    scale = max((high - low) / 4, float(np.std(known.clip(lowest, highest))) / 10)
    return float(middle), float(scale) if 0 < scale < np.inf else 1.0
