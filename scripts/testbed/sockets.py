"""Sockets of applications and faults: ports, transfers, and a pace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable

from scripts.testbed.limits import MAX_FAULT_PPS
from scripts.testbed.namespaces import Namespace

FETCH_PORT = 8000
"""At the server: answers with as many bytes as were asked for."""
SINK_PORT = 9000
"""At site and server: reads and forgets."""
DATAGRAM_PORT = 5004
"""At site and server: datagrams of applications."""
OPEN_PORTS = (80, 443, 22)
"""At the site: services that floods and scans find."""
NOISE = os.urandom(1 << 18)
SO_MAX_PACING_RATE = 47
CONGESTION_CONTROLS = ("cubic", "bbr", "reno")
DUE_EVERY_S = 0.005


class Tasks:
    """Tasks that run until they are done or all are cancelled; asyncio itself keeps none of them alive."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Awaitable[None]) -> None:
        """Begin; a connection that fails is part of the emulation."""
        task = asyncio.ensure_future(_forgiving(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def __len__(self) -> int:
        return len(self._running)

    async def cancel(self) -> None:
        """End all of them."""
        await asyncio.sleep(0)  # those that were started just now begin, or what they would await is never awaited
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _forgiving(work: Awaitable[None]) -> None:
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        await work


class Pace:
    """So many packets a second, never more than `MAX_FAULT_PPS`."""

    def __init__(self, packets_per_s: float):
        self.rate = min(packets_per_s, MAX_FAULT_PPS)
        self._sent_until = time.monotonic()

    async def due(self) -> int:
        """Wait a moment; how many are to be sent now. What a busy machine delayed by over 100 ms is not made up for."""
        await asyncio.sleep(DUE_EVERY_S)
        now = time.monotonic()
        count = int(min(now - self._sent_until, 0.1) * self.rate)
        if now - self._sent_until > 0.1:
            self._sent_until = now
        else:
            self._sent_until += count / self.rate
        return count


def control_congestion(sock: socket.socket, algorithm: str) -> None:
    """Choose the TCP congestion control; the kernel's default stays where it has no other."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())


def reset(sock: socket.socket) -> None:
    """Close at once: the other side gets a reset."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


async def listen(
    namespace: Namespace, address: str, port: int, serve: Callable[[socket.socket], Awaitable[None]]
) -> None:
    """Accept connections for ever; each is served by a task and closed."""
    listener, loop, tasks = namespace.socket(socket.SOCK_STREAM), asyncio.get_running_loop(), Tasks()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(128)

    async def served(sock: socket.socket) -> None:
        try:
            await asyncio.wait_for(serve(sock), 200)
        finally:
            sock.close()

    while True:
        try:
            sock, _ = await loop.sock_accept(listener)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        sock.setblocking(False)
        tasks.start(served(sock))


async def read_all(sock: socket.socket, most: int | None = None) -> int:
    """Read and forget until the other side closes or `most` bytes have come."""
    loop, buffer, got = asyncio.get_running_loop(), bytearray(1 << 18), 0
    while most is None or got < most:
        count = await loop.sock_recv_into(sock, buffer)
        if not count:
            break
        got += count
    return got


async def discard(sock: socket.socket) -> None:
    """Serve a connection by reading it; few large reads, to save time on a busy machine."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 32768)
    await read_all(sock)


async def send_bytes(sock: socket.socket, count: float) -> None:
    """Send so many bytes (`inf`: until cancelled)."""
    loop = asyncio.get_running_loop()
    while count > 0:
        chunk = int(min(count, len(NOISE)))
        await loop.sock_sendall(sock, memoryview(NOISE)[:chunk])
        count -= chunk


async def keep_sending(source: Namespace, address: str) -> None:
    """A greedy connection to a sink, opened anew when it breaks."""
    loop = asyncio.get_running_loop()
    while True:
        sock = source.socket(socket.SOCK_STREAM)
        try:
            control_congestion(sock, "cubic")
            await loop.sock_connect(sock, (address, SINK_PORT))
            await send_bytes(sock, float("inf"))
        except OSError:
            await asyncio.sleep(0.3)
        finally:
            reset(sock)


def datagrams(namespace: Namespace, address: str) -> socket.socket:
    """A socket from whose namespace datagrams go to the port of applications at an address."""
    sock = namespace.socket(socket.SOCK_DGRAM)
    sock.connect((address, DATAGRAM_PORT))
    return sock


def ignore_datagrams(namespace: Namespace, address: str) -> socket.socket:
    """A listener for them whose buffer is soon full; keep it as long as it shall be open."""
    sock = namespace.socket(socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.bind((address, DATAGRAM_PORT))
    return sock


def try_send(sock: socket.socket, payload: bytes) -> None:
    """Send a datagram; one that does not go out is lost, as on a network."""
    with contextlib.suppress(OSError):
        sock.send(payload)
