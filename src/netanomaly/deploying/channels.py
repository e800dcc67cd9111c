"""`data.channels` once more, in operations that a file for other programs can hold.

The same numbers: medians are the same order statistics, sums are the same trees (`data.rolling`), all in float64; only
roots and logarithms may differ in the last bit.
Shapes: B windows, R rows given of each, W rows that the model sees, M metrics, C channels of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from netanomaly.data.channels import Channels

_HUGE = 1e30
"""From here on asinh(x) is log(2 x) to the last bit, and squares may become too large for a number."""
_FURTHEST = 1000.0  # as in `data.channels`


class WindowChannels(nn.Module):
    """Metrics (B, R, M) to the channels (B, W, C) of the last W = R - history_rows rows: what `Channels` gives.

    Args:
        channels: as fitted in training.
        rows: W
    """

    centre: Tensor
    floor: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(self, channels: Channels, rows: int) -> None:
        super().__init__()
        self.kinds, self.baselines, self.rows = channels.kinds, channels.baselines, rows
        for name in ("centre", "floor", "offset", "scale"):
            self.register_buffer(name, torch.from_numpy(getattr(channels, name).copy()))

    def forward(self, values: Tensor) -> Tensor:
        """(B, R, M) float64, NaN where missing, to (B, W, C) float32, finite everywhere"""
        width, found = values.shape[2], []
        for group, (kind, raw) in enumerate(self._raw(values)):
            columns = slice(group * width, (group + 1) * width)
            if kind != "missing":
                raw = _squashed(kind, (raw - self.offset[columns]) / self.scale[columns])
            found.append(torch.where(raw.isnan(), 0.0, raw).clamp(-_FURTHEST, _FURTHEST))
        return torch.cat(found, dim=-1).float()

    def _raw(self, given: Tensor) -> Iterator[tuple[str, Tensor]]:
        """(kind, channel of every metric (B, W, M)) before scaling, in the order of `Channels`."""
        values = given[:, -self.rows :]  # (B, W, M)
        medians: dict[int, Tensor] = {}
        for kind in self.kinds:
            if kind == "change":
                before = pad(given, (0, 0, 1, 0), value=math.nan)[:, -self.rows - 1 : -1]
                yield kind, values - before
            elif kind == "missing":
                yield kind, values.isnan().double()
            elif kind == "level":
                yield kind, values
            elif kind == "log_level":
                yield kind, values.sign() * (values.abs() / self.floor).log1p()
            else:
                for length in self.baselines:
                    if length not in medians:
                        medians[length] = self._medians(given, length)
                    middle = medians[length]
                    if kind == "deviation":
                        yield kind, values - middle
                    elif kind == "log_ratio":
                        yield (
                            kind,
                            ((_not_below_zero(values) + self.floor) / (_not_below_zero(middle) + self.floor)).log(),
                        )
                    else:
                        yield kind, (values - middle) / (self._deviations(given, length) + self.floor / 2)

    def _medians(self, given: Tensor, length: int) -> Tensor:
        """Of the last `length` rows up to each of the W last. (B, R, M) to (B, W, M)"""
        last = given[:, -(self.rows + length - 1) :].transpose(1, 2)  # (B, M, W + length - 1)
        return rolling_median(last, length).transpose(1, 2)

    def _deviations(self, given: Tensor, length: int) -> Tensor:
        """Standard deviations of the same rows. (B, R, M) to (B, W, M)"""
        return rolling_std(given - self.centre, length)[:, -self.rows :]


def rolling_median(values: Tensor, length: int) -> Tensor:
    """Median of every `length` neighbours, NaN left out. (..., W + length - 1) to (..., W)

    All W windows share a core. The median of core and edges together is at most W - 1 places from the core's own, so
    the core is sorted once, and each window sorts its edges with the middle of the core: 2 W values, not `length`.
    """
    count = values.shape[-1] - length + 1  # W
    if length <= 2 * count:
        windows = values.unfold(-1, length, 1)  # (..., W, length), a view
        return _ranked(windows, (~windows.isnan()).sum(-1), 0)
    core = values[..., count - 1 : length]  # in every window
    known = (~core.isnan()).sum(-1, keepdim=True)  # (..., 1)
    below = (known // 2 - count // 2 - 1).clamp(min=0)  # of the core, left out as too small to be the median
    place = below + torch.arange(count + 2, device=values.device)  # (..., W + 2)
    middle = pad(_sorted(core), (0, count + 2), value=math.inf).gather(-1, place)
    edges = torch.cat([values[..., : count - 1], values[..., length:]], dim=-1)  # (..., 2 (W - 1))
    parts = [middle[..., None, :].expand(*middle.shape[:-1], count, -1)]
    if count > 1:
        parts.append(edges.unfold(-1, count - 1, 1))  # (..., W, W - 1)
    total = known + (0 if count == 1 else (~parts[1].isnan()).sum(-1))  # (..., W)
    return _ranked(torch.cat(parts, dim=-1), total, below)


def rolling_std(values: Tensor, length: int) -> Tensor:
    """`data.rolling.rolling_std`. (B, R, M) to (B, R, M)"""
    missing = values.isnan()
    filled = torch.where(missing, 0.0, values)
    count = _sum((~missing).double(), length)
    mean = _sum(filled, length) / count.clamp(min=1)
    mean_square = _sum(filled * filled, length) / count.clamp(min=1)
    variance = (mean_square - mean * mean).clamp(min=0) * count / (count - 1).clamp(min=1)
    return variance.sqrt()


def _ranked(windows: Tensor, known: Tensor, left_out: Tensor | int) -> Tensor:
    """The median of windows of which the smallest may have been left out. (..., W, n) to (..., W)

    Args:
        known: values of each, those that were left out included; NaN is none. (..., W)
        left_out: how many were. (..., W)
    """
    ordered = pad(_sorted(windows), (0, 1), value=math.inf)
    low = ((known - 1) // 2 - left_out).clamp(min=0)[..., None]  # (..., W, 1)
    high = (known // 2 - left_out)[..., None]
    found = (ordered.gather(-1, low) + ordered.gather(-1, high))[..., 0] * 0.5
    return torch.where(known == 0, math.nan, found)


def _sorted(values: Tensor) -> Tensor:
    """Ascending, NaN as infinity behind all others."""
    return torch.where(values.isnan(), math.inf, values).sort(dim=-1).values


def _sum(values: Tensor, length: int) -> Tensor:
    """`data.rolling.rolling_sum`, the same tree. (B, R, M) to (B, R, M)"""
    total, block, size, taken, remaining = torch.zeros_like(values), values, 1, 0, length
    while remaining:
        if remaining & 1:
            total = total + _down(block, taken)
            taken += size
        remaining >>= 1
        if remaining:
            block = block + _down(block, size)
            size *= 2
    return total


def _down(values: Tensor, rows: int) -> Tensor:
    """Values moved `rows` later in time, zeros before them."""
    kept = max(0, values.shape[1] - rows)
    return pad(values[:, :kept], (0, 0, values.shape[1] - kept, 0))


def _not_below_zero(values: Tensor) -> Tensor:
    """max(x, 0), and NaN stays NaN, which not every runtime's maximum does."""
    return torch.where(values < 0, 0.0, values)


def _squashed(kind: str, scaled: Tensor) -> Tensor:
    """As in `data.channels`; asinh is written out, as runtimes know it in float32 only."""
    if kind == "log_level":
        return scaled.clamp(-10, 10)
    size = scaled.abs()
    near = size.clamp(max=_HUGE)
    found = torch.where(size > _HUGE, size.log() + math.log(2), (near + (near * near + 1).sqrt()).log())
    return found * scaled.sign()
