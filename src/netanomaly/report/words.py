"""The summary: what happened on which series, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from netanomaly.report.content import Content, SeriesRows
from netanomaly.report.incidents import FALSE, MISSED, RIGHT, UNKNOWN, WRONG, Incident
from netanomaly.report.numbers import counted, percent


@dataclass(frozen=True)
class Sentence:
    """What one series has: its name, what happened in words, and the number of the alarm that lasted longest (-1)."""

    series: str
    text: str
    longest: int


@dataclass(frozen=True)
class Figure:
    """A figure that stands out: what it is, its value, and what to know about it."""

    name: str
    value: str
    remark: str = ""


def sentences(content: Content, incidents: Sequence[Incident]) -> list[Sentence]:
    """One for each series, those with most alarms first."""
    by_name: dict[str, list[Incident]] = {one.name: [] for one in content.series}
    for incident in incidents:
        by_name[incident.series].append(incident)
    rows = {one.name: one for one in content.series}
    found = [_sentence(content, rows[name], own) for name, own in by_name.items()]
    raised = {name: sum(one.number >= 0 for one in own) for name, own in by_name.items()}
    return sorted(found, key=lambda one: -raised[one.series])


def _sentence(content: Content, rows: SeriesRows, incidents: Sequence[Incident]) -> Sentence:
    alarms = [one for one in incidents if one.number >= 0]
    missed = [one for one in incidents if one.number < 0]
    tail = f"; missed: {_names(missed)}" if missed else ""
    if not alarms:
        return Sentence(rows.name, f"no alarm in {counted(len(rows), 'row')}{tail}", -1)
    longest = max(alarms, key=lambda one: (one.span, -one.start))
    clock = content.clock
    told = (
        f"longest {longest.label} {clock.between(longest.start, longest.last)} "
        f"({clock.length(longest.start, longest.last)}, confidence {longest.confidence:.2f})"
    )
    return Sentence(rows.name, f"{counted(len(alarms), 'alarm')}: {_names(alarms)}; {told}{tail}", longest.number)


def _names(incidents: Sequence[Incident]) -> str:
    """`5 congestion, 2 packet_loss`"""
    counts = Counter(one.label for one in incidents)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def figures(content: Content, incidents: Sequence[Incident]) -> list[Figure]:
    """What stands out, at the top of the page."""
    alarms = [one for one in incidents if one.number >= 0]
    eventful = len({one.series for one in alarms})
    found = [
        Figure("alarms", f"{len(alarms):,}", f"on {eventful} of {counted(len(content.series), 'series')}"),
        Figure("time covered", _covered(content), f"{counted(content.rows, 'row')} in all series"),
    ]
    if content.evaluation is None:
        return found
    verdicts = Counter(one.verdict for one in incidents)
    scores = content.evaluation["alarms"]
    caught = round((scores["recall"] or 0.0) * scores["incidents"])
    also = f", {verdicts[UNKNOWN]} where there are no labels" if verdicts[UNKNOWN] else ""
    return [
        *found,
        Figure("incidents found", f"{caught:,} of {scores['incidents']:,}", f"{percent(scores['recall'])} of them"),
        Figure("alarms that are right", f"{verdicts[RIGHT]:,}", f"{verdicts[WRONG]} with a wrong name{also}"),
        Figure("false alarms", f"{verdicts[FALSE]:,}", _rate(scores["false_alarms_per_series_day"])),
    ]


def verdict_note(incidents: Sequence[Incident]) -> str:
    """How many incidents no alarm was about; empty if there are none."""
    missed = sum(one.verdict == MISSED for one in incidents)
    return f"{counted(missed, 'incident')} raised no alarm of the right name." if missed else ""


def _rate(per_day: float | None) -> str:
    return "no normal row to raise one in" if per_day is None else f"{per_day:.3g} a series and day"


def _covered(content: Content) -> str:
    first = min(int(one.times[0]) for one in content.series)
    last = max(int(one.times[-1]) for one in content.series)
    return content.clock.length(first, last)


def when(content: Content) -> str:
    """From when to when the rows are, with the date."""
    first = min(int(one.times[0]) for one in content.series)
    last = max(int(one.times[-1]) for one in content.series)
    clock = content.clock
    return f"{clock.full(first)} to {clock.short(last, first)}"
