"""Rows with probabilities in, incidents out when they begin and end: what `AlarmCollector` says once all is known.

Of each series only the incidents that still go on are kept, so memory is that of what is wrong right now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.raising import Alarms
from netanomaly.alarms.rule import AlarmRule

PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "int | None": (int, type(None)),
}
"""What JSON makes of values, by their annotation."""


@dataclass
class Incident:
    """An incident as far as it has come; times in ns since 1970.

    Attributes:
        label: the class.
        start, last, peak: times of its first row, its last one so far, and the one with the largest confidence.
        raised: time of the row at which its alarm was raised; None: nobody has been told of it yet.
        first_confidence, peak_confidence, sum_confidence: of the class in the first row, at the peak, over all rows.
        rows: how many count for it.
        novel: how many of these are like none of training.
        is_sure: one of them has reached the threshold.
    """

    series: str
    label: str
    start: int
    last: int
    peak: int
    first_confidence: float
    peak_confidence: float
    sum_confidence: float
    rows: int
    novel: int
    is_sure: bool
    raised: int | None = None

    def add(self, time: int, confidence: float, *, is_sure: bool, is_novel: bool) -> None:
        """Take another row, later than the last."""
        if confidence > self.peak_confidence:
            self.peak, self.peak_confidence = time, confidence
        self.last, self.sum_confidence = time, self.sum_confidence + confidence
        self.rows, self.novel = self.rows + 1, self.novel + is_novel
        self.is_sure |= is_sure


@dataclass(frozen=True)
class Event:
    """Somebody is to be told: an alarm is raised, or its incident is over; the incident as it was then."""

    kind: Literal["opened", "closed"]
    incident: Incident


class LiveAlarms:
    """Takes rows as they come and tells the alarms when they are raised and when their incidents are over.

    An incident is over at the first row of its series that lies too far behind its last one to belong to it, or when
    the series is forgotten.

    Args:
        rule: when rows become an alarm.
        classes: names of the K columns.
        interval_ns: time between rows.

    Attributes:
        opened: alarms raised so far, by class.
    """

    def __init__(self, rule: AlarmRule, classes: tuple[str, ...], interval_ns: int) -> None:
        self.rule, self.classes, self.interval_ns = rule, classes, interval_ns
        self.opened: Counter[str] = Counter()
        self._limits = rule.limits(classes)
        self._reach = interval_ns * (rule.merge_rows + 1) + interval_ns // 2  # clocks are not exact
        self._running: dict[str, dict[str, Incident]] = {}  # by series and class

    def take(
        self,
        series: NDArray[np.object_],
        times: NDArray[np.int64],
        probabilities: NDArray[np.floating],
        novelty: NDArray[np.float64],
    ) -> list[Event]:
        """Take the next rows, none older than what its series had before.

        Args:
            series, times: of each row, in nanoseconds since 1970. (rows,)
            probabilities: of the classes, zero where nothing was measured. (rows, K)
            novelty: how unlike training each row is, above 1 for unknown. (rows,)

        Returns:
            What somebody is to be told, in order of time.
        """
        against = probabilities / self._limits  # (rows, K)
        best = against.argmax(axis=1)
        reached = against[np.arange(len(best)), best]
        counts = reached >= self.rule.hysteresis
        busy = {*self._running, *series[counts].tolist()}
        if not busy:
            return []
        rows = np.flatnonzero([name in busy for name in series.tolist()])
        events: list[Event] = []
        for row in rows[np.argsort(times[rows], kind="stable")].tolist():
            name, time = str(series[row]), int(times[row])
            events += self._over(name, time)
            if counts[row]:
                confidence, label = float(probabilities[row, best[row]]), self.classes[best[row]]
                events += self._count(name, label, time, confidence, bool(reached[row] >= 1), bool(novelty[row] > 1))
        return events

    @property
    def open(self) -> list[Incident]:
        """The incidents that somebody has been told of and that go on; may be asked by another thread."""
        running = [incident for own in list(self._running.values()) for incident in list(own.values())]
        return [incident for incident in running if incident.raised is not None]

    def forget(self, alive: Container[str]) -> list[Event]:
        """What is over because its series is none of these any more."""
        gone = [name for name in self._running if name not in alive]
        return [event for name in gone for event in self.begin_again(name)]

    def begin_again(self, series: str) -> list[Event]:
        """What is over because the series is forgotten: its next row may be older than its last."""
        return _closed(self._running.pop(series, {}).values())

    def state(self) -> list[dict[str, Any]]:
        """What goes on, as plain values; see `restore`."""
        return [asdict(incident) for own in self._running.values() for incident in own.values()]

    def restore(self, state: Iterable[Mapping[str, Any]]) -> None:
        """Go on from `state`. Raises TypeError or ValueError if it is none of these classes."""
        running: dict[str, dict[str, Incident]] = {}
        for values in state:
            incident = _of_plain(values)
            if incident.label not in self.classes:
                raise ValueError(f"an incident of the class '{incident.label}', which the bundle does not know")
            running.setdefault(incident.series, {})[incident.label] = incident
        self._running = running

    def _over(self, series: str, time: int) -> list[Event]:
        """Incidents of the series that a row at this time is too late for are over."""
        own = self._running.get(series)
        if own is None:
            return []
        over = [incident for incident in own.values() if time - incident.last > self._reach]
        for incident in over:
            del own[incident.label]
        if not own:
            del self._running[series]
        return _closed(over)

    def _count(
        self, series: str, label: str, time: int, confidence: float, is_sure: bool, is_novel: bool
    ) -> list[Event]:
        """A row counts for a class; its alarm may be raised by that."""
        own = self._running.setdefault(series, {})
        incident = own.get(label)
        if incident is None:
            numbers = (time, time, time, confidence, confidence, confidence, 1, int(is_novel))
            incident = own[label] = Incident(series, label, *numbers, is_sure)
        elif time > incident.last:  # of the rows of one moment the first counts
            incident.add(time, confidence, is_sure=is_sure, is_novel=is_novel)
        if incident.raised is not None or not incident.is_sure or incident.rows < self.rule.min_rows:
            return []
        incident.raised = time
        self.opened[label] += 1
        return [Event("opened", replace(incident))]  # as it is now: the rows after this one change it


def _of_plain(values: Any) -> Incident:
    """An incident of plain values. Raises TypeError or ValueError if they are something else."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{values} is no incident")
    incident = Incident(**values)
    for field in fields(Incident):
        value = getattr(incident, field.name)
        if type(value) not in PLAIN[str(field.type)]:
            raise TypeError(f"{field.name} of an incident is {value!r}, not {field.type}")
        if isinstance(value, int | float) and not abs(value) < 2**63:  # NaN, too
            raise ValueError(f"{field.name} of an incident is {value}")
    if incident.rows < 1 or not incident.peak_confidence > 0:
        raise ValueError("an incident without rows")
    return incident


def _closed(incidents: Iterable[Incident]) -> list[Event]:
    """Those that somebody has been told of are told to be over."""
    return [Event("closed", incident) for incident in incidents if incident.raised is not None]


def alarms_of(incidents: Sequence[Incident]) -> Alarms:
    """Incidents that were raised, as `AlarmCollector` tells them, in the order given."""
    columns = {key: [getattr(one, key) for one in incidents] for key in Incident.__dataclass_fields__}
    times = {key: np.array(columns[key], dtype=np.int64) for key in ("start", "last", "raised", "peak")}
    rows, peaks = np.array(columns["rows"], dtype=np.int64), np.array(columns["peak_confidence"], dtype=np.float64)
    return Alarms(
        series=np.array(columns["series"], dtype=object),
        labels=np.array(columns["label"], dtype=object),
        starts=times["start"],
        lasts=times["last"],
        raised=times["raised"],
        peaks=times["peak"],
        peak_confidence=peaks,
        mean_confidence=np.array(columns["sum_confidence"], dtype=np.float64) / rows,
        onset_certainty=np.array(columns["first_confidence"], dtype=np.float64) / peaks,
        rows=rows,
        novel=np.array(columns["novel"], dtype=np.float64) / rows,
    )
