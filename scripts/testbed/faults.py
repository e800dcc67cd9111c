"""The process that injects faults, one at a time on a link, and tells when each began and ended."""

from __future__ import annotations

import asyncio
import math
import random
import time
from dataclasses import replace
from multiprocessing.connection import Connection

from scripts.testbed import attacks
from scripts.testbed.impairment import Impairment
from scripts.testbed.links import DOWN, UP
from scripts.testbed.processes import be_nice
from scripts.testbed.randomness import draws
from scripts.testbed.schedule import Fault
from scripts.testbed.severity import (
    BandwidthDrop,
    Bufferbloat,
    Congestion,
    DdosFlood,
    LatencySpike,
    LinkFlap,
    PacketLoss,
    PortScan,
)
from scripts.testbed.sockets import NOISE, Pace, Tasks, datagrams, keep_sending, try_send
from scripts.testbed.topology import Built

DRIFT_EVERY_S = 2.0
RAMP_EVERY_S = 0.5
LATENCY_RAMP_S = 8.0
BEGAN, ENDED = "began", "ended"


class Wiring:
    """The wire of one link: health that drifts a little, and what a fault adds."""

    def __init__(self, built: Built, rng: random.Random):
        self.built, self._rng, self._drift = built, rng, 0.0
        self._added = [Impairment(), Impairment()]
        self._applied: list[Impairment | None] = [None, None]

    async def keep_drifting(self) -> None:
        """The delay in health wanders slowly."""
        while True:
            self._drift = 0.98 * self._drift + math.sqrt(1 - 0.98**2) * self._rng.gauss(0, 1)
            self._apply()
            await asyncio.sleep(DRIFT_EVERY_S)

    def add(self, direction: int, added: Impairment) -> None:
        """From now on, on top of health."""
        self._added[direction] = added
        self._apply()

    def restore(self) -> None:
        """Health: wire, cable, bottleneck."""
        for direction in (UP, DOWN):
            self._added[direction] = Impairment()
        self._apply()
        self.built.wire.carrier(True)
        self.shape(UP)
        self.shape(DOWN)

    def shape(self, direction: int, rate: float = 1.0, queue_bytes: float | None = None) -> None:
        """The bottleneck at a share of its rate, with another queue where one is given."""
        link = self.built.link
        queue = link.queue_bytes(direction) if queue_bytes is None else queue_bytes
        self.built.shape(direction, rate * link.rate_bps[direction], queue)

    def _apply(self) -> None:
        for direction, added in enumerate(self._added):
            wanted = self._with_health(added)
            if wanted != self._applied[direction]:
                self._applied[direction] = wanted
                self.built.wire.apply(direction, wanted)

    def _with_health(self, added: Impairment) -> Impairment:
        link = self.built.link
        healthy_ms = link.rtt_ms / 2 * (1 + link.wander * abs(self._drift))
        calm = added.jitter_ms == 0
        return replace(
            added,
            delay_ms=healthy_ms + added.delay_ms,
            jitter_ms=link.jitter_ms / 2 if calm else added.jitter_ms,
            memory_ms=link.jitter_memory_ms if calm else added.memory_ms,
            loss=link.loss + added.loss,
        )


def inject_all(links: list[Built], planned: list[Fault], seed: int, start_s: float, told: Connection) -> None:
    """The process: tells (number, BEGAN or ENDED, Unix time) of every fault."""
    be_nice(-15)
    asyncio.run(_inject_all(links, planned, seed, start_s, told))


async def _inject_all(links: list[Built], planned: list[Fault], seed: int, start_s: float, told: Connection) -> None:
    wirings = {built.link.name: Wiring(built, draws(seed, "drift", built.link.number)) for built in links}
    drifts = [asyncio.ensure_future(wiring.keep_drifting()) for wiring in wirings.values()]

    async def happen(fault: Fault) -> None:
        wiring, end_s = wirings[fault.link], start_s + fault.end_s
        await _until(start_s + fault.start_s)
        told.send((fault.number, BEGAN, time.time()))
        await inject(wiring, fault, draws(seed, "course", fault.number), end_s)
        wiring.restore()
        told.send((fault.number, ENDED, time.time()))

    try:
        await asyncio.gather(*map(happen, planned))
        await asyncio.gather(*drifts)  # the run ends this process
    finally:
        told.close()


async def inject(wiring: Wiring, fault: Fault, rng: random.Random, end_s: float) -> None:
    """Let a fault happen until `end_s` (Unix time)."""
    match fault.parameters:
        case Congestion() as what:
            await _congestion(wiring, what, end_s)
        case BandwidthDrop() as what:
            await _bandwidth_drop(wiring, what, rng, end_s)
        case PacketLoss() as what:
            await _packet_loss(wiring, what, end_s)
        case LatencySpike() as what:
            await _latency_spike(wiring, what, rng, end_s)
        case Bufferbloat() as what:
            await _bufferbloat(wiring, what, end_s)
        case LinkFlap() as what:
            await _link_flap(wiring, what, rng, end_s)
        case DdosFlood() as what:
            await attacks.flood(wiring.built, what, rng, end_s)
        case PortScan() as what:
            await attacks.scan(wiring.built, what, rng, end_s)


