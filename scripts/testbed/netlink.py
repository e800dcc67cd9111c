"""Queues and TCP sockets, asked of the kernel through netlink (rtnetlink(7), sock_diag(7))."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.testbed.namespaces import Namespace

NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4
NLM_F_REQUEST, NLM_F_ECHO, NLM_F_DUMP = 0x001, 0x008, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_GETQDISC, TC_H_ROOT = 38, 0xFFFFFFFF
TCA_STATS2, TCA_STATS_QUEUE = 7, 3
SOCK_DIAG_BY_FAMILY, INET_DIAG_INFO, TCP_ESTABLISHED = 20, 2, 1
HEADER, TC_MESSAGE, DIAG_MESSAGE = 16, 20, 72
TCP_INFO_RTT, TCP_INFO_CWND = 68, 80
"""Offsets in struct tcp_info: smoothed round trip in microseconds, congestion window in segments."""


@dataclass(frozen=True)
class Queue:
    """A queue at one moment: bytes in it, packets it has dropped since it exists."""

    backlog_bytes: int
    drops: int


class Netlink:
    """A netlink socket in a namespace."""

    def __init__(self, namespace: Namespace, family: int):
        self._socket = namespace.socket(socket.SOCK_RAW, family, socket.AF_NETLINK)
        self._socket.bind((0, 0))
        self._socket.settimeout(1.0)
        self._number = 0

    def ask(self, kind: int, flags: int, body: bytes) -> Iterator[bytes]:
        """The bodies of the answers."""
        self._number += 1
        head = struct.pack("=IHHII", HEADER + len(body), kind, flags | NLM_F_REQUEST, self._number, 0)
        self._socket.send(head + body)
        while True:
            data, at = self._socket.recv(1 << 18), 0
            while at + HEADER <= len(data):
                length, answer, _, number, _ = struct.unpack_from("=IHHII", data, at)
                if number == self._number:
                    if answer in (NLMSG_ERROR, NLMSG_DONE):
                        return
                    yield data[at + HEADER : at + length]
                    if not flags & NLM_F_DUMP:
                        return
                at += (length + 3) & ~3


def attributes(data: bytes) -> dict[int, bytes]:
    """Type-length-value as netlink writes it: the values by type."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


class QueueReader:
    """The queue of a device."""

    def __init__(self, namespace: Namespace, device: str):
        self._netlink = Netlink(namespace, NETLINK_ROUTE)
        with namespace.entered():
            index = socket.if_nametoindex(device)
        self._body = struct.pack("=BBHiIII", 0, 0, 0, index, 0, TC_H_ROOT, 0)

    def read(self) -> Queue:
        """Now."""
        # NLM_F_ECHO: without it the kernel sends no answer to a question about one queue
        for message in self._netlink.ask(RTM_GETQDISC, NLM_F_ECHO, self._body):
            statistics = attributes(attributes(message[TC_MESSAGE:]).get(TCA_STATS2, b""))
            if TCA_STATS_QUEUE in statistics:
                _, backlog, drops = struct.unpack_from("=III", statistics[TCA_STATS_QUEUE])
                return Queue(backlog, drops)
        return Queue(0, 0)


class TcpReader:
    """The established TCP connections of a namespace."""

    def __init__(self, namespace: Namespace):
        self._netlink = Netlink(namespace, NETLINK_SOCK_DIAG)
        extensions = 1 << (INET_DIAG_INFO - 1)
        states = 1 << TCP_ESTABLISHED
        self._body = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, extensions, 0, states) + bytes(48)

    def read(self) -> list[tuple[float, int]]:
        """Smoothed round trip (ms) and congestion window (segments) of each."""
        found = []
        for message in self._netlink.ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, self._body):
            info = attributes(message[DIAG_MESSAGE:]).get(INET_DIAG_INFO, b"")
            if len(info) >= TCP_INFO_CWND + 4:
                (rtt_us,) = struct.unpack_from("=I", info, TCP_INFO_RTT)
                (window,) = struct.unpack_from("=I", info, TCP_INFO_CWND)
                found.append((rtt_us / 1e3, window))
        return found
