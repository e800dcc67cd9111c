"""What a model that does not know the series finds odd in its labels: names, incidents that are missing, onsets.

Nothing here says that a label is wrong: a model errs, too. It says where to look first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.matching import TrueIncidents, match
from netanomaly.alarms.raising import AlarmCollector
from netanomaly.alarms.rule import AlarmRule
from netanomaly.audit.cross_fit import CrossFitted
from netanomaly.by_name import rows_by_name
from netanomaly.evaluation.events import find_incidents

LABEL, MISSING, ONSET = "label", "missing", "onset"
REACH = 40
"""Rows before and after an onset among which a better one is sought, at most."""
LEAST_SHIFT = 4
"""Rows by which an onset has to be off to be told."""
MISSING_ROWS = 5
"""Rows that have to look like an incident until it is told as missing."""


@dataclass(frozen=True)
class Finding:
    """One incident to look at.

    Attributes:
        kind: `label`: the label of the incident is unlikely; `missing`: normal rows look like an incident; `onset`: it
            seems to begin earlier or later than the label says.
        start, last: time of its first and its last row, ns since 1970.
        label, p_label: what the rows are called, and the mean probability of that.
        suggested, p_suggested: the class with the largest mean probability.
        shift_s: seconds by which the onset seems to be off: positive if it seems to begin later; 0 for other kinds.
        suspicion: what findings are ordered by, between 0 and 1.
    """

    kind: str
    series: str
    start: int
    last: int
    label: str
    p_label: float
    suggested: str
    p_suggested: float
    shift_s: float
    suspicion: float


def find(given: CrossFitted) -> list[Finding]:
    """Everything odd, the most suspicious first."""
    found = [*_labels(given), *_missing(given), *_onsets(given)]
    return sorted(found, key=lambda one: (-one.suspicion, one.series, one.start))


def _labels(given: CrossFitted) -> Iterator[Finding]:
    """Incidents whose rows look more like another class."""
    incidents = find_incidents(given.rows, given.rows.truth)
    for rows in np.split(incidents.rows, incidents.starts[1:]) if len(incidents) else ():
        label = str(given.rows.truth[rows[0]])
        mean = given.probabilities[rows].mean(axis=0)
        own, best = float(mean[given.classes.index(label)]), int(mean.argmax())
        if given.classes[best] != label:
            likely = float(mean[best])
            yield _finding(given, LABEL, rows, label, own, given.classes[best], likely, 0.0, likely - own)


def _missing(given: CrossFitted) -> Iterator[Finding]:
    """Stretches of normal rows that would raise an alarm and overlap no incident."""
    normal = given.rows.normal
    if normal not in given.classes:
        return
    plain = AlarmRule.plain(given.classes, normal)
    rule = AlarmRule(plain.thresholds, plain.hysteresis, min_rows=MISSING_ROWS, merge_rows=MISSING_ROWS)
    collector = AlarmCollector(rule, given.classes, given.rows.interval_ns)
    collector.add(given.rows.series, given.rows.times, given.probabilities)
    alarms = collector.alarms()
    matches, of_series = match(TrueIncidents.of_rows(given.rows), alarms, given.rows.interval_ns), _by_series(given)
    for i in np.flatnonzero(matches.is_false):
        own_rows = of_series[str(alarms.series[i])]
        times = given.rows.times[own_rows]
        start, stop = np.searchsorted(times, alarms.starts[i]), np.searchsorted(times, alarms.lasts[i], side="right")
        rows = own_rows[start:stop]
        mean = given.probabilities[rows].mean(axis=0)
        own, label = float(mean[given.classes.index(normal)]), str(alarms.labels[i])
        likely = float(mean[given.classes.index(label)])
        yield _finding(given, MISSING, rows, normal, own, label, likely, 0.0, likely - own)


def _onsets(given: CrossFitted) -> Iterator[Finding]:
    """Incidents that seem to begin earlier or later than others of their class do against their labels.

    A model knows the past alone, so it sees every onset late, those of some classes more than others: what counts is
    how far an onset is off the median of its class.
    """
    if given.rows.normal not in given.classes:
        return
    incidents = find_incidents(given.rows, given.rows.truth)
    pieces = np.split(incidents.rows, incidents.starts[1:]) if len(incidents) else []
    of_series = _by_series(given)
    shifts = [
        _shift(given, rows, of_series[str(given.rows.series[rows[0]])]) if _looks_like_its_label(given, rows) else None
        for rows in pieces
    ]
    for name in sorted(set(incidents.labels)):
        own = [i for i, label in enumerate(incidents.labels) if label == name and shifts[i] is not None]
        if len(own) < 3:  # no median to speak of
            continue
        values = np.array([shifts[i][0] for i in own], dtype=np.float64)  # type: ignore[index]
        off = values - np.median(values)
        usual = 3 * 1.4826 * np.median(np.abs(off))  # three standard deviations, if they were normal
        for i, rows_off in zip(own, off, strict=True):
            if abs(rows_off) >= max(LEAST_SHIFT, usual):
                _, gain = shifts[i]  # type: ignore[misc]
                mean = given.probabilities[pieces[i]].mean(axis=0)
                likely = float(mean[given.classes.index(str(name))])
                seconds = float(rows_off * given.rows.interval_ns / 1e9)
                yield _finding(given, ONSET, pieces[i], str(name), likely, str(name), likely, seconds, gain)


def _looks_like_its_label(given: CrossFitted, rows: NDArray[np.int64]) -> bool:
    """Whether, of all classes but the normal one, an incident's own is the likeliest in its rows."""
    mean = given.probabilities[rows].mean(axis=0)
    mean[given.classes.index(given.rows.normal)] = 0
    return bool(given.classes[int(mean.argmax())] == given.rows.truth[rows[0]])


