"""Rows and alarms small enough to check by eye: one letter is one row of one second."""

from __future__ import annotations

import numpy as np

from netanomaly.alarms.raising import AlarmCollector, Alarms
from netanomaly.alarms.rule import AlarmRule
from netanomaly.evaluation.rows import ScoredRows

SECOND = 10**9
CLASSES = ("normal", "a", "b")
LETTERS = {".": "normal", "a": "a", "b": "b"}


def truth(**series: str) -> ScoredRows:
    """Labelled rows of one or more series, `.` for normal, ` ` for a row without a label."""
    rows = [
        (name, second * SECOND, LETTERS[letter])
        for name, letters in series.items()
        for second, letter in enumerate(letters)
        if letter != " "
    ]
    names, times, labels = zip(*rows, strict=True)
    return ScoredRows(
        series=np.array(names, dtype=object),
        times=np.array(times, dtype=np.int64),
        truth=np.array(labels, dtype=object),
        interval_ns=SECOND,
        max_gap_ns=3 * SECOND + SECOND // 2,
        normal="normal",
        no_data="no_data",
    )


def alarms(*told: tuple[str, str, int, int, int]) -> Alarms:
    """Alarms from (series, label, start, last, raised), in seconds."""
    series, labels, starts, lasts, raised = zip(*told, strict=True) if told else ((),) * 5
    times = [np.array(values, dtype=np.int64) * SECOND for values in (starts, lasts, raised)]
    ones = np.ones(len(told))
    return Alarms(
        np.array(series, dtype=object),
        np.array(labels, dtype=object),
        *times,
        times[0],
        ones,
        ones,
        ones,
        ones.astype(np.int64),
        0 * ones,
    )


def raised(rule: AlarmRule, chunks: int = 1, seed: int | None = None, **series: str) -> Alarms:
    """The alarms of digits: a row's probability of class `a` in tenths, `A` to `J` for those of `b`; ` `: no data.

    The rows come in so many pieces, shuffled with a seed.
    """
    rows = [(name, second, letter) for name, letters in series.items() for second, letter in enumerate(letters)]
    if seed is not None:
        rows = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
    collector = AlarmCollector(rule, CLASSES, SECOND)
    for some in np.array_split(np.arange(len(rows)), chunks):
        part = [rows[i] for i in some]
        probabilities = np.array([_probabilities(letter) for _, _, letter in part]).reshape(len(part), 3)
        names = np.array([name for name, _, _ in part], dtype=object)
        collector.add(names, np.array([second for _, second, _ in part], dtype=np.int64) * SECOND, probabilities)
    return collector.alarms()


def _probabilities(letter: str) -> tuple[float, float, float]:
    if letter == " ":
        return (0.0, 0.0, 0.0)
    if letter.isdigit():
        return (1 - int(letter) / 10, int(letter) / 10, 0.0)
    share = (ord(letter) - ord("A")) / 10
    return (1 - share, 0.0, share)


def seconds(found: Alarms) -> list[tuple[str, str, int, int, int]]:
    """Alarms as `alarms` takes them."""
    columns = (found.starts // SECOND, found.lasts // SECOND, found.raised // SECOND)
    return [tuple(row) for row in zip(found.series, found.labels, *(c.tolist() for c in columns), strict=True)]
