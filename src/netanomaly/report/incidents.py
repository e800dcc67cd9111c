"""The alarms of a report one by one, and the incidents that raised none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netanomaly.alarms.matching import TrueIncidents, match
from netanomaly.by_name import rows_by_name
from netanomaly.data.ingest import UNKNOWN as NEW
from netanomaly.incident_files import MOSTLY
from netanomaly.report.content import Content

RIGHT, WRONG, FALSE, MISSED, UNKNOWN = "right", "wrong name", "false alarm", "missed", "no label"
"""What the labels say of an alarm, or of an incident without one."""


@dataclass(frozen=True)
class Incident:
    """An alarm, or an incident of the labels that raised none.

    Attributes:
        number: of the alarm; -1: there is none.
        start, last, raised, peak: times in ns since 1970; without an alarm `raised` and `peak` are that of the start.
        confidence, mean_confidence, onset: see `Alarms`; None without an alarm.
        looks_like: the class of an alarm, also where its label is `unknown`.
        novel: share of its rows that are like none of training; 0 without an alarm.
        verdict: what the labels say; None where the rows have none.
        truth: labels of the incidents that it shares a moment with, the longest first; empty if it shares none.
    """

    number: int
    series: str
    label: str
    start: int
    last: int
    raised: int
    peak: int
    confidence: float | None
    mean_confidence: float | None
    onset: float | None
    novel: float = 0.0
    looks_like: str = ""
    verdict: str | None = None
    truth: tuple[str, ...] = ()

    @property
    def span(self) -> int:
        """From the first row to the last, in ns."""
        return self.last - self.start


def incidents(content: Content) -> list[Incident]:
    """All alarms, and the missed incidents, in order of their start."""
    alarms, verdicts, truths, missed = content.alarms, *_judged(content)
    found = [
        Incident(
            number=i,
            series=str(alarms.series[i]),
            label=NEW if alarms.novel[i] > MOSTLY else str(alarms.labels[i]),
            looks_like=str(alarms.labels[i]),
            start=int(alarms.starts[i]),
            last=int(alarms.lasts[i]),
            raised=int(alarms.raised[i]),
            peak=int(alarms.peaks[i]),
            confidence=float(alarms.peak_confidence[i]),
            mean_confidence=float(alarms.mean_confidence[i]),
            onset=float(alarms.onset_certainty[i]),
            novel=float(alarms.novel[i]),
            verdict=verdicts[i],
            truth=truths[i],
        )
        for i in range(len(alarms))
    ]
    return sorted([*found, *missed], key=lambda one: (one.start, one.series, one.label))


def _judged(content: Content) -> tuple[list[str | None], list[tuple[str, ...]], list[Incident]]:
    """What the labels say of each alarm, which incidents it shares moments with, and those that were missed."""
    alarms = content.alarms
    if content.scored is None:
        return [None] * len(alarms), [()] * len(alarms), []
    rows = content.scored[0]
    true = TrueIncidents.of_rows(rows)
    matches = match(true, alarms, rows.interval_ns)
    verdicts: list[str | None] = [FALSE] * len(alarms)
    truths: list[tuple[str, ...]] = [()] * len(alarms)
    of_rows, of_true = rows_by_name(rows.series), rows_by_name(true.series)
    nothing = np.empty(0, dtype=np.int64)
    for name, own in rows_by_name(alarms.series).items():
        theirs = of_true.get(name, nothing)
        labelled = np.sort(rows.times[of_rows.get(name, nothing)])
        for i in own:
            start, last = alarms.starts[i], alarms.lasts[i]
            shared = np.minimum(last, true.lasts[theirs]) - np.maximum(start, true.starts[theirs])
            longest = theirs[np.argsort(-shared, kind="stable")][: int((shared >= 0).sum())]
            truths[i] = tuple(dict.fromkeys(str(label) for label in true.labels[longest]))
            if matches.incident[i] >= 0:
                verdicts[i] = RIGHT
            elif not matches.is_false[i]:
                verdicts[i] = WRONG
            elif np.searchsorted(labelled, start) == np.searchsorted(labelled, last, side="right"):
                verdicts[i] = UNKNOWN
    missed = [
        Incident(
            number=-1,
            series=str(true.series[i]),
            label=str(true.labels[i]),
            start=int(true.starts[i]),
            last=int(true.lasts[i]),
            raised=int(true.starts[i]),
            peak=int(true.starts[i]),
            confidence=None,
            mean_confidence=None,
            onset=None,
            verdict=MISSED,
            truth=(str(true.labels[i]),),
        )
        for i in np.flatnonzero(np.isnan(matches.delays))
    ]
    return verdicts, truths, missed
