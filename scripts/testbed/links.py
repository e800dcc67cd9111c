"""The links: what each is like and how busy, drawn from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scripts.testbed.randomness import draws, log_uniform

UP, DOWN = 0, 1
"""Directions: from the site, to the site."""
MIN_QUEUE_BYTES = 6000


@dataclass(frozen=True)
class Link:
    """One link. Rates in bit/s, shares between 0 and 1."""

    name: str
    number: int
    """From 1; the third byte of its addresses."""
    rate_bps: tuple[float, float]
    """Of the bottleneck, up and down."""
    buffer_ms: tuple[float, float]
    """How long a full queue of the bottleneck takes to drain, up and down."""
    rtt_ms: float
    jitter_ms: float
    jitter_memory_ms: float
    """Time after which jitter has forgotten most of its value."""
    loss: float
    wander: float
    """How far the round trip drifts in health, as a share of it."""
    load: float
    """Mean share of the rate to the site that applications ask for."""
    swing: float
    period_s: float
    phase: float
    """Amplitude (relative), period and phase of the slow swing of the load."""
    web_share: float
    videos: int
    calls: int
    streams: int
    bulk_every_s: float
    upload_every_s: float
    bbr_share: float
    strays_per_s: float
    """Connection attempts from outside to ports of the site, in health."""

    def queue_bytes(self, direction: int) -> float:
        """Length of the bottleneck's queue."""
        return max(MIN_QUEUE_BYTES, self.rate_bps[direction] / 8 * self.buffer_ms[direction] / 1e3)

    def address(self, host: int) -> str:
        """An address of this link."""
        return f"10.99.{self.number}.{host}"

    @property
    def site(self) -> str:
        """Address of the site's host."""
        return self.address(14)

    @property
    def gateway(self) -> str:
        """Address of the site's gateway towards the link."""
        return self.address(1)

    @property
    def server(self) -> str:
        """Address of the server behind the provider."""
        return self.address(6)

    @property
    def outsider(self) -> str:
        """Address of another host behind the provider."""
        return self.address(10)


def draw_links(seed: int, count: int) -> list[Link]:
    """Links from the ranges of those in `data/testbed/`."""
    return [_draw(seed, number) for number in range(1, count + 1)]


def _draw(seed: int, number: int) -> Link:
    rng = draws(seed, "link", number)
    down = _half_megabits(log_uniform(rng, 8e6, 40e6))
    up = max(3e6, _half_megabits(down * rng.choice([1.0, 0.5, 0.35])))
    return Link(
        name=f"t{number:02d}",
        number=number,
        rate_bps=(up, down),
        buffer_ms=(log_uniform(rng, 60, 250), log_uniform(rng, 35, 220)),
        rtt_ms=log_uniform(rng, 10, 100),
        jitter_ms=log_uniform(rng, 0.05, 1.2),
        jitter_memory_ms=log_uniform(rng, 20, 400),
        loss=log_uniform(rng, 1e-6, 4e-4),
        wander=rng.uniform(0.0, 0.06),
        load=rng.uniform(0.15, 0.5),
        swing=rng.uniform(0.3, 0.8),
        period_s=rng.uniform(220, 700),
        phase=rng.uniform(0, 2 * math.pi),
        web_share=rng.uniform(0.3, 0.8),
        videos=rng.randint(0, 3),
        calls=rng.randint(0, 2),
        streams=int(rng.random() < 0.6),
        bulk_every_s=log_uniform(rng, 70, 350),
        upload_every_s=log_uniform(rng, 60, 300),
        bbr_share=rng.choice([0.0, 0.1, 0.3, 0.6]),
        strays_per_s=log_uniform(rng, 0.02, 1.0),
    )


def _half_megabits(rate_bps: float) -> float:
    return round(rate_bps / 5e5) * 5e5
