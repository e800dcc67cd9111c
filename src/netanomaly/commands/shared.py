"""What several commands share: options, places of files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from netanomaly.errors import ConfigError
from netanomaly.files import other_kind
from netanomaly.starter import is_starter, starter_directory


@dataclass(frozen=True)
class Shared:
    """Options that commands have in common, as parents of their parsers.

    Attributes:
        quiet: --quiet, --debug.
        common: these, --set and --device.
        rooted: --data-root.
        written: --data.
        reported: --no-report.
        text: --raw-text.
    """

    quiet: argparse.ArgumentParser
    common: argparse.ArgumentParser
    rooted: argparse.ArgumentParser
    written: argparse.ArgumentParser
    reported: argparse.ArgumentParser
    text: argparse.ArgumentParser


def shared_options() -> Shared:
    """The options that commands have in common."""
    quiet = argparse.ArgumentParser(add_help=False)
    quiet.add_argument("--quiet", action="store_true", help="no progress: only results and what went wrong")
    quiet.add_argument("--debug", action="store_true", help="show the traceback of an error")

    common = argparse.ArgumentParser(add_help=False, parents=[quiet])
    common.add_argument("--set", action="append", default=[], metavar="A.B=VALUE", help="change a key of the config")
    common.add_argument("--device", choices=("auto", "cpu", "cuda"), help="where to compute (device)")

    rooted = argparse.ArgumentParser(add_help=False)
    rooted.add_argument("--data-root", metavar="DIR", help="where relative paths of the config start (data.root)")

    written = argparse.ArgumentParser(add_help=False)
    written.add_argument(
        "--data", type=Path, metavar="FILE.yaml", help="its section 'data' says how these rows are written"
    )
    reported = argparse.ArgumentParser(add_help=False)
    reported.add_argument("--no-report", action="store_true", help="do not write report.html into the run")

    text = argparse.ArgumentParser(add_help=False)
    text.add_argument(
        "--raw-text", action="store_true", help="write names that a spreadsheet would run as formulas as they are"
    )

    return Shared(quiet, common, rooted, written, reported, text)


def overrides(options: argparse.Namespace) -> list[str]:
    """The options that stand for keys of the config, as --set does."""
    import json

    given: list[str] = []
    if getattr(options, "data", None) is not None:
        from netanomaly.rows_written import rows_of_yaml

        given += rows_of_yaml(options.data)
    given += getattr(options, "set", [])
    for option, key in (("data_root", "data.root"), ("device", "device"), ("run_dir", "run_dir")):
        value = getattr(options, option, None)
        if value is not None:
            given.append(f"{key}={json.dumps(value)}")
    return given


def bundle_directory(path: Path) -> Path:
    """The run's directory, from itself, from the YAML file that it was trained with, or of the starter bundle."""
    if is_starter(path):
        return starter_directory()
    if path.suffix not in (".yaml", ".yml"):
        return path
    from netanomaly.config import load_config

    return Path(load_config(path).run_dir)


def bundle_files(directory: Path) -> list[Path]:
    """What a bundle is made of: nothing else may be written there."""
    from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS

    return [directory / name for name in (WEIGHTS, CONTENT, MANIFEST)]


def check_apart(outputs: Mapping[str, Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Raise a ConfigError if a file to write is one to read, or another one to write; inputs may be patterns."""
    import glob

    read = {Path(found).resolve() for name in inputs if name is not None for found in (name, *glob.glob(str(name)))}
    written: dict[Path, str] = {}
    for option, out in outputs.items():
        if out is None:
            continue
        if out.resolve() in read:
            raise ConfigError(f"{option} {out}: is one of the files to read; it would be replaced")
        if out.resolve() in written:
            raise ConfigError(f"{option} {out}: is the file of {written[out.resolve()]} as well")
        written[out.resolve()] = option


def check_place(out: Path | None, option: str = "--out") -> None:
    """Raise a ConfigError if a file cannot be written there: better before the work than after it."""
    if out is None:
        return
    if out.is_dir():
        raise ConfigError(f"{option} {out}: is a directory; name a file in it")
    if (kind := other_kind(out)) is not None:
        raise ConfigError(f"{option} {out}: is {kind}, not a regular file; it would be replaced")
    parent = next(place for place in out.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigError(f"{option} {out}: cannot write to {parent}")
