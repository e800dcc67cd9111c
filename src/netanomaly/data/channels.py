"""What the model sees of a metric: how it moved against its own recent past.

Levels do not carry over to a link the model has not met; change against the link's own baseline does. Every
channel is causal and depends on a fixed number of past rows, so a row has the same channels in a batch, in a
chunk, and alone with its history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.rolling import rolling_median, rolling_std

CHANNEL_KINDS = ("deviation", "log_ratio", "spread", "change", "missing", "level")
_NEEDS_BASELINE = ("deviation", "log_ratio", "spread")


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
    where e, the metric's `floor`, is its small positive value in training. Each but `missing` is centred and
    scaled as in training and squashed by asinh, so that a value 20 deviations away stays usable. What cannot
    be computed (missing) is 0.

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
        rows = np.concatenate([values[mask] for values, mask in zip(segments, training, strict=True)])
        unscaled = cls(
            kinds=tuple(kind for kind in CHANNEL_KINDS if kind in kinds),
            baselines=tuple(baselines),
            centre=np.array([_quantiles(column, [0.5])[0] for column in rows.T]),
            floor=np.array([_floor(column) for column in rows.T]),
            offset=np.zeros(0),
            scale=np.zeros(0),
        )
        raw = np.concatenate([unscaled._raw(v)[mask] for v, mask in zip(segments, training, strict=True) if mask.any()])
        flags = np.repeat([kind == "missing" for kind, _ in unscaled._layout()], len(unscaled.floor))
        pairs = [(0.0, 1.0) if flag else _robust_scale(column) for column, flag in zip(raw.T, flags, strict=True)]
        offset, scale = np.array(pairs).T
        return cls(unscaled.kinds, unscaled.baselines, unscaled.centre, unscaled.floor, offset, scale)

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Channels of one segment: metrics (T, M) to channels (T, C), finite everywhere."""
        raw = self._raw(values)
        squashed = np.arcsinh((raw - self.offset) / self.scale)
        flags = np.repeat([kind == "missing" for kind, _ in self._layout()], values.shape[1])
        squashed[:, flags] = raw[:, flags]
        return np.nan_to_num(squashed).astype(np.float32)

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
        """Channels from what `state` gave."""
        return cls(
            kinds=tuple(state["kinds"]),
            baselines=tuple(state["baselines"]),
            **{key: np.array(state[key], dtype=np.float64) for key in ("centre", "floor", "offset", "scale")},
        )

    def _layout(self) -> list[tuple[str, int]]:
        """(kind, baseline rows or 0) of each group of M channels, in output order."""
        return [
            (kind, length) for kind in self.kinds for length in (self.baselines if kind in _NEEDS_BASELINE else (0,))
        ]

    def _raw(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Channels before scaling, (T, M) to (T, C); NaN where they cannot be computed."""
        medians = {n: rolling_median(values, n) for kind, n in self._layout() if n}
        spreads = {n: rolling_std(values - self.centre, n) for kind, n in self._layout() if kind == "spread"}
        groups: list[NDArray[np.float64]] = []
        for kind, length in self._layout():
            if kind == "deviation":
                groups.append(values - medians[length])
            elif kind == "log_ratio":
                above = np.maximum(values, 0) + self.floor
                groups.append(np.log(above / (np.maximum(medians[length], 0) + self.floor)))
            elif kind == "spread":
                groups.append((values - medians[length]) / (spreads[length] + self.floor / 2))
            elif kind == "change":
                groups.append(np.diff(values, axis=0, prepend=np.nan))
            elif kind == "missing":
                groups.append(np.isnan(values).astype(np.float64))
            else:
                groups.append(values)
        return np.concatenate(groups, axis=1)


def channel_history(kinds: Sequence[str], baselines: Sequence[int]) -> int:
    """How many earlier rows the channels of a row depend on."""
    longest = max(baselines) if set(kinds) & set(_NEEDS_BASELINE) else 1
    return max(longest - 1, 1 if "change" in kinds else 0)


def _quantiles(column: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
    known = column[~np.isnan(column)]
    return np.quantile(known, shares) if len(known) else np.zeros(len(shares))


def _floor(column: NDArray[np.float64]) -> float:
    """A small positive value of a metric, so that ratios to zero stay finite: the lowest tenth of |x| > 0."""
    sizes = np.abs(column[(column != 0) & ~np.isnan(column)])
    return float(np.quantile(sizes, 0.1)) if len(sizes) else 1.0


def _robust_scale(column: NDArray[np.float64]) -> tuple[float, float]:
    """Centre and scale of a channel: the median, and a quarter of the span that holds 96 % of the rows.

    Where that span is narrow against the standard deviation (mostly zeros, a few bursts), a tenth of the
    latter; 1 for a constant or wholly missing channel.
    """
    known = column[~np.isnan(column)]
    if len(known) == 0:
        return 0.0, 1.0
    low, middle, high = np.quantile(known, [0.02, 0.5, 0.98])
    scale = max((high - low) / 4, float(np.std(known)) / 10)
    return float(middle), float(scale) if scale > 0 else 1.0
