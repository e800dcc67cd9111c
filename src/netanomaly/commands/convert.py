"""`netanomaly convert`: pool a bundle's heads."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, check_place
from netanomaly.errors import ConfigError
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    convert = commands.add_parser(
        "convert",
        allow_abbrev=False,
        parents=[shared.quiet],
        help="pool a bundle's heads of keys and values into fewer",
    )
    convert.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    convert.add_argument("--kv-heads", type=int, required=True, metavar="N", help="how many are left: 1 is multi-query")
    convert.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory to write; must not exist")
    convert.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.bundle import load_bundle, save_bundle
    from netanomaly.grouping import group_heads

    if options.out.exists():
        raise ConfigError(f"--out {options.out}: exists already; name another directory")
    check_place(options.out)
    bundle = group_heads(load_bundle(bundle_directory(options.bundle)), options.kv_heads)
    save_bundle(options.out, bundle)
    tell(f"bundle: {options.out}; its answers differ from those of {options.bundle}: score it with netanomaly eval")
