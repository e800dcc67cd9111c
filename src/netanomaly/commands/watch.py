"""`netanomaly watch`: label lines as they come."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, overrides
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
    watch.add_argument(
        "file", nargs="?", type=Path, help="CSV with a header, before any options; default: standard input"
    )
    watch.add_argument("--follow", action="store_true", help="wait for lines that are added to the file")
    watch.add_argument("--state", type=Path, metavar="FILE", help="go on from it if it is there; written at the end")
    watch.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.interrupts import terminable
    from netanomaly.predictor import load
    from netanomaly.streaming import StreamingPredictor
    from netanomaly.watch import watch

    if options.follow and options.file is None:
        raise ConfigError("--follow: name the file to follow; standard input is read to its end anyway")
    with terminable():
        stream = StreamingPredictor(load(bundle_directory(options.bundle), overrides=overrides(options)))
        watch(stream, options.file, follow=options.follow, state=options.state)
