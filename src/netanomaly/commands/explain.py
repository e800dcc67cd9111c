"""`netanomaly explain`: why a row gets its label."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, overrides
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    explain = commands.add_parser(
        "explain",
        allow_abbrev=False,
        parents=[shared.common, shared.written],
        help="say why a row gets its label: metrics and rows",
    )
    explain.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    explain.add_argument("files", nargs="+", help="CSV, CSV.gz or Parquet files, or patterns")
    explain.add_argument("--series", required=True, metavar="NAME", help="the series of the row")
    explain.add_argument("--at", required=True, metavar="TIME", help="its time, as the files have it")
    explain.add_argument("--json", action="store_true", help="print all of it as JSON")
    explain.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    import json

    from netanomaly.predictor import load

    predictor = load(bundle_directory(options.bundle), overrides=overrides(options))
    reason = predictor.explain_files(options.files, options.series, options.at)
    tell(json.dumps(reason.to_dict(), ensure_ascii=False) if options.json else reason.text())
