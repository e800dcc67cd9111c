"""Measures all links at a steady beat; what comes late is said to have come late."""

from __future__ import annotations

import math
import os
import selectors
import time
from collections.abc import Callable

from scripts.testbed.counters import ProcFile, parse_device, parse_snmp, rates, totals
from scripts.testbed.forwarder import UserSpaceWire
from scripts.testbed.links import DOWN, UP
from scripts.testbed.netlink import QueueReader, TcpReader
from scripts.testbed.probes import ECHOES_PER_S, Probes
from scripts.testbed.processes import hurry
from scripts.testbed.rows import INTERVAL_S, Row
from scripts.testbed.topology import Built

TICK_S = 1 / ECHOES_PER_S
TICKS_PER_ROW = round(INTERVAL_S / TICK_S)


class Meter:
    """Everything that is measured of one link."""

    def __init__(self, built: Built):
        self.built, self.probes = built, Probes(built)
        self._device = ProcFile(built.gateway, "dev")
        self._site, self._server = ProcFile(built.site, "snmp"), ProcFile(built.server, "snmp")
        self._queues = (QueueReader(built.gateway, "wan0"), QueueReader(built.provider, "wan1"))
        self._connections = TcpReader(built.server)
        self._before: tuple[float, dict[str, float]] | None = None

    def read(self) -> tuple[float, dict[str, float | None]] | None:
        """The time of reading and the metrics since the last; None at the first."""
        now = time.time()
        queues = [queue.read() for queue in self._queues]
        site = parse_snmp(self._site.read())
        read = totals(
            parse_device(self._device.read(), "wan0"),
            site,
            parse_snmp(self._server.read()),
            (queues[UP].drops, queues[DOWN].drops),
        )
        connections = self._connections.read()
        before, self._before = self._before, (now, read)
        probed = self.probes.echoes.metrics(now)
        if before is None:
            return None
        count = len(connections)
        return now, {
            **rates(before[1], read, now - before[0]),
            **probed,
            "bandwidth_nominal_bps": self.built.link.rate_bps[DOWN],
            "bandwidth_est_bps": self.probes.bandwidth_bps(now),
            "queue_bytes": queues[DOWN].backlog_bytes,
            "queue_tx_bytes": queues[UP].backlog_bytes,
            "tcp_cwnd_segments": sum(window for _, window in connections) / count if count else None,
            "tcp_srtt_ms": sum(trip_ms for trip_ms, _ in connections) / count if count else None,
            "flows": site["Tcp.CurrEstab"],
        }


class Collector:
    """The beat: 20 echoes a second, a train a second, a row every half second."""

    def __init__(self, links: list[Built]):
        self._meters = [Meter(built) for built in links]
        self._selector = selectors.DefaultSelector()
        for meter in self._meters:
            for sock, read in meter.probes.readers():
                self._selector.register(sock, selectors.EVENT_READ, read)
        self.rows: list[Row] = []
        self._lag_ms, self._cpu = 0.0, _cpu_times()

    def run(self, start_s: float, end_s: float, check: Callable[[], None]) -> None:
        """Collect rows from `start_s` to `end_s` (Unix time).

        Args:
            check: is called once a row; raises to stop.
        """
        hurry(5)
        first = math.ceil(start_s / INTERVAL_S) * INTERVAL_S
        tick = 0
        while (due_s := first + tick * TICK_S) <= end_s:
            self._listen(due_s)
            self._lag_ms = max(self._lag_ms, (time.time() - due_s) * 1e3)
            for index, meter in enumerate(self._meters):
                meter.probes.send_echo()
                if tick % ECHOES_PER_S == (2 * index + 3) % ECHOES_PER_S:
                    meter.probes.send_train()
            if tick % TICKS_PER_ROW == 0:
                self._take_rows(due_s)
                check()
            tick += 1

    def _listen(self, until_s: float) -> None:
        """Read answers until the next beat, at least once."""
        while True:
            for key, _ in self._selector.select(max(0.0, until_s - time.time())):
                key.data()
            if time.time() >= until_s:
                return

    def _take_rows(self, due_s: float) -> None:
        cpu = _cpu_times()
        busy = 1 - (cpu[1] - self._cpu[1]) / max(1, cpu[0] - self._cpu[0])
        for meter in self._meters:
            read, wire = meter.read(), meter.built.wire
            late_ms = wire.late_ms() if isinstance(wire, UserSpaceWire) else None
            if read is not None:
                self.rows.append(Row(meter.built.link.name, due_s, *read, self._lag_ms, late_ms, busy))
        self._lag_ms, self._cpu = 0.0, cpu


def _cpu_times() -> tuple[int, int]:
    """All and idle ticks of all processors since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        values = [int(value) for value in file.readline().split()[1:9]]
    return sum(values), values[3] + values[4]


def machine() -> str:
    """What the run was measured on."""
    return f"{os.cpu_count()} processors, Linux {os.uname().release}"
