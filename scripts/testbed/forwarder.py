"""The user-space wire: a process that carries packets between two TUN devices and delays or drops them."""

from __future__ import annotations

import fcntl
import gc
import os
import select
import struct
import time
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from typing import Any

from scripts.testbed.impairment import WORDS, Impairment, Lane
from scripts.testbed.links import Link
from scripts.testbed.namespaces import Namespace
from scripts.testbed.processes import hurry
from scripts.testbed.randomness import draws
from scripts.testbed.relay import Relay

TUNSETIFF, TUNSETCARRIER = 0x400454CA, 0x400454E2
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES = 2048
BATCH = 64
"""Packets read from a device before others get their turn."""
IDLE_S = 0.02
VERSION, CARRIER, READY, LATE_MS, CARRIED, DROPPED, CPU_S = range(7)
FIRST = 8
"""Words before it are those above; then the impairments up and down."""


@dataclass
class UserSpaceWire:
    """Numbers that the forwarder shares with who changes and watches it."""

    words: Any
    """(FIRST + 2 WORDS,) of double."""

    @classmethod
    def create(cls) -> UserSpaceWire:
        """A wire without delay, its cable plugged in."""
        wire = cls(RawArray("d", FIRST + 2 * WORDS))
        wire.words[CARRIER] = 1.0
        for direction in (0, 1):
            wire.apply(direction, Impairment())
        return wire

    def apply(self, direction: int, impairment: Impairment) -> None:
        """Packets that enter in this direction from now on meet this."""
        at = FIRST + direction * WORDS
        self.words[at : at + WORDS] = impairment.as_words()
        self.words[VERSION] += 1  # the forwarder reads again when it has changed

    def carrier(self, on: bool) -> None:
        """Plug the cable of both ends in or out."""
        self.words[CARRIER] = float(on)
        self.words[VERSION] += 1

    def read(self, direction: int) -> Impairment:
        """What was applied."""
        at = FIRST + direction * WORDS
        return Impairment.from_words(self.words[at : at + WORDS])

    def late_ms(self) -> float:
        """How late a packet left at most, since this was last asked."""
        late, self.words[LATE_MS] = float(self.words[LATE_MS]), 0.0
        return late

    def wait_ready(self, timeout_s: float = 10.0) -> bool:
        """Until both devices are there."""
        until = time.monotonic() + timeout_s
        while not self.words[READY] and time.monotonic() < until:
            time.sleep(0.02)
        return bool(self.words[READY])


def forward(link: Link, ends: tuple[Namespace, Namespace], wire: UserSpaceWire, seed: int) -> None:
    """The process: carry packets until the run ends it."""
    devices = [_open_tun(ends[0], "wan0"), _open_tun(ends[1], "wan1")]
    lanes = (Lane(draws(seed, "wire", link.number, 0)), Lane(draws(seed, "wire", link.number, 1)))
    relay, words, seen = Relay(lanes), wire.words, -1.0
    hurry(10)
    gc.disable()  # nothing here makes cycles, and a collection would be a late packet
    words[READY] = 1.0

    def send(direction: int, packet: bytes) -> None:
        try:
            os.write(devices[1 - direction], packet)
        except OSError:
            relay.dropped += 1  # the cable is out

    now = time.monotonic()
    while True:
        if words[VERSION] != seen:
            seen = words[VERSION]
            for direction, lane in enumerate(lanes):
                lane.set(wire.read(direction))
            _set_carrier(devices, words[CARRIER] > 0.5)
        wait = relay.next_s(now + IDLE_S) - now
        ready, _, _ = select.select(devices, [], [], max(0.0, wait))
        for device in ready:
            _read_all(device, devices.index(device), relay)
        now = time.monotonic()
        relay.send_due(now, send)
        words[LATE_MS] = max(words[LATE_MS], relay.late_s * 1e3)
        relay.late_s = 0.0
        words[CARRIED], words[DROPPED], words[CPU_S] = relay.carried, relay.dropped, time.process_time()


def _read_all(device: int, direction: int, relay: Relay) -> None:
    for _ in range(BATCH):
        try:
            packet = os.read(device, PACKET_BYTES)
        except BlockingIOError:
            return
        relay.accept(direction, packet, time.monotonic())


def _open_tun(namespace: Namespace, name: str) -> int:
    with namespace.entered():
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def _set_carrier(devices: list[int], on: bool) -> None:
    for device in devices:
        fcntl.ioctl(device, TUNSETCARRIER, struct.pack("i", on))
