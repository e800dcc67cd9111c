"""The function that a cluster runs: all rows of one series, or of a part of it, to their answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.build import build_feed_rule, build_grid
from netanomaly.cluster.parts import Parts
from netanomaly.cluster.rows import answer_columns, table_of_rows
from netanomaly.data.grid import Grid
from netanomaly.errors import DataError
from netanomaly.predictor import Predictor

_PANDAS = {"string": "str", "long": "int64", "double": "float64"}

ORDER = ["time", "file_number", "row"]
"""What rows of a series are sorted by: at equal times in the order of the input, whatever the engine made of it."""


def build_parts(predictor: Predictor, part_rows: int) -> Parts:
    """How the predictor's series are cut into parts of so many intervals; 0: not at all.

    Raises:
        ConfigError: parts would be shorter than what a decision depends on.
    """
    rule, may_share = build_feed_rule(predictor.config), predictor.config.data.duplicates != "error"
    return Parts(rule, part_rows, may_share)


def score_series(rows: pd.DataFrame, predictor: Predictor, parts: Parts) -> pd.DataFrame:
    """The answers to the rows of one part of one series, as `Predictor.predict` gives them for all rows at once.

    Args:
        rows: as `rows_of_table` makes them, in any order, those that are only context included.

    Returns:
        The columns of `answer_columns`, in order of time; the same for the same rows, in whatever order they came.

    Raises:
        DataError: rows share a step of the grid and must not, or the steps depend on rows that did not go along.
    """
    rows = rows.sort_values(ORDER, kind="stable", ignore_index=True)
    asked = ~rows["context"].to_numpy(dtype=bool)
    columns = answer_columns(predictor.classes)
    if not asked.any():  # all of them are of a part before or behind
        return pd.DataFrame({name: pd.Series(dtype=_PANDAS[kind]) for name, kind in columns.items()})
    table = table_of_rows(rows, parts.rule.metrics)
    _check_exact(rows, asked, parts)
    grid = build_grid(predictor.config, table)
    answers = grid.to_rows(predictor.answers(grid.segments, _steps_of(grid, asked)))[asked]
    labelled = predictor.labelled(table_of_rows(rows[asked].reset_index(drop=True), table.metrics), answers)
    places = rows.loc[asked, ["file", "row"]].reset_index(drop=True)
    found = pd.concat([places, labelled], axis=1)[list(columns)]
    return found.astype({name: _PANDAS[kind] for name, kind in columns.items()})


def _steps_of(grid: Grid, rows: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """The steps on which these rows lie. (rows,) to (T,) per segment"""
    starts = np.cumsum([0, *(len(segment) for segment in grid.segments)])
    steps = np.zeros(starts[-1], dtype=bool)
    steps[(starts[grid.row_segment] + grid.row_step)[rows]] = True
    return np.split(steps, starts[1:-1])


def _check_exact(rows: pd.DataFrame, asked: NDArray[np.bool_], parts: Parts) -> None:
    first = int(np.argmax(asked))
    if not parts.is_exact(int(rows["part"].iloc[0]), rows["time"].to_numpy(dtype=np.int64), first):
        raise DataError(
            f"series '{rows['series'].iloc[first]}': so many rows share steps of the grid that where it can be cut at "
            f"{rows['timestamp'].iloc[first]} does not show; give --part-rows 0, or check data.interval"
        )
