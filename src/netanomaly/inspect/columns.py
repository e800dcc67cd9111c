"""What each column is: a metric with unit and kind, or left out for a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from netanomaly.inspect.guesses import LeftOut, Marker, MetricGuess
from netanomaly.inspect.kinds import guess_kind, is_row_number
from netanomaly.inspect.missing import filler_of, never_negative, settle_fillers, text_markers
from netanomaly.inspect.numbers import Cells, tell_apart
from netanomaly.inspect.sample import Sample
from netanomaly.inspect.units import guess_unit, is_unit, words_of

_IDENTIFIER = re.compile(
    r"^(id|hex|mac|ip|imei|imsi|uuid|guid|index|asn|rnti|pid)$|(cell|node|server|lac|beam|user)(id|hex)$"
)
_PLACE = re.compile(r"^(lon|lat|longitude|latitude)$")
_PLAIN = re.compile(r"[A-Za-z_][\w.:/-]*")
_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{1,2}[.-][A-Za-z]{3}([.-]\d{2,4})?")


@dataclass(frozen=True)
class Columns:
    """The columns that are neither time nor series nor label.

    Attributes:
        findings: what is worth a look in them.
    """

    metrics: tuple[MetricGuess, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[Marker, ...]
    findings: tuple[str, ...]


def guess_columns(sample: Sample, names: Sequence[str], series: Sequence[NDArray[np.int64]]) -> Columns:
    """Metrics among some columns.

    Args:
        names: of the columns.
        series: the rows of each series, in order of time.
    """
    decimal = sample.dialect.decimal
    cells = {name: tell_apart(sample.cells[name], decimal) for name in names}
    left = {name: reason for name in names if (reason := _no_numbers(sample, name, cells[name]))}
    numeric = {name: cells[name] for name in names if name not in left}
    units = {name: guess_unit(name, column.values, column.percents) for name, column in numeric.items()}
    fillers = {n: f for n, column in numeric.items() if (f := filler_of(n, units[n][0], column.values))}
    markers, findings = settle_fillers(fillers, {name: column.values for name, column in numeric.items()})
    known = {name: _without(column.values, markers) for name, column in numeric.items()}
    left |= {name: reason for name, values in known.items() if (reason := _useless(name, values, series))}
    if all(name in left for name in known):  # rather a constant metric than none
        left = {name: reason for name, reason in left.items() if not reason.startswith("always")}
    metrics = []
    for name, values in known.items():
        if name not in left:
            unit, why = guess_unit(name, values, numeric[name].percents)
            metrics.append(_metric(name, unit, why, values, series))
            findings += _odd_values(sample, metrics[-1], values)
    texts = {name: (sample.cells[name], numeric[name]) for name in known if name not in left}
    return Columns(
        _with_own_names(metrics),
        tuple(LeftOut(name, left[name]) for name in names if name in left),
        (*text_markers(texts), *markers),
        tuple(findings),
    )


def _no_numbers(sample: Sample, name: str, cells: Cells) -> str | None:
    """Why a column cannot be read as numbers, if it cannot."""
    if cells.is_void:
        return "empty"
    if not cells.is_numeric:
        return _kind_of_text(sample, name, cells)
    odd = np.flatnonzero(cells.is_odd)
    if len(odd):
        text = sample.cells[name].iloc[odd[0]]
        return (
            f"{sample.place(int(odd[0]))} holds '{text[:30]}' among numbers ({len(odd)} such cells): mend them, or "
            "name them in data.missing"
        )
    return None


def _kind_of_text(sample: Sample, name: str, cells: Cells) -> str:
    row = int(np.flatnonzero(cells.is_odd)[0])
    text = str(sample.cells[name].iloc[row])
    found = f"text, like '{text[:30]}' ({sample.place(row)})"
    if _DATE.fullmatch(text):
        return f"{found}: a date, which a spreadsheet may have made of a number"
    if (unit := re.fullmatch(r"[-+]?[\d.,]+\s*([A-Za-zµμ°/%]+)", text)) and is_unit(unit[1]):
        return f"{found}: a unit in the cell; export raw values, and name the unit in data.metrics"
    if text.lower() in ("true", "false"):
        return f"{found}: export 1 and 0 to use it"
    return found


def _useless(name: str, values: NDArray[np.float64], series: Sequence[NDArray[np.int64]]) -> str | None:
    """Why a column of numbers is no metric, if it is none."""
    numbers = values[~np.isnan(values)]
    last = (words_of(name) or [""])[-1]
    if not len(numbers):
        return 'nothing but cells that mean "not measured"'
    if _IDENTIFIER.search(last):
        return "an identifier by its name"
    if _PLACE.search(last):
        return "a place by its name"
    if len(numbers) > 1 and (numbers == numbers[0]).all():
        return f"always {numbers[0]:g}"
    return "counts the rows" if is_row_number(name, values, series) else None


def _without(values: NDArray[np.float64], markers: Sequence[Marker]) -> NDArray[np.float64]:
    return np.where(np.isin(values, [float(marker.text) for marker in markers]), np.nan, values)


def _metric(
    name: str, unit: str, why: str, values: NDArray[np.float64], series: Sequence[NDArray[np.int64]]
) -> MetricGuess:
    kind = guess_kind(name, unit, values, series)
    numbers = values[~np.isnan(values)]
    low, middle, high = (float(f(numbers)) for f in (np.min, np.median, np.max))
    missing = len(values) - len(numbers)
    return MetricGuess(name, name, unit, kind.kind, why, kind.reason, missing, low, middle, high, kind.resets)


def _odd_values(sample: Sample, metric: MetricGuess, values: NDArray[np.float64]) -> list[str]:
    """Values that can hardly be right."""
    found = []
    if never_negative(metric.column, metric.unit) and (below := np.flatnonzero(values < 0)).size:
        found.append(
            f"{len(below)} values of '{metric.column}' are below zero, the first {values[below[0]]:g} "
            f"({sample.place(int(below[0]))}), where none can be"
        )
    if metric.unit == "ratio" and (above := np.flatnonzero(values > 1)).size:
        found.append(
            f"{len(above)} values of '{metric.column}' are above 1, the first {values[above[0]]:g} "
            f"({sample.place(int(above[0]))}): a share, or is its unit %?"
        )
    if metric.unit == "%" and (above := np.flatnonzero(values > 100)).size:
        found.append(
            f"{len(above)} values of '{metric.column}' are above 100 %, the first {values[above[0]]:g} "
            f"({sample.place(int(above[0]))})"
        )
    return found


def _with_own_names(metrics: Sequence[MetricGuess]) -> tuple[MetricGuess, ...]:
    """Names without spaces and brackets, each once: a config and an output are easier to read with them."""
    taken: set[str] = set()
    named = []
    for metric in metrics:
        name = metric.column if _PLAIN.fullmatch(metric.column) else _slug(metric)
        while name in taken:
            name += "_2"
        taken.add(name)
        named.append(replace(metric, name=name))
    return tuple(named)


def _slug(metric: MetricGuess) -> str:
    words = "_".join(words_of(metric.column)).replace("%", "percent").replace("/", "_per_")
    return words if re.match("[a-z_]", words) else f"metric_{words}"
