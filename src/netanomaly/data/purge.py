"""The purge: no window of one part sees a row of another.

Rows are taken out of the less precious part (training before validation before test) until no two windows of
different parts share a row. Every labelled test row counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.grid import Grid
from netanomaly.data.ingest import NO_PART, UNLABELLED
from netanomaly.data.splits import PART_NAMES, TEST, TRAIN, VALIDATION


@dataclass(frozen=True)
class Split:
    """The part of every step of every segment after the purge.

    Attributes:
        parts: per segment, the part of each step, `NO_PART` for context. (T,) each
        purged: rows taken out of their part.
        unused: labelled rows that no part was given.
    """

    parts: tuple[NDArray[np.int8], ...]
    purged: int
    unused: int


def purge(grid: Grid, row_parts: NDArray[np.int8], history_rows: int) -> Split:
    """Place the parts on the grid and take out rows whose windows would meet those of a more precious part.

    The window of row t reaches `history_rows` back, so two windows share a row exactly if their last rows are
    at most `history_rows` apart.
    """
    result: list[NDArray[np.int8]] = []
    purged = unused = 0
    for segment in grid.segments:
        parts = np.where(segment.rows >= 0, row_parts[segment.rows], NO_PART).astype(np.int8)
        unused += int(((parts == NO_PART) & (segment.labels != UNLABELLED)).sum())
        for precious in (TEST, VALIDATION):
            near = _within(parts == precious, history_rows, both_ways=True)
            drop = near & (parts >= TRAIN) & (parts < precious)
            purged += int(drop.sum())
            parts[drop] = NO_PART
        result.append(parts)
    return Split(tuple(result), purged, unused)


def split_report(grid: Grid, split: Split, history_rows: int) -> dict[str, object]:
    """What each part holds and what the parts share, as plain values for JSON.

    A row is shared if it lies in windows (with their history) that end in labelled rows of both parts.
    """
    report: dict[str, object] = {
        "history_rows": history_rows,
        "purged_rows": split.purged,
        "unused_labelled_rows": split.unused,
    }
    series: dict[int, set[str]] = {}
    for part, name in enumerate(PART_NAMES):
        counts: Counter[str] = Counter()
        members = [(s, p == part) for s, p in zip(grid.segments, split.parts, strict=True)]
        for segment, inside in members:
            counts.update(segment.labels[inside])
        series[part] = {segment.series for segment, inside in members if inside.any()}
        unlabelled = counts.pop(UNLABELLED, 0)
        report[name] = {
            "series": sorted(series[part]),
            "rows": sum(counts.values()),
            "unlabelled_rows": unlabelled,
            "classes": dict(sorted(counts.items())),
        }
    report["shared"] = {
        f"{PART_NAMES[a]}_{PART_NAMES[b]}": {
            "series": len(series[a] & series[b]),
            "rows": _shared_rows(grid, split, a, b, history_rows),
        }
        for a, b in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST))
    }
    return report


def _shared_rows(grid: Grid, split: Split, a: int, b: int, history_rows: int) -> int:
    count = 0
    for segment, parts in zip(grid.segments, split.parts, strict=True):
        labelled = segment.labels != UNLABELLED
        seen = [_within((parts == part) & labelled, history_rows, both_ways=False) for part in (a, b)]
        count += int((seen[0] & seen[1]).sum())
    return count


def _within(mask: NDArray[np.bool_], reach: int, both_ways: bool) -> NDArray[np.bool_]:
    """Steps at most `reach` before a marked one, and after it if `both_ways`. (T,) to (T,)"""
    marks = np.concatenate([[0], np.cumsum(mask)])
    steps = np.arange(len(mask))
    last = np.minimum(steps + reach, len(mask) - 1)
    first = np.maximum(steps - reach, 0) if both_ways else steps
    return np.asarray(marks[last + 1] > marks[first])