def _shift(given: CrossFitted, rows: NDArray[np.int64], series: NDArray[np.int64]) -> tuple[int, float] | None:
    """Rows from the labelled onset of an incident to its likeliest one, and how sure that is (0 to 1).

    The likeliest onset s has the largest sum over rows before s of log p(normal) and from s on of log p(label). None
    where no normal rows lie before the incident.
    """
    before = _calm_before(given, rows, series)[-REACH:]
    label = str(given.rows.truth[rows[0]])
    if len(before) < LEAST_SHIFT:
        return None
    around = np.r_[before, rows[:REACH]]
    tiny = 1e-3  # one row alone does not decide
    columns = [given.classes.index(name) for name in (label, given.rows.normal)]
    logs = np.log(np.maximum(given.probabilities[around][:, columns], tiny))  # (rows around, 2)
    worth = np.cumsum((logs[:, 0] - logs[:, 1])[::-1])[::-1]  # of an onset at each row, up to a number
    best = int(worth.argmax())
    gain, shift = float(worth[best] - worth[len(before)]), best - len(before)
    return shift, 1 - float(np.exp(-gain / max(abs(shift), 1)))


def _calm_before(given: CrossFitted, rows: NDArray[np.int64], series: NDArray[np.int64]) -> NDArray[np.int64]:
    """The normal rows that end where an incident begins, about `REACH`, of the rows of its series in order of time."""
    first = given.rows.times[rows[0]]
    times = given.rows.times[series]
    since = first - (REACH + 1) * given.rows.interval_ns
    found = series[np.searchsorted(times, since) : np.searchsorted(times, first)]
    stops = np.flatnonzero(given.rows.truth[found] != given.rows.normal)
    return found[stops[-1] + 1 :] if len(stops) else found


def _by_series(given: CrossFitted) -> dict[str, NDArray[np.int64]]:
    """The rows of each series, in order of time."""
    groups = rows_by_name(given.rows.series)
    return {name: own[np.argsort(given.rows.times[own], kind="stable")] for name, own in groups.items()}


def _finding(
    given: CrossFitted,
    kind: str,
    rows: NDArray[np.int64],
    label: str,
    p_label: float,
    suggested: str,
    p_suggested: float,
    shift_s: float,
    suspicion: float,
) -> Finding:
    return Finding(
        kind,
        str(given.rows.series[rows[0]]),
        int(given.rows.times[rows[0]]),
        int(given.rows.times[rows[-1]]),
        label,
        p_label,
        suggested,
        p_suggested,
        shift_s,
        float(suspicion),
    )
