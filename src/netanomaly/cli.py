"""The command line. `commands/` has the commands; `ending` is how each of them ends.

Exit codes: 0 done, 2 bad config or arguments (or a file that cannot be written), 3 bad data, 4 bad bundle,
5 training cannot go on, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM).
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence

from netanomaly import __version__
from netanomaly.allocator import keep_freed_memory
from netanomaly.commands import audit, convert, evaluate, explain, export, inspect, predict, report, train, tune, watch
from netanomaly.commands.shared import shared_options
from netanomaly.ending import ended
from netanomaly.terminal import log_to_stderr

COMMANDS = (inspect, train, evaluate, report, predict, explain, tune, watch, export, audit, convert)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    log_to_stderr(logging.WARNING if options.quiet else logging.INFO)
    command: Callable[[argparse.Namespace], None] = options.command
    keep_freed_memory()
    return ended(lambda: command(options), debug=options.debug)


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
