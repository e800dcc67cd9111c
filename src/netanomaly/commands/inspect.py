"""`netanomaly inspect`: what files, or a bundle, hold."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, check_place
from netanomaly.errors import ConfigError, DataError
from netanomaly.starter import is_starter
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    inspect = commands.add_parser(
        "inspect",
        allow_abbrev=False,
        parents=[shared.quiet, shared.text],
        help="say what files, or a bundle, hold; start a config",
    )
    inspect.add_argument("files", nargs="+", help="CSV, CSV.gz or Parquet files, patterns, or an export; or one bundle")
    inspect.add_argument("--json", action="store_true", help="everything that was found, for programs")
    inspect.add_argument("--incidents", type=Path, metavar="FILE", help="CSV of incidents that goes with the files")
    inspect.add_argument("--write-config", type=Path, metavar="YAML", help="a commented configuration to start from")
    inspect.add_argument(
        "--for",
        dest="bundle",
        metavar="BUNDLE",
        help="with --write-config: for predict --data, the columns matched with the metrics of a bundle (or `starter`)",
    )
    inspect.add_argument(
        "--convert", type=Path, metavar="CSV", help="write an export as a wide table, and look at that"
    )
    inspect.add_argument(
        "--rows",
        type=int,
        default=50_000,
        metavar="N",
        help="rows to look through, of all files together (default %(default)s); 0: all",
    )
    inspect.add_argument("--overwrite", action="store_true", help="replace the files to write")
    inspect.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    first = Path(options.files[0])
    if len(options.files) == 1 and (first.is_dir() or first.suffix in (".yaml", ".yml") or is_starter(first)):
        tell(_bundle(options, bundle_directory(first)))
        return
    from netanomaly.inspect.command import Wishes, inspect_files

    if options.rows < 0:
        raise ConfigError(f"--rows {options.rows}: give a number of rows, or 0 for all")
    check_place(options.write_config, "--write-config")
    check_place(options.convert, "--convert")
    if options.bundle is not None and options.write_config is None:
        raise ConfigError("--for: says for which bundle --write-config FILE.yaml is; give that as well")
    wishes = Wishes(options.rows, options.incidents, options.convert, options.write_config, options.overwrite)
    if options.raw_text and options.convert is None:
        raise ConfigError("--raw-text: is about what --convert writes; give that as well")
    wishes = replace(wishes, raw_text=options.raw_text)
    if options.bundle is not None:
        wishes = replace(wishes, bundle=options.bundle, directory=bundle_directory(Path(options.bundle)))
    answer = inspect_files(options.files, wishes, options.json)
    tell(answer.text)
    if answer.problem is not None:
        raise DataError(answer.problem)


def _bundle(options: argparse.Namespace, directory: Path) -> str:
    for option in ("incidents", "write_config", "convert", "bundle"):
        if getattr(options, option) is not None:
            name = "for" if option == "bundle" else option.replace("_", "-")
            raise ConfigError(f"--{name}: goes with files; {directory} is a bundle")
    from netanomaly.inspect.bundle_card import bundle_card, bundle_text

    card = bundle_card(directory)
    return json.dumps(card, indent=2, ensure_ascii=False) if options.json else bundle_text(card)
