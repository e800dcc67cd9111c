"""Packets under way: each is held until its lane says that it leaves."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from scripts.testbed.impairment import Lane

MAX_HELD = 8192
"""Packets of one direction under way; more are dropped and counted."""


class Relay:
    """Both directions of a wire. Knows no clock and no devices: times are arguments."""

    def __init__(self, lanes: tuple[Lane, Lane]):
        self._lanes = lanes
        self._held: tuple[list[tuple[float, int, bytes]], ...] = ([], [])
        self._count = 0
        self.carried, self.dropped, self.late_s = 0, 0, 0.0

    def accept(self, direction: int, packet: bytes, now_s: float) -> None:
        """A packet has come."""
        leaves_s = self._lanes[direction].release(now_s)
        if leaves_s is None or len(self._held[direction]) >= MAX_HELD:
            self.dropped += 1
            return
        self._count += 1
        heapq.heappush(self._held[direction], (leaves_s, self._count, packet))

    def next_s(self, latest_s: float) -> float:
        """When the next packet leaves, `latest_s` at the latest."""
        return min([latest_s, *(held[0][0] for held in self._held if held)])

    def send_due(self, now_s: float, send: Callable[[int, bytes], None]) -> None:
        """Send what is due; packets that meet an outage on their way are lost."""
        for direction, held in enumerate(self._held):
            while held and held[0][0] <= now_s:
                leaves_s, _, packet = heapq.heappop(held)
                self.late_s = max(self.late_s, now_s - leaves_s)
                if self._lanes[direction].impairment.down:
                    self.dropped += 1
                    continue
                send(direction, packet)
                self.carried += 1
