"""Which columns name the series, and which one the state of a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.inspect.guesses import LabelGuess, SeriesGuess
from netanomaly.inspect.numbers import NUMBER
from netanomaly.inspect.units import words_of

_NAMES = re.compile(
    r"^(series|link|links|interface|ifname|ifdescr|ifalias|if_?name|port|device|host|hostname|node|router|switch"
    r"|site|path|circuit|tunnel|instance|agent_host|target|probe|station|peer|vlan|link_?id|entity)(_?name|_?id)?$",
    re.IGNORECASE,
)
_LABELS = ("label", "labels", "class", "anomaly", "fault", "incident", "attack", "ground_truth", "target_class")
_STATES = ("state", "status", "type", "category", "event")
_NORMAL = ("normal", "ok", "benign", "healthy", "none", "good", "up", "no", "0", "false", "no_fault")
FEWEST = 2
"""Rows that a series has on average, or a column that is not called so does not name series."""
_FILE, _TIME, _NAME = "\0file", "\0time", "\0name"  # no names of columns
MOST_LABELS = 60


def guess_series(
    cells: pd.DataFrame, moments: NDArray[np.int64] | None, file: NDArray[np.int64], file_names: Sequence[str]
) -> SeriesGuess:
    """The columns that name the series.

    Args:
        cells: columns that may be: neither time nor label. (rows, columns)
        moments: the time of each row, if it can be read. (rows,)
        file: of each row. (rows,)
        file_names: what series are called without a column for them.
    """
    chosen = [str(name) for name in cells.columns if _NAMES.match(name) and _names_things(cells[name], 1)]
    kept: list[str] = []
    for column in chosen:  # `host` beside `link` tells nothing if each link has one host
        if not kept or _groups(cells, [*kept, column]) > _groups(cells, kept):
            kept.append(column)
    reasons = ["the header says so"] if kept else []
    if moments is not None:
        keys = cells[kept].assign(**{_FILE: file, _TIME: moments})
        more, reason = _by_duplicates(cells.drop(columns=kept), keys)
        kept, reasons = [*kept, *more], [*reasons, *([reason] if more else [])]
    if not kept:
        rows = {name: int((file == index).sum()) for index, name in enumerate(file_names)}
        return SeriesGuess((), "no column names series: every file is one", rows)
    names = cells[kept[0]]
    for column in kept[1:]:
        names = names + "/" + cells[column]
    rows = {str(name): int(count) for name, count in names.value_counts(sort=False).items()}
    return SeriesGuess(tuple(kept), "; ".join(reasons), rows)


def _by_duplicates(cells: pd.DataFrame, keys: pd.DataFrame) -> tuple[list[str], str]:
    """The column of text with which most rows that share their keys, a time among them, are told apart."""
    before = int(keys.duplicated().sum())
    best, left = None, 0.1 * before
    for column in cells.columns if before else ():
        texts = cells[column]
        if not texts.str.fullmatch(NUMBER).all() and _names_things(texts, FEWEST):
            after = int(keys.assign(**{_NAME: texts}).duplicated().sum())
            if after < left:
                best, left = column, after
    if best is None:
        return [], ""
    return [best], f"{before} rows have the time of another, {int(left)} do within one '{best}'"


def _names_things(texts: pd.Series, fewest: int) -> bool:
    """Whether each row has a name, and names come again: `fewest` rows for each, on average, and not one only."""
    names = texts.nunique()
    return bool((texts != "").all()) and names * fewest <= len(texts) and (names < len(texts) or len(texts) < 3)


def _groups(cells: pd.DataFrame, columns: list[str]) -> int:
    return len(cells[columns].drop_duplicates())


def series_names(cells: pd.DataFrame, columns: Sequence[str], file: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for the series of each row. (rows,)"""
    keys = [cells[column].to_numpy() for column in columns] or [file]
    groups = pd.DataFrame(dict(enumerate(keys))).groupby(list(range(len(keys))), sort=True)
    return np.asarray(groups.ngroup(), dtype=np.int64)


def guess_label(cells: pd.DataFrame) -> LabelGuess | None:
    """The column that holds the state of each row, by its name; a weak name needs a state that is called normal."""
    for column in cells.columns:
        name = "_".join(words_of(column))
        is_strong = name in _LABELS or name.split("_")[-1] in ("label", "labels")
        if not is_strong and name not in _STATES:
            continue
        counts = cells[column].value_counts()
        labels = [str(label) for label in counts.index.tolist() if label != ""]
        if not labels or len(labels) > MOST_LABELS:
            continue
        calm = next((label for label in labels if label.lower() in _NORMAL), None)
        if not is_strong and (calm is None or len(labels) < 2):
            continue
        reason = "the header says so" if is_strong else f"its name, and that '{calm}' is among its values"
        rows = {str(label): int(count) for label, count in counts.items()}
        return LabelGuess(column, None, reason, rows, calm or labels[0])
    return None


def label_of_incidents(path: Path) -> LabelGuess:
    """Labels that come from a list of incidents."""
    return LabelGuess(None, path, "named with --incidents", {}, "normal")
