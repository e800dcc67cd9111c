"""Scores of whole incidents: found or not, how late, and how many false alarms.

An incident is a longest run of rows of one series, in order of time, with one and the same label that is not the
normal one. Nothing here is point-adjusted: one row that is named right finds an incident but leaves every score of
rows as it is. (Point adjustment, which takes all rows of a found incident for right, makes random scores look good:
Kim et al., Towards a Rigorous Evaluation of Time-Series Anomaly Detection, AAAI 2022.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.evaluation.rows import ScoredRows

DAY_NS = 24 * 3600 * 10**9


@dataclass(frozen=True)
class Incidents:
    """Runs of rows, one after the other, each in order of time.

    Attributes:
        rows: positions of the n rows that are in an incident. (n,)
        number: the incident of each of them, counted from 0. (n,)
        starts: where in `rows` each incident begins. (incidents,)
        labels: of each incident. (incidents,)
    """

    rows: NDArray[np.int64]
    number: NDArray[np.int64]
    starts: NDArray[np.int64]
    labels: NDArray[np.object_]

    def holds(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Incidents with at least one marked row, (rows of the table,) to (incidents,)."""
        return np.asarray(np.bincount(self.number[marked[self.rows]], minlength=len(self)) > 0)

    def __len__(self) -> int:
        return len(self.labels)


def find_incidents(rows: ScoredRows, labels: NDArray[np.object_], ignored: Collection[str] = ()) -> Incidents:
    """The incidents that labels tell, those of the truth or of a classifier. (rows,)

    An incident ends with another label, with its series, and with a time without rows longer than `max_gap_ns`. Rows
    that are not among those given (they have no label) neither count nor end it: with the same label on both sides it
    goes on, within `max_gap_ns`. So it is with rows of `ignored` labels.
    """
    names, series = pd.factorize(labels)[0], pd.factorize(rows.series)[0]
    given = np.flatnonzero(~np.isin(labels, list(ignored)))
    order = given[np.lexsort((rows.times[given], series[given]))]
    names, series, times = names[order], series[order], rows.times[order]
    ends = (np.diff(names) != 0) | (np.diff(series) != 0) | (np.diff(times) > rows.max_gap_ns)
    runs = np.cumsum(np.r_[True, ends][: len(order)])
    wrong = labels[order] != rows.normal
    found = order[wrong]
    _, starts, number = np.unique(runs[wrong], return_index=True, return_inverse=True)
    return Incidents(found, number, starts, labels[found[starts]])


def incident_scores(rows: ScoredRows, predicted: NDArray[np.object_]) -> dict[str, Any]:
    """Scores of predicted labels (rows,) by incident, as plain values; null where there is nothing to divide by.

    Returns:
        incidents, predicted_incidents: how many there are.
        incident_recall: share of true incidents with a row that is given the right class.
        incident_detected_any: share with a row that is given any class but the normal one.
        incident_precision: share of predicted incidents with a row of that class in truth.
        delay_median_s, delay_p90_s: seconds from the start of an incident to its first row with the right class, of
            those that have one.
        false_alarms: predicted incidents all of whose rows are normal in truth.
        series_days: time that the labelled rows stand for: rows times interval, over all series.
        false_alarms_per_series_day: null if no row is normal, for then there can be none.
        incidents_per_class: the same of each class of the true incidents.
    """
    true = find_incidents(rows, rows.truth)
    claimed = find_incidents(rows, predicted, ignored=(rows.no_data,))
    right = predicted == rows.truth
    delays = _delays(rows, true, right)
    found_any = true.holds((predicted != rows.normal) & (predicted != rows.no_data))
    abnormal = rows.truth != rows.normal
    alarms, days = int((~claimed.holds(abnormal)).sum()), len(rows) * rows.interval_ns / DAY_NS
    return {
        **_found(delays, found_any),
        "predicted_incidents": len(claimed),
        "incident_precision": _mean(claimed.holds(right)),
        "false_alarms": alarms,
        "series_days": days,
        "false_alarms_per_series_day": None if abnormal.all() else alarms / days,
        "incidents_per_class": {
            str(name): _found(delays[true.labels == name], found_any[true.labels == name])
            for name in sorted(set(true.labels))
        },
    }


def _delays(rows: ScoredRows, incidents: Incidents, right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Seconds from each incident's start to its first row that is right, NaN where there is none. (incidents,)"""
    result = np.full(len(incidents), np.nan)
    hits = np.flatnonzero(right[incidents.rows])
    numbers, first = np.unique(incidents.number[hits], return_index=True)
    begun = rows.times[incidents.rows[incidents.starts[numbers]]]
    result[numbers] = (rows.times[incidents.rows[hits[first]]] - begun) / 1e9
    return result


def _found(delays: NDArray[np.float64], found_any: NDArray[np.bool_]) -> dict[str, Any]:
    """What is told of some incidents, from the delay of each (NaN: not found). (incidents,) each"""
    known = delays[~np.isnan(delays)]
    return {
        "incidents": len(delays),
        "incidents_found": len(known),
        "incident_recall": _mean(~np.isnan(delays)),
        "incident_detected_any": _mean(found_any),
        "delay_median_s": float(np.median(known)) if len(known) else None,
        "delay_p90_s": float(np.quantile(known, 0.9)) if len(known) else None,
    }


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None
