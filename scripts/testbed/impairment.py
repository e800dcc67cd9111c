"""What a wire does to packets: delay, jitter, loss, reordering, outage. Pure: the time is an argument."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, fields

BURST_LOSS = 0.7
"""Share of packets that a burst takes."""
LEAST_DELAY_S = 50e-6


@dataclass(frozen=True)
class Impairment:
    """State of one direction of a wire."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    """Standard deviation of the delay."""
    memory_ms: float = 100.0
    """Time constant of the jitter, an Ornstein-Uhlenbeck process."""
    loss: float = 0.0
    """Share of packets lost independently of each other."""
    burst_loss: float = 0.0
    """Share of packets lost in bursts, in the long run: the Gilbert-Elliott model with two states."""
    burst_packets: float = 8.0
    """Mean length of a burst."""
    reorder: float = 0.0
    """Share of packets that take half the delay and overtake others."""
    down: bool = False

    def as_words(self) -> list[float]:
        """As numbers, in the order of the fields."""
        return [float(getattr(self, field.name)) for field in fields(self)]

    @classmethod
    def from_words(cls, words: list[float]) -> Impairment:
        """Back from numbers."""
        delay, jitter, memory, loss, burst_loss, burst_packets, reorder, down = words
        return cls(delay, jitter, memory, loss, burst_loss, burst_packets, reorder, down > 0.5)

    def burst_chances(self) -> tuple[float, float]:
        """Chance that a burst begins, and ends, at a packet."""
        inside = min(0.9, self.burst_loss / BURST_LOSS)
        ends = 1 / max(1.0, self.burst_packets)
        return min(1.0, inside / (1 - inside) * ends), ends


WORDS = len(fields(Impairment))


class Lane:
    """One direction of a wire: says of each packet when it leaves, or that it never does."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._swing = 0.0  # the jitter, in standard deviations
        self._seen_s: float | None = None
        self._last_s = 0.0
        self._in_burst = False
        self.set(Impairment())

    def set(self, impairment: Impairment) -> None:
        """Packets that arrive from now on meet this."""
        self.impairment = impairment
        self._burst_begins, self._burst_ends = impairment.burst_chances()

    def release(self, now_s: float) -> float | None:
        """When a packet that arrives now leaves, in seconds of the same clock; None: it is lost."""
        if self.impairment.down or self._lost():
            return None
        delay_s = self.impairment.delay_ms / 1e3
        if self.impairment.jitter_ms > 0:
            delay_s = max(LEAST_DELAY_S, delay_s + self.impairment.jitter_ms / 1e3 * self._next_swing(now_s))
        if self.impairment.reorder > 0 and self._rng.random() < self.impairment.reorder:
            return now_s + delay_s / 2
        self._last_s = max(self._last_s, now_s + delay_s)  # in order
        return self._last_s

    def _lost(self) -> bool:
        loss = self.impairment.loss
        if self.impairment.burst_loss > 0:
            chance = self._burst_ends if self._in_burst else self._burst_begins
            if self._rng.random() < chance:
                self._in_burst = not self._in_burst
            if self._in_burst:
                loss = BURST_LOSS
        return loss > 0 and self._rng.random() < loss

    def _next_swing(self, now_s: float) -> float:
        if self._seen_s is None:
            self._swing = self._rng.gauss(0, 1)
        else:
            kept = math.exp(-(now_s - self._seen_s) / max(1e-3, self.impairment.memory_ms / 1e3))
            self._swing = kept * self._swing + math.sqrt(1 - kept * kept) * self._rng.gauss(0, 1)
        self._seen_s = now_s
        return self._swing
