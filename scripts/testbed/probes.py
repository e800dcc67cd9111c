"""The probes of one link as sockets: 20 echoes and a train of packets a second."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterable

from scripts.testbed.attacks import echo_packet
from scripts.testbed.echoes import TRAIN_BYTES, Echoes, train_rate_bps
from scripts.testbed.links import DOWN
from scripts.testbed.sockets import try_send
from scripts.testbed.topology import Built

ECHOES_PER_S = 20
ECHO_PAYLOAD = bytes(56)
TRAIN_PORT = 7777
TRAIN_PACKETS = 8
TRAIN_VALID_S = 4.0
SO_TIMESTAMPNS = 35
MAX_READ = 64


class Probes:
    """The sockets: echoes from gateway to server, trains from server to gateway."""

    def __init__(self, built: Built):
        link = built.link
        self.echoes, self._rate_bps, self._number, self._train = Echoes(), link.rate_bps[DOWN], 0, 0
        self._arrivals: dict[int, list[tuple[int, float]]] = {}
        self._estimate: tuple[float, float] | None = None  # bit/s, when
        self._ping = built.gateway.socket(socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
        self._ping.connect((link.server, 0))
        self._source = built.server.socket(socket.SOCK_DGRAM)
        self._source.connect((link.gateway, TRAIN_PORT))
        self._target = built.gateway.socket(socket.SOCK_DGRAM)
        self._target.bind((link.gateway, TRAIN_PORT))
        for sock in (self._ping, self._target):
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def readers(self) -> Iterable[tuple[socket.socket, Callable[[], None]]]:
        """Sockets to watch, and what to call when they can be read."""
        return [(self._ping, self._read_echoes), (self._target, self._read_trains)]

    def send_echo(self) -> None:
        """Send one request."""
        self._number = (self._number + 1) & 0xFFFF
        packet = echo_packet(0, self._number, ECHO_PAYLOAD)
        self.echoes.sent(self._number, time.time())
        try_send(self._ping, packet)

    def send_train(self) -> None:
        """Send a train back to back."""
        self._train = (self._train + 1) & 0xFFFF
        for number in range(TRAIN_PACKETS):
            head = struct.pack("!HH", self._train, number)
            try_send(self._source, head + bytes(TRAIN_BYTES - 28 - len(head)))

    def bandwidth_bps(self, now_s: float) -> float | None:
        """The newest estimate, None when it is old."""
        if self._estimate is None or now_s - self._estimate[1] > TRAIN_VALID_S:
            return None
        return self._estimate[0]

    def _read_echoes(self) -> None:
        for data, when_s in _received(self._ping):
            self.echoes.answered(struct.unpack_from("!H", data, 6)[0], when_s)

    def _read_trains(self) -> None:
        for data, when_s in _received(self._target):
            train, number = struct.unpack_from("!HH", data)
            arrivals = self._arrivals.setdefault(train, [])
            arrivals.append((number, when_s))
            if len(self._arrivals) > 4:
                self._arrivals.pop(next(iter(self._arrivals)))
            if number == TRAIN_PACKETS - 1:
                rate_bps = train_rate_bps(arrivals, self._rate_bps)
                if rate_bps is not None:
                    self._estimate = (rate_bps, time.time())


def _received(sock: socket.socket) -> Iterable[tuple[bytes, float]]:
    """What lies there, each with the kernel's time of its arrival."""
    for _ in range(MAX_READ):
        try:
            data, notes, _, _ = sock.recvmsg(2048, 128)
        except OSError:
            return
        stamps = [value for _, kind, value in notes if kind == SO_TIMESTAMPNS]
        if stamps:
            seconds, nanoseconds = struct.unpack("qq", stamps[0][:16])
            yield data, seconds + nanoseconds * 1e-9
        else:
            yield data, time.time()