async def _congestion(wiring: Wiring, what: Congestion, end_s: float) -> None:
    built = wiring.built
    if what.mode == "tcp":
        source = built.outsider if what.from_outside else built.server
        tasks = Tasks()
        for _ in range(what.connections):
            tasks.start(keep_sending(source, built.link.site))
        await _until(end_s)
        await tasks.cancel()
        return
    sock, began = datagrams(built.outsider, built.link.site), time.time()
    pace = Pace(what.rate_bps / 8 / (what.packet_bytes + 28))
    while time.time() < end_s:
        count = await pace.due()
        silent = what.mode == "bursts" and (time.time() - began) % (what.on_s + what.off_s) > what.on_s
        for _ in range(0 if silent else count):
            try_send(sock, NOISE[: what.packet_bytes])
    sock.close()


async def _bandwidth_drop(wiring: Wiring, what: BandwidthDrop, rng: random.Random, end_s: float) -> None:
    began = time.time()
    while time.time() < end_s:
        reached = _ramp(time.time() - began, what.ramp_s)
        rate = 1 - (1 - what.factor) * reached
        if what.flutters:
            rate = min(0.9, rate * rng.uniform(0.75, 1.3))
        for direction in (UP, DOWN) if what.both else (DOWN,):
            queue = wiring.built.link.queue_bytes(direction) * (rate if what.shorter_queue else 1.0)
            wiring.shape(direction, rate, max(6000.0, queue))
        await _pause(2 * RAMP_EVERY_S if what.flutters else RAMP_EVERY_S, end_s)
        if reached == 1.0 and not what.flutters:
            await _until(end_s)


async def _packet_loss(wiring: Wiring, what: PacketLoss, end_s: float) -> None:
    began = time.time()
    while time.time() < end_s:
        share = what.share * _ramp(time.time() - began, what.ramp_s)
        added = Impairment(loss=share)
        if what.bursts:
            added = Impairment(burst_loss=share, burst_packets=what.burst_packets)
        for direction in what.directions:
            wiring.add(direction, added)
        await _pause(RAMP_EVERY_S, end_s)


async def _latency_spike(wiring: Wiring, what: LatencySpike, rng: random.Random, end_s: float) -> None:
    began, share = time.time(), 1 / len(what.directions)
    add_ms = what.add_ms
    while time.time() < end_s:
        added = Impairment(delay_ms=add_ms * share, reorder=what.reorder)
        if what.mode == "jitter":
            swing = what.jitter_ms * share
            added = Impairment(1.2 * swing, swing, what.memory_ms, reorder=what.reorder)
        elif what.mode == "ramp":
            added = replace(added, delay_ms=added.delay_ms * _ramp(time.time() - began, LATENCY_RAMP_S))
        for direction in what.directions:
            wiring.add(direction, added)
        if what.mode == "spikes":
            await _pause(rng.uniform(0.5, 2.5), end_s)
            add_ms = what.add_ms * rng.uniform(0.5, 1.5) if rng.random() < 0.45 else 0.0
        else:
            await _pause(RAMP_EVERY_S, end_s)


async def _bufferbloat(wiring: Wiring, what: Bufferbloat, end_s: float) -> None:
    built, tasks = wiring.built, Tasks()
    wiring.shape(what.direction, 1.0, built.link.rate_bps[what.direction] / 8 * what.queue_s)
    source, target = (built.outsider if what.from_outside else built.server), built.link.site
    if what.direction == UP:
        source, target = built.site, built.link.server
    for _ in range(what.connections):
        tasks.start(keep_sending(source, target))
    await _until(end_s)
    await tasks.cancel()


async def _link_flap(wiring: Wiring, what: LinkFlap, rng: random.Random, end_s: float) -> None:
    while time.time() < end_s:
        for down, mean_s in ((True, what.down_s), (False, what.up_s)):
            for direction in (UP, DOWN):
                wiring.add(direction, Impairment(down=down))
            if what.unplugged:
                wiring.built.wire.carrier(not down)
            await _pause(mean_s * rng.uniform(0.6, 1.4), end_s)


def _ramp(elapsed_s: float, ramp_s: float) -> float:
    """From almost nothing to 1 within a ramp; 1 without one."""
    return min(1.0, (elapsed_s + RAMP_EVERY_S) / ramp_s) if ramp_s else 1.0


async def _pause(seconds: float, end_s: float) -> None:
    await asyncio.sleep(max(0.0, min(seconds, end_s - time.time())))


async def _until(end_s: float) -> None:
    await asyncio.sleep(max(0.0, end_s - time.time()))
