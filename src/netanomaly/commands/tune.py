"""`netanomaly tune`: show or change when a bundle raises an alarm."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, overrides
from netanomaly.errors import ConfigError
from netanomaly.starter import is_starter
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    tune = commands.add_parser(
        "tune",
        allow_abbrev=False,
        parents=[shared.common, shared.rooted],
        help="show or change when a bundle raises an alarm, without training",
    )
    tune.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    tune.add_argument(
        "--false-alarms-per-day", type=float, metavar="N", help="per series, at most: chosen on the validation rows"
    )
    tune.add_argument("--best-f1", action="store_true", help="the best incident F1 on the validation rows")
    tune.add_argument(
        "--threshold", action="append", default=[], metavar="CLASS=P", help="probability at which it is raised"
    )
    tune.add_argument("--hysteresis", type=float, metavar="SHARE", help="of the threshold, above which it goes on")
    tune.add_argument("--min-rows", type=int, metavar="N", help="rows until it is raised")
    tune.add_argument("--merge-rows", type=int, metavar="N", help="rows of a pause that does not end it")
    tune.add_argument(
        "--unknown-share", type=float, metavar="SHARE", help="of the rows of a series that may be called unknown"
    )
    tune.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.bundle import load_bundle
    from netanomaly.retuning import Wishes, decisions_text, tune_bundle
    from netanomaly.run_directory import EVALUATION, REPORT

    directory = bundle_directory(options.bundle)
    given = {key: getattr(options, key) for key in ("hysteresis", "min_rows", "merge_rows")}
    changes = {key: value for key, value in given.items() if value is not None}
    if options.best_f1 and options.false_alarms_per_day is not None:
        raise ConfigError("tune: give --false-alarms-per-day or --best-f1, not both")
    wishes = Wishes(
        choose=options.best_f1 or options.false_alarms_per_day is not None,
        false_alarms_per_day=options.false_alarms_per_day,
        unknown_share=options.unknown_share,
        changes=changes,
        thresholds=dict(_threshold(text) for text in options.threshold),
    )
    if wishes == Wishes():
        tell(decisions_text(load_bundle(directory).decisions))
        return
    if is_starter(options.bundle):
        raise ConfigError(f"tune: the starter bundle is the package's; copy {directory} and tune the copy")
    tell(decisions_text(tune_bundle(directory, wishes, overrides(options)).decisions))
    old = [name for name in (EVALUATION, REPORT) if (directory / name).exists()]
    if old:
        tell(f"{' and '.join(old)} there are of the rule before; netanomaly eval {directory} makes them again")


def _threshold(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise ConfigError(f"--threshold {text}: give a class and a probability, like packet_loss=0.8") from error
