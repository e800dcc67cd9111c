"""Files that are series: what a file without a series column is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from netanomaly.errors import DataError

_SUFFIXES = (".csv.gz", ".csv", ".parquet", ".txt.gz", ".txt", ".gz")


def series_of_file(path: Path) -> str:
    """What a file without series columns is called as a series: its name without the suffix of its format."""
    for suffix in _SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name


def refuse_equal_names(files: Mapping[Path, int]) -> None:
    """Raise a DataError if two files of one part, each a series of its own, would be one series."""
    names = Counter((series_of_file(path), part) for path, part in files.items())
    for path, part in files.items():
        if names[series_of_file(path), part] > 1:
            raise DataError(
                f"{path}: without data.series every file is a series of its own, and another file would be "
                f"'{series_of_file(path)}' too; rename it, or name the series columns"
            )
