"""The command line. `commands/` has the commands; here is what they have in common: errors and exit codes.

Exit codes: 0 done, 2 bad config or arguments (or a file that cannot be written), 3 bad data, 4 bad bundle,
5 training cannot go on, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

from netanomaly import __version__
from netanomaly.allocator import keep_freed_memory
from netanomaly.commands import audit, convert, evaluate, explain, export, inspect, predict, report, train, tune, watch
from netanomaly.commands.shared import shared_options
from netanomaly.errors import ConfigError, DataError, NetanomalyError
from netanomaly.interrupts import Terminated, terminable
from netanomaly.terminal import PrintableFormatter, printable

INTERRUPTED, TERMINATED = 130, 143
"""128 and the number of the signal, as shells have it."""
COMMANDS = (inspect, train, evaluate, report, predict, explain, tune, watch, export, audit, convert)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    _log_to_stderr(logging.WARNING if options.quiet else logging.INFO)
    command: Callable[[argparse.Namespace], None] = options.command
    keep_freed_memory()
    try:
        with terminable():
            command(options)
            sys.stdout.flush()  # what cannot be written is an error here, not a surprise at the end
    except NetanomalyError as error:
        if options.debug:
            raise
        if not error.is_told:
            print(f"netanomaly: {_one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except Terminated:
        print("netanomaly: terminated", file=sys.stderr)
        return TERMINATED
    except KeyboardInterrupt:
        print("netanomaly: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        _forget_stdout()
    except OSError as error:  # a full disk, a directory in the place of a file ...
        if options.debug:
            raise
        where = _one_line(str(error.filename or "writing to standard output"))
        print(f"netanomaly: {where}: {_one_line(error.strerror or str(error))}", file=sys.stderr)
        _forget_stdout()
        return ConfigError.exit_code
    except MemoryError:
        if options.debug:
            raise
        print("netanomaly: not enough memory; give fewer or smaller files, or read them in pieces", file=sys.stderr)
        return DataError.exit_code
    return 0


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=level, force=True)


def _forget_stdout() -> None:
    """What still waits to be written may not go out: without this, Python would try again as it ends, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(message: str) -> str:
    """A message that quotes a file may hold anything: no line breaks, no control characters, no end of it."""
    return printable(message).replace("\n", "\\n")[:2000]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="netanomaly",
        allow_abbrev=False,
        description="Names the state of a network at every moment from windows of its metrics.",
        epilog="exit codes: 0 done, 2 bad config or arguments, 3 bad data, 4 bad bundle, 5 training cannot go on, "
        "130 interrupted, 143 terminated",
    )
    parser.add_argument("--version", action="version", version=f"netanomaly {__version__}")
    commands, shared = parser.add_subparsers(required=True, metavar="COMMAND"), shared_options()
    for command in COMMANDS:
        command.add(commands, shared)
    return parser
