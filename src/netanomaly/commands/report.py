"""`netanomaly report`: what happened, where and when, as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, check_apart, check_place, overrides
from netanomaly.errors import ConfigError
from netanomaly.starter import is_starter
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    report = commands.add_parser(
        "report",
        allow_abbrev=False,
        parents=[shared.common, shared.rooted, shared.written],
        help="what happened, where and when, as one HTML file",
    )
    report.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    report.add_argument(
        "files", nargs="*", help="files with labels or without; default: the test part of the bundle's data"
    )
    report.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="HTML to write; default: report.html, in the run where its test part is reported on, here for other files",
    )
    report.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.predictor import load
    from netanomaly.report.page import missing_libraries
    from netanomaly.reporting import report, write_report
    from netanomaly.run_directory import REPORT

    directory = bundle_directory(options.bundle)
    here = options.files or is_starter(options.bundle)  # nothing is written into the package
    out = options.out or (Path(REPORT) if here else directory / REPORT)
    if out.suffix not in (".html", ".htm"):
        raise ConfigError(f"--out {out}: write a .html")
    missing = missing_libraries()
    if missing is not None:
        raise ConfigError(missing)
    check_place(out)
    check_apart({"--out": options.out}, [*options.files, options.data])
    predictor = load(directory, overrides=overrides(options))
    write_report(report(predictor, directory, options.files), out)
    tell(f"report: {out}")
