"""`netanomaly watch`: label lines as they come."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.from_prometheus import OPTION, add_prometheus, is_asked
from netanomaly.commands.shared import Shared, bundle_directory, bundle_files, check_apart, check_place
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
    add_prometheus(watch)
    watch.add_argument(
        "--incidents",
        type=Path,
        metavar="FILE|-",
        help="one JSON line when an alarm is raised and one when its incident is over: added to the file, or, with -, "
        "on standard output in place of the rows",
    )
    watch.add_argument(
        "--metrics-port", type=_port, metavar="PORT", help="metrics for Prometheus at /metrics; 0: any port"
    )
    watch.add_argument("--metrics-address", metavar="HOST", help="where to listen (default: 127.0.0.1)")
    watch.add_argument("--to-alertmanager", metavar="URL", help="tell Alertmanager of incidents")
    watch.add_argument(
        "--alert-label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="label of all alerts, like severity=warning; may be given several times",
    )
    watch.set_defaults(command=_run)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 0 to 65535")
    return int(text)


def _duration(text: str) -> int:
    """Nanoseconds."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(options: argparse.Namespace) -> None:
    from netanomaly.commands.watching import watch_as_asked

    _check(options)
    watch_as_asked(options)


def _check(options: argparse.Namespace) -> None:
    """Raise a ConfigError for options that do not go together."""
    if is_asked(options) and (options.file is not None or options.follow):
        raise ConfigError(f"{OPTION}: rows come from there; name no file to read or follow")
    if options.follow and options.file is None:
        raise ConfigError("--follow: name the file to follow; standard input is read to its end anyway")
    if options.metrics_address is not None and options.metrics_port is None:
        raise ConfigError("--metrics-address: is where metrics are listened for; give --metrics-port as well")
    if options.alert_label and options.to_alertmanager is None:
        raise ConfigError("--alert-label: is for Alertmanager; give --to-alertmanager URL as well")
    incidents = None if options.incidents == Path("-") else options.incidents
    check_place(options.state, "--state")
    check_place(incidents, "--incidents")
    read = [options.file, options.data, *bundle_files(bundle_directory(options.bundle))]
    check_apart({"--state": options.state, "--incidents": incidents}, read)
