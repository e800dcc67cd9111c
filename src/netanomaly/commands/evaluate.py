"""`netanomaly eval`: score a bundle on labelled rows."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, bundle_files, check_apart, check_place, overrides
from netanomaly.starter import is_starter
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    evaluate = commands.add_parser(
        "eval",
        allow_abbrev=False,
        parents=[shared.common, shared.rooted, shared.written, shared.reported],
        help="score a trained bundle on labelled rows",
    )
    evaluate.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    evaluate.add_argument("files", nargs="*", help="labelled files; default: the test part of the bundle's data")
    evaluate.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="JSON to write; default: evaluation.json in the run, none for other files",
    )
    evaluate.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.evaluation.report import report_text
    from netanomaly.files import write_json
    from netanomaly.locks import locked
    from netanomaly.predictor import load
    from netanomaly.reporting import of_scored, write_if_possible
    from netanomaly.run_directory import EVALUATION, REPORT
    from netanomaly.scoring import score

    directory = bundle_directory(options.bundle)
    predictor = load(directory, overrides=overrides(options))
    is_of_run = options.out is None and not options.files and not is_starter(options.bundle)
    out = directory / EVALUATION if is_of_run else options.out
    check_place(out)
    check_apart({"--out": options.out}, [*options.files, options.data, *bundle_files(directory)])
    scored = score(predictor, files=options.files)
    tell(report_text(scored.report))
    with locked(directory) if is_of_run else nullcontext():
        if out is not None:
            write_json(out, scored.report)
            tell(f"\nevaluation: {out}")
        if is_of_run and not options.no_report:
            page = directory / REPORT
            if write_if_possible(of_scored(predictor, directory, scored), page):
                tell(f"report: {page}")
