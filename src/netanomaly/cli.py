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
from netanomaly.commands import audit, convert, evaluate, explain, inspect, predict, report, train, tune, watch
from netanomaly.commands.shared import shared_options
from netanomaly.errors import ConfigError, NetanomalyError
from netanomaly.interrupts import Terminated, terminable

INTERRUPTED, TERMINATED = 130, 143
"""128 and the number of the signal, as shells have it."""
COMMANDS = (inspect, train, evaluate, report, predict, explain, tune, watch, audit, convert)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING if options.quiet else logging.INFO, force=True)
    command: Callable[[argparse.Namespace], None] = options.command
    keep_freed_memory()
    try:
        with terminable():
            command(options)
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # a full disk, a directory in the place of a file ...
        if options.debug:
            raise
        print(f"netanomaly: {error.filename or 'writing'}: {error.strerror or error}", file=sys.stderr)
        return ConfigError.exit_code
    return 0


def _one_line(message: str) -> str:
    """A message that quotes a file may hold anything: no line breaks, no control characters, no end of it."""
    return "".join(character if character.isprintable() else "?" for character in message[:2000])


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
