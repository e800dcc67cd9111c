"""Memory that was freed stays with the process, for the next of many alike steps.

glibc gives large freed blocks back to the system and asks for them again at the next step; the pages then come one
fault at a time, zeroed. Steps like ours each take and free some ten blocks of megabytes: the faults are a good part of
the time.
"""

from __future__ import annotations

import ctypes
import sys

LARGEST_KEPT = 32 * 2**20
"""Bytes of a block above which it still goes back at once."""
MOST_KEPT = 512 * 2**20
"""Bytes of freed memory above which the end of the heap goes back."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def keep_freed_memory() -> bool:
    """Keep freed memory for the rest of the process; returns whether this system lets us (Linux with glibc).

    The command line does it. A program that uses the library may, too: it holds for all that the program allocates.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another libc
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(M_TRIM_THRESHOLD, MOST_KEPT))
