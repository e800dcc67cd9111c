"""`netanomaly export`: a bundle's decisions as one file that other programs run."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, check_place, overrides
from netanomaly.errors import ConfigError
from netanomaly.terminal import tell

SUFFIXES = {"onnx": ".onnx", "torch-export": ".pt2"}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    export = commands.add_parser(
        "export",
        allow_abbrev=False,
        parents=[shared.quiet, shared.written],
        help="write what names one row as a file that other programs run, once it is found to answer alike",
    )
    export.add_argument("bundle", type=Path, help="directory of a run, its YAML file, or `starter`")
    export.add_argument("--format", choices=tuple(SUFFIXES), default="onnx", help="of the file (default %(default)s)")
    export.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        required=True,
        help="to write: .onnx or .pt2; what it holds goes to FILE.json",
    )
    export.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    suffix = SUFFIXES[options.format]
    if options.out.suffix != suffix:
        raise ConfigError(f"--out {options.out}: a file of {options.format} ends in {suffix}")
    from netanomaly.deploying.export import description_of, export

    check_place(options.out)
    check_place(description_of(options.out))
    parity = export(bundle_directory(options.bundle), options.format, options.out, overrides(options))
    tell(f"{options.format}: {options.out}, and {description_of(options.out)}")
    tell(f"answers as the bundle does: {parity.windows} windows, differences up to {parity.difference:.2g}")
