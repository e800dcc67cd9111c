"""`netanomaly watch`: label lines as they come."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, check_apart, check_place, overrides
from netanomaly.durations import parse_duration
from netanomaly.errors import ConfigError


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    watch = commands.add_parser(
        "watch",
        allow_abbrev=False,
        parents=[shared.common, shared.written],
        help="label CSV lines as they come, one JSON line each",
    )
    watch.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    watch.add_argument("file", nargs="?", type=Path, help="CSV with a header; default: standard input")
    watch.add_argument(
        "--follow", action="store_true", help="wait for lines that are added to the file, through log rotation"
    )
    watch.add_argument(
        "--state", type=Path, metavar="FILE", help="go on from it if it is there; written now and then and at the end"
    )
    watch.add_argument(
        "--state-every",
        type=_duration,
        default="30s",
        metavar="TIME",
        help="between two writings (default %(default)s)",
    )
    watch.add_argument(
        "--forget-after",
        type=_duration,
        default="1h",
        metavar="TIME",
        help="forget a series that has been silent for so long after its segment ended, by the clock of the rows "
        "(default %(default)s)",
    )
    watch.add_argument(
        "--max-ahead",
        type=_duration,
        default="10m",
        metavar="TIME",
        help="leave out rows that are further ahead of this machine's clock (default %(default)s)",
    )
    watch.set_defaults(command=_run)


def _duration(text: str) -> int:
    """Nanoseconds."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(options: argparse.Namespace) -> None:
    from netanomaly.interrupts import terminable
    from netanomaly.predictor import load
    from netanomaly.streaming import StreamingPredictor
    from netanomaly.watch.loop import watch

    if options.follow and options.file is None:
        raise ConfigError("--follow: name the file to follow; standard input is read to its end anyway")
    check_place(options.state, "--state")
    check_apart({"--state": options.state}, [options.file])
    with terminable():
        predictor = load(bundle_directory(options.bundle), overrides=overrides(options))
        watch(
            StreamingPredictor(predictor, forget_after=options.forget_after),
            options.file,
            follow=options.follow,
            state=options.state,
            state_every=options.state_every / 1e9,
            max_ahead=options.max_ahead,
        )
