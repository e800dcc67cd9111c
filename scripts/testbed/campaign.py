"""One run from first to last: links are built, everything starts, rows are collected, everything ends."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

from scripts.testbed.collector import Collector, machine
from scripts.testbed.faults import BEGAN, inject_all
from scripts.testbed.forwarder import CARRIED, CPU_S, DROPPED, UserSpaceWire
from scripts.testbed.links import Link
from scripts.testbed.namespaces import leave_host
from scripts.testbed.netem import kernel_has_netem
from scripts.testbed.processes import SPAWN, Children
from scripts.testbed.rows import Row
from scripts.testbed.schedule import WARM_UP_S, Fault
from scripts.testbed.topology import Built, build
from scripts.testbed.traffic import applications
from scripts.testbed.writing import Incident

from netanomaly.errors import ConfigError

BUILD_S = 60.0
"""Time that building may take before the processes would end."""
SETTLE_S = 2.0


def _say(line: str) -> None:
    print(line, flush=True)  # a run takes minutes: whoever watches a pipe wants to know


@dataclass
class Campaign:
    """What a run has measured so far."""

    rows: list[Row] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    stopped: str | None = None
    """Why it ended early, if it did."""


def run_campaign(
    links: list[Link],
    faults: list[Fault],
    seconds: float,
    seed: int,
    wire: str = "forwarder",
    say: Callable[[str], None] = _say,
) -> Campaign:
    """Emulate, inject, measure. Ctrl-C and SIGTERM end it early with what was measured so far.

    Args:
        wire: `forwarder`, `netem`, or `auto` for netem where the kernel has it.
        say: is told what happens, a line each.

    Raises:
        ConfigError: not Linux, no privilege, or something is missing.
    """
    leave_host()
    netem = _chosen(wire)
    children, found = Children(), Campaign()
    try:
        with _stoppable():
            _run(links, faults, seconds, seed, netem, say, children, found)
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    finally:
        children.end()
    found.about["cpu_s"] = _cpu_seconds()
    return found


def _run(
    links: list[Link],
    faults: list[Fault],
    seconds: float,
    seed: int,
    netem: bool,
    say: Callable[[str], None],
    children: Children,
    found: Campaign,
) -> None:
    latest_s = time.time() + BUILD_S + seconds
    built = [build(link, netem, children, seed, latest_s) for link in links]
    start_s = time.time() + SETTLE_S
    told, tell = SPAWN.Pipe(duplex=False)
    children.start(applications, built, seed, start_s, end_s=start_s + seconds, name="traffic")
    children.start(inject_all, built, faults, seed, start_s, tell, end_s=start_s + seconds, name="faults")
    collector, began = Collector(built), {}
    planned = {fault.number: fault for fault in faults}
    found.rows = collector.rows
    say(f"{len(links)} links are up ({'netem' if netem else 'user-space forwarder'}), {len(faults)} faults to come")

    def check() -> None:
        if (name := children.dead()) is not None:
            raise ConfigError(f"the process of {name} has failed: see above")
        while told.poll():
            number, what, when_s = told.recv()
            if what == BEGAN:
                began[number] = when_s
                fault = planned[number]
                say(f"{when_s - start_s:6.1f} s  {fault.link}  {fault.label}, severity {fault.severity:.2f}")
            else:
                found.incidents.append(Incident(planned[number], began.pop(number), when_s))

    try:
        collector.run(start_s + WARM_UP_S, start_s + seconds, check)
    finally:
        found.incidents += [Incident(planned[number], since_s, time.time()) for number, since_s in began.items()]
        found.about = _about(built, netem, seconds, seed, faults)


def _about(built: list[Built], netem: bool, seconds: float, seed: int, faults: list[Fault]) -> dict[str, Any]:
    wires = {one.link.name: one.wire for one in built if isinstance(one.wire, UserSpaceWire)}
    return {
        "seed": seed,
        "seconds": seconds,
        "machine": machine(),
        "wire": "netem" if netem else "forwarder",
        "forwarders": {
            name: {
                "carried": int(wire.words[CARRIED]),
                "dropped": int(wire.words[DROPPED]),
                "cpu_s": round(float(wire.words[CPU_S]), 2),
            }
            for name, wire in wires.items()
        },
        "links": [asdict(one.link) for one in built],
        "faults": [{**asdict(fault), "parameters": asdict(fault.parameters)} for fault in faults],
    }


def _cpu_seconds() -> float:
    """Processor time of this process and of all that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(one.ru_utime + one.ru_stime for one in used), 1)


def _chosen(wire: str) -> bool:
    """Whether the kernel's netem is the wire.

    Raises:
        ConfigError: it was asked for and is not there.
    """
    there = wire != "forwarder" and kernel_has_netem()
    if wire == "netem" and not there:
        raise ConfigError("--wire netem: this kernel has no netem (module sch_netem); --wire forwarder needs none")
    return there


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM is as Ctrl-C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
