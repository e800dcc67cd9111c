"""What stands out in a batch that could not be learnt from."""

from __future__ import annotations

from collections.abc import Sequence

from netanomaly.data.batches import Batch


def most_extreme(batch: Batch, series: Sequence[str], metrics: Sequence[str]) -> str:
    """The channel value that is furthest from zero: of which series, row and metric.

    Args:
        series: name of each training segment.
        metrics: names; channels lie in groups of one channel of every metric.
    """
    sizes = batch.channels.abs().nan_to_num(nan=float("inf"))  # (B, S, C)
    flat = int(sizes.argmax())
    stretch, rest = divmod(flat, sizes.shape[1] * sizes.shape[2])
    step, channel = divmod(rest, sizes.shape[2])
    index, first = batch.pieces[stretch]
    row = first + step - (batch.channels.shape[1] - batch.targets.shape[1])  # history is in front
    names = ", ".join(dict.fromkeys(series[index] for index, _ in batch.pieces))
    value = float(batch.channels[stretch, step, channel])
    return (
        f"its rows are of {names}; the largest of their channels is {value:.3g} of metric "
        f"{metrics[channel % len(metrics)]} (series {series[index]}, row {row + 1} of a segment)"
    )
