"""`netanomaly train`: learn from labelled rows, save a bundle, evaluate it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from netanomaly.commands.shared import Shared, overrides
from netanomaly.terminal import tell

if TYPE_CHECKING:
    from netanomaly.predictor import Predictor
    from netanomaly.scoring import Scored


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    train = commands.add_parser(
        "train",
        allow_abbrev=False,
        parents=[shared.common, shared.rooted, shared.reported],
        help="learn from labelled rows, as a YAML file says",
    )
    train.add_argument("config", type=Path, help="YAML file; see configs/")
    train.add_argument("--run-dir", metavar="DIR", help="the directory to write (run_dir)")
    again = train.add_mutually_exclusive_group()
    again.add_argument("--overwrite", action="store_true", help="replace a run that is there")
    again.add_argument(
        "--resume", action="store_true", help="go on with a training that was cut short, if there is one"
    )
    train.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.run import train
    from netanomaly.run_directory import EVALUATION, REPORT
    from netanomaly.training.world import is_first_process

    predictor = train(
        options.config,
        overrides=overrides(options),
        overwrite=options.overwrite,
        resume=options.resume,
        evaluated=None if options.no_report else _write_report,
    )
    if not is_first_process():
        return
    directory = Path(predictor.config.run_dir)
    _print_evaluation(directory / EVALUATION)
    if (directory / REPORT).exists():
        tell(f"report: {directory / REPORT}")
    tell(f"\nbundle: {directory}")


def _write_report(predictor: Predictor, scored: Scored) -> None:
    from netanomaly.reporting import of_scored, write_if_possible
    from netanomaly.run_directory import REPORT

    directory = Path(predictor.config.run_dir)
    write_if_possible(of_scored(predictor, directory, scored), directory / REPORT)


def _print_evaluation(path: Path) -> None:
    import json

    from netanomaly.evaluation.report import report_text

    if path.exists():
        tell(report_text(json.loads(path.read_text(encoding="utf-8"))))
        tell(f"\nevaluation: {path}")
    else:
        tell("no test part in data.split: nothing was evaluated")
