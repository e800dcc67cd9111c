"""Files are looked through, a configuration is written, and the reader of training reads with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netanomaly.build import build_input_format
from netanomaly.config import Config, load_config
from netanomaly.data.ingest import NO_PART, Table, find_files, read_table
from netanomaly.inspect.command import Wishes, inspect_files


def config_for(directory: Path, *files: Path, **wishes: Any) -> Config:
    """The configuration that inspect writes for some files."""
    place = directory / "start.yaml"
    answer = inspect_files([str(file) for file in files], Wishes(write_config=place, overwrite=True, **wishes), False)
    assert answer.problem is None, answer.problem
    return load_config(place)


def read_with(config: Config) -> Table:
    """The rows of the configuration's files."""
    files = find_files(config.data.files, config.data.root)
    return read_table(dict.fromkeys(files, NO_PART), build_input_format(config.data))
