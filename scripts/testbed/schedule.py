"""When which fault happens on which link: one at a time on a link, every class, with normal stretches between."""

from __future__ import annotations

import random
from dataclasses import dataclass

from scripts.testbed.links import Link
from scripts.testbed.randomness import draws
from scripts.testbed.severity import FAULTS, Parameters

LENGTH_S = (10.0, 60.0)
GAP_S = (28.0, 95.0)
"""Ranges of how long faults last and how far they lie apart; shrunk together where time is short."""
WARM_UP_S = 5.0
"""Seconds before the first row is kept: connections start."""
COOL_DOWN_S = 5.0
LEAST_S = 8.0
"""No fault is shorter."""


@dataclass(frozen=True)
class Fault:
    """One planned fault. Times in seconds from the start of the run; severity from 0 to 1."""

    number: int
    link: str
    label: str
    start_s: float
    end_s: float
    severity: float
    parameters: Parameters


def plan(links: list[Link], seconds: float, seed: int, rounds: int, least_severity: float = 0.0) -> list[Fault]:
    """Faults in order of their start; each class at least `rounds` times over all links.

    Args:
        least_severity: severities are drawn evenly between this and 1, one from each of as many equal steps as a class
            has faults.

    Raises:
        ValueError: so many faults do not fit.
    """
    rng = draws(seed, "schedule")
    free_s = seconds - WARM_UP_S - COOL_DOWN_S
    per_link = max(int(free_s * 2 / (sum(LENGTH_S) + sum(GAP_S))), -(-rounds * len(FAULTS) // len(links)))
    labels = _labels(per_link * len(links), rng)
    severities = {label: _severities(labels.count(label), least_severity, rng) for label in FAULTS}
    found: list[Fault] = []
    for index, link in enumerate(links):
        for place, (start_s, end_s) in enumerate(_times(per_link, free_s, rng)):
            label, number = labels[place * len(links) + index], len(found)
            severity = severities[label].pop()
            parameters = FAULTS[label](severity, link, draws(seed, "fault", number))
            found.append(Fault(number, link.name, label, start_s, end_s, severity, parameters))
    return sorted(found, key=lambda fault: fault.start_s)


def _labels(count: int, rng: random.Random) -> list[str]:
    """Every class as often as the others, give or take one."""
    labels: list[str] = []
    while len(labels) < count:
        labels += rng.sample(list(FAULTS), len(FAULTS))
    return labels[:count]


def _severities(count: int, least: float, rng: random.Random) -> list[float]:
    drawn = [least + (1 - least) * (step + rng.random()) / count for step in range(count)]
    rng.shuffle(drawn)
    return drawn


def _times(count: int, free_s: float, rng: random.Random) -> list[tuple[float, float]]:
    """Starts and ends of the faults of one link."""
    if free_s < count * 2 * LEAST_S:
        raise ValueError(f"{count} faults of at least {LEAST_S:g} s do not fit into {free_s:g} s")
    lengths = [rng.uniform(*LENGTH_S) for _ in range(count)]
    gaps = [rng.uniform(*GAP_S) for _ in range(count)]
    spare_s = sum(lengths) + sum(gaps) - count * 2 * LEAST_S
    scale = min(1.0, (free_s - count * 2 * LEAST_S) / spare_s)
    times, now = [], WARM_UP_S
    for length, gap in zip(lengths, gaps, strict=True):
        start_s = now + LEAST_S + scale * (gap - LEAST_S)
        now = start_s + LEAST_S + scale * (length - LEAST_S)
        times.append((start_s, now))
    return times
