"""Planned work: what happens in it wakes nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.raising import Alarms
from netanomaly.by_name import rows_by_name

ANY = ""
"""In the place of a series: all of them."""


@dataclass(frozen=True)
class Maintenance:
    """Windows of planned work by series, those of every series under `ANY`; start and end (excluded) in ns. (n, 2)"""

    windows: Mapping[str, NDArray[np.int64]]

    def of(self, series: str) -> NDArray[np.int64]:
        """The windows of a series, joined where they touch, in order. (n, 2)"""
        nothing = np.empty((0, 2), dtype=np.int64)
        found = np.concatenate([self.windows.get(name, nothing) for name in dict.fromkeys((series, ANY))])
        found = found[np.argsort(found[:, 0], kind="stable")]
        if not len(found):
            return found
        ends = np.maximum.accumulate(found[:, 1])
        opens = np.r_[True, found[1:, 0] > ends[:-1]]
        return np.stack([found[opens, 0], ends[np.r_[opens[1:], True]]], axis=1)


def suppress(alarms: Alarms, maintenance: Maintenance) -> tuple[Alarms, int]:
    """The alarms that are left, and how many were suppressed.

    An alarm that would be raised in a window is raised at its end if its incident still goes on then, else not at all.
    """
    kept, raised = np.ones(len(alarms), dtype=bool), alarms.raised.copy()
    for name, own in rows_by_name(alarms.series).items():
        windows = maintenance.of(name)
        if not len(windows):
            continue
        place = np.searchsorted(windows[:, 0], raised[own], side="right") - 1  # the window that began last
        inside = (place >= 0) & (raised[own] < windows[place, 1])
        ends = windows[place, 1]
        kept[own] = ~inside | (alarms.lasts[own] >= ends)
        raised[own] = np.where(inside, ends, raised[own])
    left = replace(alarms, raised=raised)[kept]
    return left[np.argsort(left.raised, kind="stable")], int((~kept).sum())
