"""What `netanomaly inspect` does with files: convert, look through, write a configuration, answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netanomaly.csv_lines import csv_table
from netanomaly.data.ingest import find_files
from netanomaly.data.reader import PARQUET
from netanomaly.errors import ConfigError, DataError
from netanomaly.exports.known import Export, recognise, to_wide
from netanomaly.files import atomic, write_text
from netanomaly.inspect.guesses import Survey
from netanomaly.inspect.survey import survey
from netanomaly.inspect.text import survey_text

if TYPE_CHECKING:
    from netanomaly.inspect.starter_config import Starter


@dataclass(frozen=True)
class Wishes:
    """What to do besides looking.

    Attributes:
        rows: to look through, 0 for all.
        incidents: a list of incidents that goes with the files.
        convert: where to write the wide table of an export; what follows is of that table.
        write_config: where to write a configuration.
        overwrite: replace what is there.
        raw_text: text that a spreadsheet would run as a formula is converted as it is.
        bundle, directory: that the configuration is for, as it was given, and where it is; None: for training.
    """

    rows: int = 50_000
    incidents: Path | None = None
    convert: Path | None = None
    write_config: Path | None = None
    overwrite: bool = False
    bundle: str | None = None
    directory: Path | None = None
    raw_text: bool = False


@dataclass(frozen=True)
class Answer:
    """What was found, as text or JSON, and why no configuration was written for it, if one was asked for."""

    text: str
    problem: str | None = None


def inspect_files(patterns: Sequence[str], wishes: Wishes, as_json: bool) -> Answer:
    """Look through files.

    Raises:
        ConfigError: something is in the place of what would be written.
        DataError: the files cannot be read.
    """
    _refuse_to_replace(wishes)
    paths = find_files(patterns, ".")
    export = None if paths[0].suffix == PARQUET else recognise(paths[0])
    if wishes.convert is not None:
        patterns, paths, export = _converted(paths, wishes.convert, wishes.raw_text), [wishes.convert], None
    elif export is not None and not export.is_wide:
        return _only_named(paths, export, wishes, as_json)
    found = survey(paths, wishes.incidents, wishes.rows)
    starter, problem = _started(found, patterns, wishes)
    if as_json:
        tree = _values(found, export, wishes, starter)
        return Answer(json.dumps(tree, indent=2, ensure_ascii=False, default=str), problem)
    parts = [survey_text(found)]
    if export is not None:
        parts.append(f"{export.name}: each column is a metric here; if columns are links, {_to_convert(paths)}")
    if starter is not None:
        parts.append(_told(starter, wishes))
    return Answer("\n\n".join(parts), problem)


def _started(found: Survey, patterns: Sequence[str], wishes: Wishes) -> tuple[Starter | None, str | None]:
    """The configuration, written, or why there is none."""
    place = wishes.write_config
    if place is None:
        return None, None
    from netanomaly.bundle import load_bundle
    from netanomaly.inspect.for_bundle import rows_for_bundle
    from netanomaly.inspect.starter_config import default_run_dir, starter_config  # what trains takes long to load

    try:
        if wishes.bundle is None or wishes.directory is None:
            starter = starter_config(found, patterns, default_run_dir(place), str(place))
        else:
            config = load_bundle(wishes.directory).config
            starter = rows_for_bundle(found, patterns, str(place), wishes.bundle, config)
    except DataError as error:
        sampled = "" if found.is_whole else f"; only {found.rows:,} rows were looked through, --rows 0 takes all"
        return None, f"{error} (so {place} is not written{sampled})"
    write_text(place, starter.text)
    return starter, None


def _refuse_to_replace(wishes: Wishes) -> None:
    """Raise a ConfigError if something is there already, or cannot be written there."""
    if wishes.convert is not None and not str(wishes.convert).endswith((".csv", ".csv.gz")):
        raise ConfigError(f"--convert {wishes.convert}: write a .csv or a .csv.gz")
    if wishes.write_config is not None and wishes.write_config.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"--write-config {wishes.write_config}: write a .yaml")
    for option, place in (("--convert", wishes.convert), ("--write-config", wishes.write_config)):
        if place is not None and place.exists() and not wishes.overwrite:
            raise ConfigError(f"{option} {place}: exists already; name another file, or use --overwrite")
    if wishes.incidents is not None and not wishes.incidents.is_file():
        raise ConfigError(f"--incidents {wishes.incidents}: no such file (seen from {Path.cwd()})")


def _converted(paths: Sequence[Path], out: Path, raw_text: bool) -> list[str]:
    """Write the wide table; how a configuration names it."""
    if any(out.exists() and out.samefile(path) for path in paths):
        raise ConfigError(f"--convert {out}: is one of the files to read; it would be replaced")
    table = to_wide(paths)
    with atomic(out) as temporary:
        content = csv_table(table, raw_text=raw_text).encode()
        temporary.write_bytes(gzip.compress(content) if out.suffix == ".gz" else content)
    return [str(out)]


def _only_named(paths: Sequence[Path], export: Export, wishes: Wishes, as_json: bool) -> Answer:
    """What an export is and what to do with it, where it is no wide table."""
    told = f"{paths[0]}: {export.name}: no wide table (a row per time and series, a column per metric)"
    advice = export.instead or _to_convert(paths)
    tree = {"files": [str(path) for path in paths], "export": export.name, "advice": advice}
    text = json.dumps(tree, indent=2, ensure_ascii=False) if as_json else f"{told}\n{advice}"
    return Answer(text, f"{told} (so {wishes.write_config} is not written)" if wishes.write_config else None)


def _to_convert(paths: Sequence[Path]) -> str:
    more = " ..." if len(paths) > 1 else ""
    return f"make it one: netanomaly inspect {paths[0]}{more} --convert {paths[0].name.split('.')[0]}_wide.csv"


def _told(starter: Starter, wishes: Wishes) -> str:
    place = wishes.write_config
    lines = [f"config: {place} ({starter.rows:,} rows read with it)"]
    if wishes.bundle is not None:
        then = f"look the matches through, then: netanomaly predict {wishes.bundle} FILE --data {place}"
        return "\n".join([*lines, then])
    if starter.problem is None:
        return "\n".join([*lines, f"ready: netanomaly train {place}"])
    return "\n".join([*lines, f"not ready to train: {starter.problem}; {place} says what to do"])


def _values(found: Survey, export: Export | None, wishes: Wishes, starter: Starter | None) -> dict[str, Any]:
    """Everything as plain values."""
    tree = asdict(found) | {"export": export.name if export else None, "config": None}
    if starter is not None:
        tree["config"] = {"path": str(wishes.write_config), "rows": starter.rows, "problem": starter.problem}
    return tree
