"""Downloads and uploads: the client asks the server for a number of bytes, or sends so many."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from dataclasses import dataclass

from scripts.testbed.sockets import (
    CONGESTION_CONTROLS,
    FETCH_PORT,
    SO_MAX_PACING_RATE,
    control_congestion,
    discard,
    read_all,
    reset,
    send_bytes,
)
from scripts.testbed.topology import Built

REQUEST = struct.Struct("!QQBB")
"""Bytes, bit/s (0: as fast as it goes), index of the congestion control, whether the client sends."""
SERVED_WITHIN_S = 120.0
RENO_SHARE, ABANDONED_SHARE = 0.05, 0.02


@dataclass(frozen=True)
class Transfer:
    """One transfer that an application wants."""

    size: float
    """Bytes."""
    timeout_s: float
    rate_bps: float = 0.0
    """At most; 0: as fast as it goes."""
    upload: bool = False


async def serve(sock: socket.socket) -> None:
    """The server's side of one connection."""
    loop, head = asyncio.get_running_loop(), b""
    while len(head) < REQUEST.size:
        more = await loop.sock_recv(sock, REQUEST.size - len(head))
        if not more:
            return
        head += more
    size, rate_bps, control, upload = REQUEST.unpack(head)
    control_congestion(sock, CONGESTION_CONTROLS[control])
    if upload:
        await read_all(sock, size)
        await loop.sock_sendall(sock, b".")
        return
    _pace(sock, rate_bps)
    try:
        await asyncio.wait_for(send_bytes(sock, size), SERVED_WITHIN_S)
        sock.shutdown(socket.SHUT_WR)
        await loop.sock_recv(sock, 1)
    except (TimeoutError, OSError):
        reset(sock)


async def transfer(built: Built, wanted: Transfer, rng: random.Random) -> None:
    """The client's side; what fails or takes too long is given up, as people do."""
    sock = built.site.socket(socket.SOCK_STREAM)
    try:
        await asyncio.wait_for(_transfer(sock, built, wanted, rng), wanted.timeout_s)
        sock.close()
    except (TimeoutError, OSError):
        reset(sock)
    finally:
        sock.close()


async def _transfer(sock: socket.socket, built: Built, wanted: Transfer, rng: random.Random) -> None:
    loop, size = asyncio.get_running_loop(), max(1, round(wanted.size))
    control = 1 if rng.random() < built.link.bbr_share else 2 if rng.random() < RENO_SHARE else 0
    await loop.sock_connect(sock, (built.link.server, FETCH_PORT))
    await loop.sock_sendall(sock, REQUEST.pack(size, round(wanted.rate_bps), control, wanted.upload))
    if wanted.upload:
        control_congestion(sock, CONGESTION_CONTROLS[control])
        _pace(sock, round(wanted.rate_bps))
        await send_bytes(sock, size)
        await loop.sock_recv(sock, 1)
    elif rng.random() < ABANDONED_SHARE:
        await read_all(sock, size // 2)
    else:
        await discard(sock)


def _pace(sock: socket.socket, rate_bps: int) -> None:
    if rate_bps:
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("Q", rate_bps // 8))
