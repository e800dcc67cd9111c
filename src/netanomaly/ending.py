"""How a program ends: its work is done, or one line says why it is not; and with which exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from netanomaly.errors import ConfigError, DataError, NetanomalyError
from netanomaly.interrupts import Terminated, terminable
from netanomaly.terminal import printable

INTERRUPTED, TERMINATED = 130, 143
"""128 and the number of the signal, as shells have it."""


def ended(work: Callable[[], object], *, debug: bool) -> int:
    """Do the work of a program, and tell what goes wrong in one line.

    Args:
        debug: raise errors as they are, for their traceback.

    Returns:
        The exit code.
    """
    try:
        with terminable():
            work()
            sys.stdout.flush()  # what cannot be written is an error here, not a surprise at the end
    except NetanomalyError as error:
        if debug:
            raise
        if not error.is_told:
            _tell(_one_line(str(error)))
        return error.exit_code
    except Terminated:
        _tell("terminated")
        return TERMINATED
    except KeyboardInterrupt:
        _tell("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        _forget_stdout()
    except OSError as error:  # a full disk, a directory in the place of a file ...
        if debug:
            raise
        where = _one_line(str(error.filename or "writing to standard output"))
        _tell(f"{where}: {_one_line(error.strerror or str(error))}")
        _forget_stdout()
        return ConfigError.exit_code
    except MemoryError:
        if debug:
            raise
        _tell("not enough memory; give fewer or smaller files, or read them in pieces")
        return DataError.exit_code
    return 0


def _tell(line: str) -> None:
    print(f"netanomaly: {line}", file=sys.stderr)


def _one_line(message: str) -> str:
    """A message that quotes a file may hold anything: no line breaks, no control characters, no end of it."""
    return printable(message).replace("\n", "\\n")[:2000]


def _forget_stdout() -> None:
    """What still waits to be written may not go out: without this, Python would try again as it ends, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
