"""What a stream keeps of each series that is alive, and of those that it has forgotten."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.data.feed import FeedRule
from netanomaly.data.live_grid import LiveGrid
from netanomaly.stream_slots import SeriesSlots

RECENT = 1000
"""Rows whose median time is the clock of all series: some wrong times do not move it."""


@dataclass(frozen=True)
class Kept:
    """How much is kept of each series: rows of metrics, channels, validity, and what the sequence model remembers."""

    baseline: int
    kernel: int
    valid: int
    window: int
    metrics: int
    channels: int
    remembered: int


class StreamMemory:
    """Rings of the last rows of each series, in slots that are given again once a series is forgotten.

    Args:
        forget_after: nanoseconds for which the others go on after the gap that ends a segment anyway; None: for ever.

    Attributes:
        values: metrics. (S, baseline, M)
        channels: (S, kernel, C)
        valid: whether anything was measured. (S, valid)
        memory: what the sequence model keeps of a row. (S, window, R)
        too_early: series that went on where they had stopped after they had been forgotten, counted: they were answered
            as if the rows before had been missing.
    """

    def __init__(self, rule: FeedRule, kept: Kept, device: torch.device, forget_after: int | None) -> None:
        self.grid = LiveGrid(rule, 0)
        self.forget_after = forget_after
        self.values = np.empty((0, kept.baseline, kept.metrics))
        self.channels = np.empty((0, kept.kernel, kept.channels), dtype=np.float32)
        self.valid = np.empty((0, kept.valid), dtype=np.bool_)
        self.memory = torch.empty(0, kept.window, kept.remembered, device=device)
        self.too_early = 0
        self._seen = np.empty(0, dtype=np.int64)  # when a series was last seen, by the clock of all. (S,)
        self._recent = np.empty(0, dtype=np.int64)  # times of the last rows. (RECENT,) at most
        self._clock = 0  # their median
        self._slots = SeriesSlots()
        self._unchecked = 0  # rows since it was looked who can be forgotten
        self._returned: list[int] = []  # slots of series that come back with the rows at hand

    @property
    def series(self) -> list[str]:
        """The series that have a slot."""
        return list(self._slots.places)

    @property
    def alive(self) -> KeysView[str]:
        """The same, as they are at any time."""
        return self._slots.places.keys()

    @property
    def known(self) -> list[str]:
        """These, and forgotten ones of which it is known where they stood."""
        return [*self._slots.places, *self._slots.gone]

    def slots_of(self, series: NDArray[np.object_]) -> tuple[NDArray[np.int64], list[str]]:
        """The slot of each row's series, and the names of those that had none. (n,) to (n,)"""
        slots, fresh = self._slots.of(series)
        self._make_room(self._slots.used)
        places = np.array([self._slots.places[name] for name in fresh], dtype=np.int64)
        self.grid.clear(places)
        self.values[places], self.channels[places], self.valid[places] = np.nan, 0, False
        self._seen[places] = 0
        self.memory[torch.from_numpy(places)] = 0
        self._returned = []
        for name, place in zip(fresh, places.tolist(), strict=True):
            if (standing := self._slots.gone.pop(name, None)) is not None:
                self.grid.stand(place, standing)
                self._returned.append(place)
        return slots, fresh

    def note(self, slots: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        """Rows are about to be taken, each series in order of time: it was seen, or forgotten too early."""
        self._recent = np.concatenate([self._recent, times])[-RECENT:]
        np.maximum.at(self._seen, slots, np.maximum(times, self._clock))
        if self._returned:
            place = np.array([np.flatnonzero(slots == slot)[0] for slot in self._returned])
            jumps = self.grid.apart(slots[place], times[place])
            self.too_early += int((jumps - 1 <= self.grid.rule.max_gap).sum())

    def last_times(self, series: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Time of the last row of each series, forgotten ones too, 0 if it had none; whether it had any. (n,), (n,)"""
        times = [self._last_time(name) for name in series]
        known = np.array([time is not None for time in times], dtype=np.bool_)
        return np.array([time or 0 for time in times], dtype=np.int64), known

    def _last_time(self, name: str) -> int | None:
        place = self._slots.places.get(name)
        standing = self._slots.gone.get(name) if place is None else self.grid.standing(place)
        return None if standing is None else standing[0]

    def forget(self, series: Iterable[str]) -> None:
        """Free the slots of these series; what outlives a segment stays known."""
        for name in series:
            standing = self.grid.standing(self._slots.places[name])
            self._slots.release(name)
            if standing is not None:
                self._slots.remember(name, standing)

    def begin_again(self, name: str) -> None:
        """Nothing is known of a series any more: its next row may be older than its last."""
        if name in self._slots.places:
            self._slots.release(name)
        self._slots.gone.pop(name, None)

    def forget_silent(self, rows: int) -> None:
        """Forget who has been silent for too long, before so many rows come; looked at once a round of all series."""
        self._unchecked += rows
        if self.forget_after is None or self._unchecked < len(self._slots.places):
            return
        self._unchecked = 0
        slots, rule = self._slots.taken(), self.grid.rule
        if not len(slots) or not len(self._recent):
            return
        self._clock = int(np.sort(self._recent)[(len(self._recent) - 1) // 2])
        silence = (rule.max_gap + 3) * rule.interval_ns + self.forget_after  # 3: the step itself, and rounding
        names = self.series
        self.forget([names[place] for place in np.flatnonzero(self._clock - self._seen[slots] > silence)])

    def _make_room(self, slots: int) -> None:
        more = slots - len(self.valid)
        if more <= 0:
            return
        more = max(more, len(self.valid))
        self.grid.grow(more)
        for name in ("values", "channels", "valid", "_seen"):
            kept = getattr(self, name)
            setattr(self, name, np.concatenate([kept, np.empty((more, *kept.shape[1:]), dtype=kept.dtype)]))
        self.memory = torch.cat([self.memory, self.memory.new_empty(more, *self.memory.shape[1:])])

    def content(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All that is known, to be written: arrays of the series, and words."""
        slots = self._slots.taken()
        arrays = {name: array[slots] for name, array in self._arrays().items()}
        arrays["memory"] = self.memory[torch.from_numpy(slots)].cpu().numpy()
        words = {"series": self.series, "gone": self._slots.gone}
        return arrays, {**words, "clock": self._clock, "recent": self._recent.tolist()}

    def fill(self, arrays: Mapping[str, NDArray[Any]], words: Mapping[str, Any]) -> None:
        """Take what `content` gave, in the place of nothing.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it is something else.
        """
        gone = {
            str(name): (int(time), int(clock), bool(shared)) for name, (time, clock, shared) in words["gone"].items()
        }
        slots, fresh = self.slots_of(np.array(words["series"], dtype=object))
        self._slots.gone, self._clock = gone, int(words["clock"])
        self._recent = np.array(words["recent"], dtype=np.int64)[-RECENT:]
        mine, _ = self.content()
        if len(fresh) != len(slots) or any(arrays[name].shape != array.shape for name, array in mine.items()):
            raise ValueError("the state does not fit the bundle")
        for name, array in self._arrays().items():
            array[slots] = arrays[name]
        self.memory[torch.from_numpy(slots)] = torch.from_numpy(arrays["memory"]).to(self.memory)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "values": self.values,
            "channels": self.channels,
            "valid": self.valid,
            "seen": self._seen,
            **self.grid.state,
        }
