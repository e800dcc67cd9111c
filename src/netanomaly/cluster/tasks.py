"""What an engine's tasks do, whichever engine it is: read a file as rows, score rows of one series."""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly import errors
from netanomaly.build import build_input_format
from netanomaly.cluster.packed import PackedBundle
from netanomaly.cluster.rows import rows_of_table
from netanomaly.cluster.scoring import build_parts, score_series
from netanomaly.data.file_names import refuse_equal_names
from netanomaly.data.ingest import NO_PART, find_files, read_tables
from netanomaly.errors import NetanomalyError

CHUNK_ROWS = 200_000
"""Rows of a file in memory at a time."""

File = tuple[int, str, str]
"""Its number in the order of the input, what it is called, and where a task finds it."""


@dataclass(frozen=True)
class Job:
    """How to score, beside the bundle.

    Attributes:
        overrides: how rows are written and answers computed; see `netanomaly.load`.
        part_rows: intervals of a part of a series; 0: series stay whole.
        shares: into how many files the answers go.
    """

    overrides: tuple[str, ...] = ()
    part_rows: int = 200_000
    shares: int = 32

    def check(self, packed: PackedBundle, patterns: Sequence[str]) -> list[File]:
        """What can be found out before any task starts: the files to read.

        Raises:
            BundleError, ConfigError, DataError: the bundle is damaged, the job does not suit it, a file is missing.
        """
        predictor = packed.predictor(self.overrides)
        build_parts(predictor, self.part_rows)
        files = find_files(patterns, ".")
        if not predictor.config.data.series:
            refuse_equal_names(dict.fromkeys(files, NO_PART))
        return [(number, str(file), str(file.resolve())) for number, file in enumerate(files)]

    def read(self, packed: PackedBundle, file: File) -> Iterator[pd.DataFrame]:
        """The rows of a file, some at a time, each as often as parts of its series need it; see `row_columns`.

        Raises:
            DataError: the file breaks the format; as of `netanomaly predict`, with its line.
        """
        predictor, (number, name, path) = packed.predictor(self.overrides), file
        parts, form = build_parts(predictor, self.part_rows), build_input_format(predictor.config.data).without_label()
        first = 0
        for table in read_tables([Path(path)], form, CHUNK_ROWS):
            yield rows_of_table(table, parts, name, number, first)
            first += len(table)

    def score(self, packed: PackedBundle, rows: pd.DataFrame) -> pd.DataFrame:
        """The answers to the rows of one part of one series; see `score_series`."""
        predictor = packed.predictor(self.overrides)
        logging.getLogger("netanomaly.data.grid").setLevel(logging.ERROR)  # a word about every series is too many
        return score_series(rows, predictor, build_parts(predictor, self.part_rows))

    def share(self, rows: pd.DataFrame) -> NDArray[np.int64]:
        """The number of the file that the answers to each row go to: the same for all rows of a part. (rows,)"""
        names = zip(rows["series"].tolist(), rows["part"].tolist(), strict=True)
        return np.fromiter((_share(name, part, self.shares) for name, part in names), np.int64, len(rows))


@lru_cache(maxsize=100_000)
def _share(series: str, part: int, shares: int) -> int:
    return zlib.crc32(f"{series}\n{part}".encode()) % shares


def told(error: BaseException) -> NetanomalyError | None:
    """The error for people that a task raised, from what an engine made of it: a traceback as text."""
    found = re.findall(r"netanomaly\.errors\.(\w+): ([^\n]*)", str(error))
    kind = getattr(errors, found[-1][0], None) if found else None
    return kind(found[-1][1]) if isinstance(kind, type) and issubclass(kind, NetanomalyError) else None
