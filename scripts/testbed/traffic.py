"""The process of the applications in health: web, video, calls, streams, bulk, uploads, telemetry, strays."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import socket
import time
from collections.abc import Callable

from scripts.testbed.links import DOWN, UP
from scripts.testbed.processes import be_nice
from scripts.testbed.randomness import draws, log_uniform
from scripts.testbed.sockets import (
    FETCH_PORT,
    NOISE,
    OPEN_PORTS,
    SINK_PORT,
    Tasks,
    datagrams,
    discard,
    ignore_datagrams,
    listen,
    try_send,
)
from scripts.testbed.topology import Built
from scripts.testbed.transfers import Transfer, serve, transfer

MEAN_PAGE_BYTES = 226e3
MAX_PAGES = 20
VIDEO_BPS = (0.5e6, 0.8e6, 1.5e6, 2.5e6, 4e6, 6e6)
SWEEPS_PER_S = 0.03


def applications(links: list[Built], seed: int, start_s: float) -> None:
    """The process; the run ends it."""
    be_nice(-15)
    asyncio.run(_applications(links, seed, start_s))


async def _applications(links: list[Built], seed: int, start_s: float) -> None:
    tasks, open_sockets = Tasks(), []
    for built in links:
        link, rng = built.link, draws(seed, "traffic", built.link.number)
        tasks.start(listen(built.server, link.server, FETCH_PORT, serve))
        tasks.start(listen(built.server, link.server, SINK_PORT, discard))
        for port in (SINK_PORT, *OPEN_PORTS):
            tasks.start(listen(built.site, link.site, port, discard))
        open_sockets += [ignore_datagrams(built.site, link.site), ignore_datagrams(built.server, link.server)]
        tasks.start(_web(built, rng, _load(built, rng, start_s)))
        for work in (_bulk, _uploads, _telemetry, _strays):
            tasks.start(work(built, rng))
        for work, count in ((_video, link.videos), (_call, link.calls), (_stream, link.streams)):
            for number in range(count):
                tasks.start(work(built, draws(seed, work.__name__, link.number, number)))
    while open_sockets:
        await asyncio.sleep(1.0)


def _load(built: Built, rng: random.Random, start_s: float) -> Callable[[], float]:
    """Share of the rate that applications ask for: a slow swing, and chance that remembers for a minute."""
    link, mood, seen = built.link, 0.0, time.time()

    def load() -> float:
        nonlocal mood, seen
        now = time.time()
        kept = math.exp(-(now - seen) / 60)
        mood, seen = kept * mood + math.sqrt(1 - kept * kept) * rng.gauss(0, 0.35), now
        swing = 1 + link.swing * math.sin(2 * math.pi * (now - start_s) / link.period_s + link.phase)
        return min(0.85, max(0.02, link.load * swing * math.exp(mood)))

    return load


async def _web(built: Built, rng: random.Random, load: Callable[[], float]) -> None:
    """Pages of up to 25 objects, four at a time."""
    pages = Tasks()

    async def page() -> None:
        turns = asyncio.Semaphore(4)

        async def part() -> None:
            async with turns:
                size = min(8e6, max(300.0, rng.lognormvariate(9.6, 1.5)))
                await transfer(built, Transfer(size, timeout_s=25), rng)

        count = min(25, 1 + int(math.log(1 - rng.random()) / math.log(0.8)))
        await asyncio.gather(*[part() for _ in range(count)])

    while True:
        pages_per_s = max(0.01, built.link.web_share * load() * built.link.rate_bps[DOWN] / 8 / MEAN_PAGE_BYTES)
        await asyncio.sleep(min(5.0, rng.expovariate(pages_per_s)))
        if len(pages) < MAX_PAGES:
            pages.start(page())


async def _video(built: Built, rng: random.Random) -> None:
    """Segments of a few seconds, of the quality that the link allows."""
    rates = [rate for rate in VIDEO_BPS if rate <= 0.3 * built.link.rate_bps[DOWN]]
    await asyncio.sleep(rng.uniform(0, 120))
    while True:
        quality, segment_s = rng.randrange(len(rates)), rng.choice([2, 3, 4])
        over = time.time() + rng.uniform(40, 240)
        while time.time() < over:
            began, rate = time.time(), rates[quality]
            most = rate * rng.uniform(1.5, 4) if rng.random() < 0.3 else 0.0
            size = rate * segment_s / 8 * rng.lognormvariate(0, 0.25)
            await transfer(built, Transfer(size, timeout_s=20, rate_bps=most), rng)
            took = time.time() - began
            if took > 0.9 * segment_s:
                quality = max(0, quality - 1)
            elif took < 0.4 * segment_s and rng.random() < 0.3:
                quality = min(len(rates) - 1, quality + 1)
            await asyncio.sleep(max(0.0, segment_s - took))
        await asyncio.sleep(rng.uniform(30, 200))


async def _call(built: Built, rng: random.Random) -> None:
    """Voice: small datagrams at a steady pace, both ways."""
    ends = (datagrams(built.site, built.link.server), datagrams(built.server, built.link.site))
    await asyncio.sleep(rng.uniform(0, 100))
    while True:
        every_s, payload = rng.choice([0.02, 0.03]), NOISE[: rng.choice([92, 172, 400])]
        over, due = time.time() + rng.uniform(20, 120), time.time()
        while time.time() < over:
            for end in ends:
                try_send(end, payload)
            due = max(due + every_s, time.time() - 0.2)
            await asyncio.sleep(max(0.0, due - time.time()))
        await asyncio.sleep(rng.uniform(20, 180))


async def _stream(built: Built, rng: random.Random) -> None:
    """Live media: datagrams from the server at a share of the rate."""
    sock = datagrams(built.server, built.link.site)
    await asyncio.sleep(rng.uniform(0, 200))
    while True:
        size, share = rng.randint(700, 1250), rng.uniform(0.04, 0.3)
        per_s = built.link.rate_bps[DOWN] * share / 8 / (size + 28)
        owed, now = 0.0, time.time()
        over = now + rng.uniform(15, 100)
        while now < over:
            await asyncio.sleep(0.01)
            owed, now = min(owed + (time.time() - now) * per_s, 60.0), time.time()
            while owed >= 1:
                try_send(sock, NOISE[:size])
                owed -= 1
        await asyncio.sleep(rng.uniform(60, 300))


async def _bulk(built: Built, rng: random.Random) -> None:
    """Downloads worth 3 to 25 seconds of the whole link."""
    rate_bps = built.link.rate_bps[DOWN]
    while True:
        await asyncio.sleep(rng.expovariate(1 / built.link.bulk_every_s))
        most = rate_bps * rng.uniform(0.3, 0.9) if rng.random() < 0.4 else 0.0
        count = 1 if rng.random() < 0.8 else 2
        wanted = Transfer(rate_bps / 8 * log_uniform(rng, 3, 25) / count, timeout_s=90, rate_bps=most)
        await asyncio.gather(*[transfer(built, wanted, rng) for _ in range(count)])


async def _uploads(built: Built, rng: random.Random) -> None:
    rate_bps = built.link.rate_bps[UP]
    while True:
        await asyncio.sleep(rng.expovariate(1 / built.link.upload_every_s))
        most = rate_bps * rng.uniform(0.3, 0.8) if rng.random() < 0.5 else 0.0
        size = rate_bps / 8 * log_uniform(rng, 1, 12)
        await transfer(built, Transfer(size, timeout_s=60, rate_bps=most, upload=True), rng)


async def _telemetry(built: Built, rng: random.Random) -> None:
    sock = datagrams(built.site, built.link.server)
    while True:
        try_send(sock, NOISE[: rng.randint(40, 600)])
        await asyncio.sleep(rng.expovariate(6))


async def _strays(built: Built, rng: random.Random) -> None:
    """Connection attempts from outside, now and then a small sweep: what a scan has to stand out from."""
    strays, per_s = Tasks(), built.link.strays_per_s
    while True:
        await asyncio.sleep(rng.expovariate(per_s))
        if rng.random() >= SWEEPS_PER_S / max(0.2, per_s):
            strays.start(_stray(built, rng.randint(1, 9999)))
            continue
        pause_s = rng.uniform(0.02, 0.2)
        for _ in range(rng.randint(5, 80)):
            strays.start(_stray(built, rng.choice([*OPEN_PORTS, rng.randint(1, 9999)])))
            await asyncio.sleep(pause_s * rng.random())


async def _stray(built: Built, port: int) -> None:
    sock = built.outsider.socket(socket.SOCK_STREAM)
    with contextlib.closing(sock):
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(sock, (built.link.site, port)), 2)
