"""How a peer gets its fair chance: its settings are chosen on validation, one after the other, within its time.

Runs in the peers' environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scripts.bench.quality_problem import TRAIN, VALIDATION, Places, Problem, sample

Choice = dict[str, Any]
Scorer = Callable[[Places], NDArray[np.float64]]
"""Class probabilities of rows, (N, 2) to (N, K)."""


@dataclass(frozen=True)
class Task:
    """One training.

    Attributes:
        training, validation: rows to learn from, and to choose on.
        deadline: of `time.perf_counter`; networks stop there with what they have.
        final: not a trial.
        notes: what the peer has to say of it.
    """

    problem: Problem
    choice: Choice
    training: Places
    validation: Places
    seed: int
    threads: int
    device: str
    deadline: float
    final: bool
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """A method and what may be chosen about it.

    Attributes:
        axes: values to choose from, the first of each to start with; taken one after the other.
        fit: trains.
        few, most: training windows of a trial and of the final training, at most.
    """

    axes: Mapping[str, tuple[Any, ...]]
    fit: Callable[[Task], Scorer]
    few: int
    most: int


@dataclass(frozen=True)
class Chosen:
    """What a search ends with."""

    scorer: Scorer
    facts: dict[str, Any]


SEARCH_SHARE = 0.5
"""Of the budget: trials start no later. What is best by then is taken, and the facts say so."""
NETWORK_SHARE = 0.85
"""Of the budget: networks stop learning then."""


def search(peer: Peer, problem: Problem, seed: int, budget: float, threads: int, device: str = "cpu") -> Chosen:
    """The peer with the settings that have the best macro-F1 on the validation rows.

    Args:
        budget: seconds for all of it.
    """
    started = time.perf_counter()
    training, validation = problem.labelled(TRAIN), problem.labelled(VALIDATION)
    few = sample(problem, training, peer.few, seed), sample(problem, validation, peer.few, seed)
    choice: Choice = {name: values[0] for name, values in peer.axes.items()}
    tried: list[tuple[Choice, float]] = []
    until = started + SEARCH_SHARE * budget
    complete = True

    def attempt(settings: Choice) -> None:
        nonlocal choice
        scorer = peer.fit(Task(problem, settings, *few, seed, threads, device, until, final=False))
        score = macro_f1(problem.targets(few[1]), scorer(few[1]).argmax(axis=1))
        if not tried or score > max(found for _, found in tried):
            choice = settings
        tried.append((settings, score))

    attempt(choice)
    for name, values in peer.axes.items():
        for value in values[1:]:
            if time.perf_counter() >= until:
                complete = False
            else:
                attempt({**choice, name: value})
    searched = time.perf_counter()
    final = Task(
        problem,
        choice,
        sample(problem, training, peer.most, seed),
        sample(problem, validation, peer.most, seed),
        seed,
        threads,
        device,
        started + NETWORK_SHARE * budget,
        final=True,
    )
    scorer = peer.fit(final)
    return Chosen(
        scorer,
        {
            "chosen": choice,
            "tried": [{**settings, "validation_macro_f1": score} for settings, score in tried],
            "search_complete": complete,
            "search_seconds": searched - started,
            "training_seconds": time.perf_counter() - searched,
            "training_windows": len(final.training),
            **final.notes,
        },
    )


def macro_f1(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """The mean F1 of the classes that occur in the truth, as the project counts it."""
    from sklearn.metrics import f1_score

    return float(f1_score(truth, predicted, labels=np.unique(truth), average="macro", zero_division=0))
