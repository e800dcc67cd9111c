"""Stretches of rows with one label, for bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Stretch:
    """Rows after each other with one label; times of the first and the last of them in ns since 1970."""

    label: str
    start: int
    last: int


def stretches(
    labels: NDArray[np.object_], times: NDArray[np.int64], interval_ns: int, ignored: tuple[str, ...] = ()
) -> list[Stretch]:
    """Runs of rows with one label, without those of ignored ones; a missing row ends a run. (rows,), (rows,)"""
    if not len(labels):
        return []
    ends = np.flatnonzero((labels[1:] != labels[:-1]) | (np.diff(times) > 1.5 * interval_ns))
    first, last = np.r_[0, ends + 1], np.r_[ends, len(labels) - 1]
    return [
        Stretch(str(labels[i]), int(times[i]), int(times[j]))
        for i, j in zip(first, last, strict=True)
        if labels[i] not in ignored
    ]


def thinned(labels: NDArray[np.object_], block: int, usual: tuple[str, ...]) -> NDArray[np.object_]:
    """One label for each block of rows, the first that is not usual: what is rare stays. (rows,) to (blocks,)"""
    starts = np.arange(0, len(labels), block)
    is_rare = ~np.isin(labels, usual)
    places = np.minimum.reduceat(np.where(is_rare, np.arange(len(labels)), len(labels)), starts)
    return labels[np.where(places < len(labels), places, starts)]


def joined_stretches(spans: Sequence[Stretch], most: int) -> list[Stretch]:
    """The stretches, in order, about `most` of a label: of more, those that hardly any time lies between are joined."""
    if len(spans) <= most:
        return list(spans)
    apart = (max(one.last for one in spans) - min(one.start for one in spans)) // most
    found: list[Stretch] = []
    for one in sorted(spans, key=lambda one: (one.label, one.start)):
        before = found[-1] if found else None
        if before is not None and before.label == one.label and one.start - before.last <= apart:
            found[-1] = Stretch(one.label, before.start, max(before.last, one.last))
        else:
            found.append(one)
    return sorted(found, key=lambda one: (one.start, one.label))
