"""The rule that suits an aim, chosen on rows that were not learnt from.

First one threshold for all classes is tried with every way to count rows; then the thresholds move one by one, as
long as that helps. Few incidents carry the choice, so a class that has few gets no lower threshold than all have, and
of thresholds that do as well here the middle one is taken. Still: what holds on validation, other series need not
keep. A second alarm for one incident counts against a rule as a false one does (in F1, not in the false alarms).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.matching import TrueIncidents, match
from netanomaly.alarms.raising import AlarmCollector
from netanomaly.alarms.rule import AlarmRule
from netanomaly.evaluation.events import DAY_NS
from netanomaly.evaluation.rows import ScoredRows

THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
MIN_ROWS = (1, 2, 3, 5, 8, 12)
MERGE_ROWS = (0, 2, 5, 10, 20)
FEW = 10
"""Incidents of a class below which its own threshold may only be higher than that of all classes."""
PASSES = 2
"""How often every class's threshold is looked at."""

Score = tuple[float, ...]
"""The larger the better, the first number first."""


@dataclass(frozen=True)
class Tuned:
    """A rule, and what it does on the rows it was chosen on.

    Attributes:
        meets_target: whether the false alarms are few enough; True without a target.
        recall: mean over the classes.
        most_per_day: false alarms per series and day that these rows do not rule out: the upper end of the one-sided
            95 % interval of a Poisson rate (Garwood 1936).
    """

    rule: AlarmRule
    meets_target: bool
    recall: float
    false_alarms: int
    series_days: float

    @property
    def most_per_day(self) -> float:
        """See above."""
        from scipy.stats import chi2

        return float(chi2.ppf(0.95, 2 * (self.false_alarms + 1)) / 2 / self.series_days)


def tune(
    rows: ScoredRows,
    probabilities: NDArray[np.floating],
    classes: tuple[str, ...],
    false_alarms_per_day: float | None = None,
    hysteresis: float | None = None,
) -> Tuned:
    """The rule with the best mean incident F1 of the classes, or, with a target, the best mean recall within it.

    Args:
        rows: labelled rows that were not learnt from.
        probabilities: calibrated. (rows, K)
        false_alarms_per_day: per series, at most.
        hysteresis: default: `AlarmRule`'s.
    """
    plain = AlarmRule.plain(classes, rows.normal)
    start = plain if hysteresis is None else replace(plain, hysteresis=hysteresis)
    search = _Search(rows, probabilities, classes, false_alarms_per_day, start.hysteresis)
    best = _middle_of_best(list(_first_rules(start)), search)
    common = next(iter(best.thresholds.values()), 1.0)
    for _ in range(PASSES):
        before = best
        for name in best.thresholds:
            least = 0.0 if search.incidents(name) >= FEW else common
            allowed = [value for value in THRESHOLDS if value >= least]
            moved = [replace(best, thresholds={**best.thresholds, name: value}) for value in allowed]
            best = max([best, *moved], key=search.score)  # of equals the one before
        if best == before:
            break
    return search.told(best)


def _first_rules(start: AlarmRule) -> Iterator[AlarmRule]:
    """The same threshold for every class; high ones come first, then rules that tell early."""
    for value, min_rows, merge_rows in product(THRESHOLDS[::-1], MIN_ROWS, MERGE_ROWS):
        yield replace(
            start, thresholds=dict.fromkeys(start.thresholds, value), min_rows=min_rows, merge_rows=merge_rows
        )


def _middle_of_best(rules: list[AlarmRule], search: _Search) -> AlarmRule:
    """Of the rules that do best, and count rows as the first of them does, the one with the middle threshold.

    Any threshold between the false peaks and the true ones does as well here; elsewhere both lie a little otherwise.
    """
    first = max(rules, key=search.score)
    alike = [
        rule
        for rule in rules
        if (rule.min_rows, rule.merge_rows) == (first.min_rows, first.merge_rows)
        and search.score(rule) == search.score(first)
    ]
    return alike[len(alike) // 2]


class _Search:
    """Judges rules on some rows."""

    def __init__(
        self,
        rows: ScoredRows,
        probabilities: NDArray[np.floating],
        classes: tuple[str, ...],
        target: float | None,
        hysteresis: float,
    ) -> None:
        self.rows, self.classes, self.target = rows, classes, target
        abnormal = [k for k, name in enumerate(classes) if name != rows.normal]
        # rows that no rule could count are left out once for all
        may_count = probabilities[:, abnormal].max(axis=1, initial=0) >= THRESHOLDS[0] * hysteresis
        self.counting = (rows.series[may_count], rows.times[may_count], probabilities[may_count])
        self.true = TrueIncidents.of_rows(rows)
        self.days = len(rows) * rows.interval_ns / DAY_NS
        self._known: dict[tuple[object, ...], Score] = {}

    def incidents(self, name: str) -> int:
        """How many there are of a class."""
        return int((self.true.labels == name).sum())

    def score(self, rule: AlarmRule) -> Score:
        """What is to be as large as can be."""
        key = (*rule.thresholds.values(), rule.min_rows, rule.merge_rows)
        if key not in self._known:
            self._known[key] = self._score(rule)
        return self._known[key]

    def told(self, rule: AlarmRule) -> Tuned:
        """The rule with what it does here."""
        recall, _, false_alarms = self._counted(rule)
        return Tuned(rule, self._is_within(false_alarms), recall, false_alarms, self.days)

    def _score(self, rule: AlarmRule) -> Score:
        recall, f1, false_alarms = self._counted(rule)
        if self.target is None:
            return (f1, recall, -false_alarms)
        if not self._is_within(false_alarms):
            return (-1.0, -false_alarms, recall)  # nearest to the target, if none is within it
        return (recall, f1, -false_alarms)

    def _is_within(self, false_alarms: int) -> bool:
        return self.target is None or false_alarms <= self.target * self.days

    def _counted(self, rule: AlarmRule) -> tuple[float, float, int]:
        """Mean recall and mean F1 of the classes with an incident here, and the false alarms."""
        collector = AlarmCollector(rule, self.classes, self.rows.interval_ns)
        collector.add(*self.counting)
        alarms = collector.alarms()
        matches = match(self.true, alarms, self.rows.interval_ns)
        recalls, f1s = [], []
        for name in sorted(set(self.true.labels)):
            is_found = ~np.isnan(matches.delays[self.true.labels == name])
            recalls.append(float(is_found.mean()))
            f1s.append(2 * int(is_found.sum()) / (len(is_found) + int((alarms.labels == name).sum())))
        mean = (float(np.mean(values)) if values else 0.0 for values in (recalls, f1s))
        return (*mean, int(matches.is_false.sum()))  # type: ignore[return-value]
