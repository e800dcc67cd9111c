"""Packets of floods and scans, towards the site of the same link."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import time
from collections.abc import Callable

from scripts.testbed.severity import DdosFlood, PortScan
from scripts.testbed.sockets import DATAGRAM_PORT, NOISE, OPEN_PORTS, Pace, Tasks
from scripts.testbed.topology import Built

SOURCES = 16
SPOOFED_PACKETS = 500
PULSE_S, PULSE_ON_S = 5.0, 3.0
PORTS = 65535
SYN = 0x02
ECHO_REQUEST = 8
CONNECT_TIMEOUT_S = 1.0


def checksum(data: bytes) -> int:
    """Of the Internet protocols (RFC 1071)."""
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total: int = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def syn_packet(source: str, target: str, source_port: int, port: int, rng: random.Random) -> bytes:
    """An IPv4 packet that asks for a connection (RFC 791, RFC 9293); the kernel fills in the checksum of its header."""
    between = socket.inet_aton(source) + socket.inet_aton(target)
    head = struct.pack("!HHIIBBH", source_port, port, rng.getrandbits(32), 0, 5 << 4, SYN, 64240)
    pseudo = between + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(head) + 4)
    tcp = head + struct.pack("!HH", checksum(pseudo + head + bytes(4)), 0)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), rng.getrandbits(16), 0, 64, socket.IPPROTO_TCP, 0)
    return ip + between + tcp


def echo_packet(identifier: int, sequence: int, payload: bytes) -> bytes:
    """An ICMP echo request (RFC 792)."""
    rest = struct.pack("!HH", identifier, sequence) + payload
    return struct.pack("!BBH", ECHO_REQUEST, 0, checksum(struct.pack("!BBH", ECHO_REQUEST, 0, 0) + rest)) + rest


async def flood(built: Built, what: DdosFlood, rng: random.Random, end_s: float) -> None:
    """Until `end_s` (Unix time)."""
    sockets, send = _flood_sender(built, what, rng)
    began, pace = time.time(), Pace(what.packets_per_s)
    while time.time() < end_s:
        count = await pace.due()
        if not (what.pulses and (time.time() - began) % PULSE_S > PULSE_ON_S):
            _repeat(send, count)
    for sock in sockets:
        sock.close()


def _flood_sender(
    built: Built, what: DdosFlood, rng: random.Random
) -> tuple[list[socket.socket], Callable[[], object]]:
    outsider, target, payload = built.outsider, built.link.site, NOISE[: what.payload_bytes]
    if what.mode == "icmp":
        sock = outsider.socket(socket.SOCK_RAW, socket.IPPROTO_ICMP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)  # nobody reads the answers
        packet = echo_packet(0x7777, 1, payload)
        return [sock], lambda: sock.sendto(packet, (target, 0))
    if what.mode == "syn":
        sock, port = outsider.socket(socket.SOCK_RAW, socket.IPPROTO_RAW), rng.choice(OPEN_PORTS)
        packets = [
            syn_packet(
                f"10.99.{rng.randint(128, 254)}.{rng.randint(1, 254)}", target, rng.randint(1024, PORTS), port, rng
            )
            for _ in range(SPOOFED_PACKETS)
        ]
        return [sock], lambda: sock.sendto(rng.choice(packets), (target, 0))
    sockets = [outsider.socket(socket.SOCK_DGRAM) for _ in range(SOURCES)]
    if what.mode == "udp":
        return sockets, lambda: rng.choice(sockets).sendto(payload, (target, DATAGRAM_PORT))
    return sockets, lambda: rng.choice(sockets).sendto(payload, (target, rng.randint(1024, PORTS)))


async def scan(built: Built, what: PortScan, rng: random.Random, end_s: float) -> None:
    """One port after the other until `end_s` (Unix time), from the first again after the last."""
    ports, tasks, target = list(range(1, PORTS)), Tasks(), built.link.site
    if not what.in_order:
        rng.shuffle(ports)
    if what.mode == "udp":
        sock, source_port = built.outsider.socket(socket.SOCK_DGRAM), 0
    else:
        sock, source_port = built.outsider.socket(socket.SOCK_RAW, socket.IPPROTO_RAW), rng.randint(30000, 60000)

    def probe(port: int) -> None:
        if what.mode == "connect":
            tasks.start(_connect(built, port))
        elif what.mode == "udp":
            sock.sendto(b"", (target, port))
        else:
            sock.sendto(syn_packet(built.link.outsider, target, source_port, port, rng), (target, 0))

    pace, done = Pace(what.packets_per_s), 0
    while time.time() < end_s:
        for _ in range(await pace.due()):
            with contextlib.suppress(OSError):
                probe(ports[done % len(ports)])
            done += 1
    await tasks.cancel()
    sock.close()


async def _connect(built: Built, port: int) -> None:
    sock = built.outsider.socket(socket.SOCK_STREAM)
    try:
        await asyncio.wait_for(
            asyncio.get_running_loop().sock_connect(sock, (built.link.site, port)), CONNECT_TIMEOUT_S
        )
    finally:
        sock.close()


def _repeat(send: Callable[[], object], count: int) -> None:
    for _ in range(count):
        with contextlib.suppress(OSError):  # a full queue loses packets
            send()
