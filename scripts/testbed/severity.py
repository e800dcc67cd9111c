"""What a fault of a class and severity does: the numbers behind the names."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from scripts.testbed.limits import MAX_FAULT_PPS
from scripts.testbed.links import DOWN, UP, Link
from scripts.testbed.randomness import log_uniform

HEADER_BYTES = 28
"""IPv4 and UDP or ICMP."""


@dataclass(frozen=True)
class Congestion:
    """More traffic to the site than the bottleneck carries."""

    mode: str
    """`udp`: a steady stream, `bursts`: one that comes and goes, `tcp`: greedy connections."""
    rate_bps: float
    packet_bytes: int
    on_s: float
    off_s: float
    connections: int
    from_outside: bool


@dataclass(frozen=True)
class BandwidthDrop:
    """The bottleneck becomes narrower."""

    factor: float
    both: bool
    shorter_queue: bool
    ramp_s: float
    flutters: bool


@dataclass(frozen=True)
class PacketLoss:
    """The wire loses packets."""

    share: float
    bursts: bool
    burst_packets: float
    directions: tuple[int, ...]
    ramp_s: float


@dataclass(frozen=True)
class LatencySpike:
    """The wire delays packets."""

    mode: str
    """`step`, `ramp` (over 8 s), `spikes` (that come and go), `jitter`."""
    add_ms: float
    jitter_ms: float
    memory_ms: float
    reorder: float
    directions: tuple[int, ...]


@dataclass(frozen=True)
class Bufferbloat:
    """The queue of the bottleneck is far too long, and greedy connections fill it."""

    queue_s: float
    connections: int
    from_outside: bool
    direction: int


@dataclass(frozen=True)
class LinkFlap:
    """The wire fails and comes back, again and again."""

    unplugged: bool
    down_s: float
    up_s: float


@dataclass(frozen=True)
class DdosFlood:
    """Many small packets to the site."""

    mode: str
    """`udp` (to a port with a listener), `udp_ports` (to any), `syn` (from spoofed sources), `icmp`."""
    packets_per_s: float
    payload_bytes: int
    pulses: bool


@dataclass(frozen=True)
class PortScan:
    """One packet to each of many ports of the site."""

    mode: str
    """`syn`, `connect`, `udp`."""
    packets_per_s: float
    in_order: bool


Parameters = Congestion | BandwidthDrop | PacketLoss | LatencySpike | Bufferbloat | LinkFlap | DdosFlood | PortScan
BOTH = (UP, DOWN)


def congestion(severity: float, link: Link, rng: random.Random) -> Congestion:
    """45 % to 130 % of the rate on top of the applications, or 3 to 16 greedy connections."""
    size = rng.choice([500, 900, 1200, 1400])
    wanted = link.rate_bps[DOWN] * (0.45 + 0.85 * severity)
    return Congestion(
        mode=rng.choice(["udp", "bursts", "tcp", "tcp"]),
        rate_bps=min(wanted, MAX_FAULT_PPS * 8 * (size + HEADER_BYTES)),
        packet_bytes=size,
        on_s=rng.uniform(1, 4),
        off_s=rng.uniform(0.4, 2),
        connections=3 + int(13 * severity),
        from_outside=rng.random() < 0.5,
    )


def bandwidth_drop(severity: float, link: Link, rng: random.Random) -> BandwidthDrop:
    """To 65 % of the rate, or down to 10 %."""
    return BandwidthDrop(
        factor=0.65 - 0.55 * severity,
        both=rng.random() < 0.3,
        shorter_queue=rng.random() < 0.5,
        ramp_s=rng.choice([0.0, 0.0, rng.uniform(2, 8)]),
        flutters=rng.random() < 0.3,
    )


def packet_loss(severity: float, link: Link, rng: random.Random) -> PacketLoss:
    """1 % to 15 % of the packets."""
    return PacketLoss(
        share=0.01 * 15**severity,
        bursts=rng.random() < 0.5,
        burst_packets=rng.uniform(3, 15),
        directions=rng.choice([(DOWN,), (DOWN,), BOTH, (UP,)]),
        ramp_s=rng.choice([0.0, 0.0, rng.uniform(2, 6)]),
    )


def latency_spike(severity: float, link: Link, rng: random.Random) -> LatencySpike:
    """8 to 240 ms more, or 3 to 60 ms of jitter."""
    return LatencySpike(
        mode=rng.choice(["step", "jitter", "spikes", "ramp"]),
        add_ms=8 * 30**severity,
        jitter_ms=3 * 20**severity,
        memory_ms=log_uniform(rng, 20, 500),
        reorder=rng.choice([0.0, 0.0, 0.0, rng.uniform(0.005, 0.05)]),
        directions=rng.choice([BOTH, (DOWN,), (UP,)]),
    )


def bufferbloat(severity: float, link: Link, rng: random.Random) -> Bufferbloat:
    """A queue of 0.3 to 2.7 seconds, filled by one to four connections."""
    return Bufferbloat(
        queue_s=0.3 * 9**severity,
        connections=rng.randint(1, 4),
        from_outside=rng.random() < 1 / 3,
        direction=UP if rng.random() < 0.2 else DOWN,
    )


def link_flap(severity: float, link: Link, rng: random.Random) -> LinkFlap:
    """Outages of 0.25 to 3.5 seconds, 1 to 6 seconds apart."""
    return LinkFlap(unplugged=rng.random() < 0.5, down_s=0.25 * 14**severity, up_s=rng.uniform(1, 6))


def ddos_flood(severity: float, link: Link, rng: random.Random) -> DdosFlood:
    """250 to 5,000 packets/s, 140 % of the rate at most."""
    payload = rng.choice([24, 60, 120, 250])
    most = min(MAX_FAULT_PPS, 1.4 * link.rate_bps[DOWN] / 8 / (payload + HEADER_BYTES))
    return DdosFlood(
        mode=rng.choice(["udp", "udp_ports", "syn", "icmp"]),
        packets_per_s=min(most, 250 * 20**severity),
        payload_bytes=payload,
        pulses=rng.random() < 0.3,
    )


def port_scan(severity: float, link: Link, rng: random.Random) -> PortScan:
    """15 to 750 ports a second, 250 at most where each is a connection."""
    mode = rng.choice(["syn", "syn", "connect", "udp"])
    rate = 15 * 50**severity
    return PortScan(mode, min(rate, 250.0) if mode == "connect" else rate, in_order=rng.random() < 0.5)


FAULTS: dict[str, Callable[[float, Link, random.Random], Parameters]] = {
    "bandwidth_drop": bandwidth_drop,
    "bufferbloat": bufferbloat,
    "congestion": congestion,
    "ddos_flood": ddos_flood,
    "latency_spike": latency_spike,
    "link_flap": link_flap,
    "packet_loss": packet_loss,
    "port_scan": port_scan,
}
