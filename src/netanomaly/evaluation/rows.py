"""What is scored: labelled rows, and a classifier's answers to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ScoredRows:
    """Labelled rows of one or more series, in any order.

    Attributes:
        series: name of the series of each row. (rows,)
        times: nanoseconds since 1970. (rows,)
        truth: true labels. (rows,)
        interval_ns: time between two rows, as the config has it.
        max_gap_ns: time without a row after which nothing goes on: an incident on both sides of it is two.
        normal: the label that is no incident.
        no_data: the answer to a row in which nothing was measured.
    """

    series: NDArray[np.object_]
    times: NDArray[np.int64]
    truth: NDArray[np.object_]
    interval_ns: int
    max_gap_ns: int
    normal: str
    no_data: str

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True)
class Answers:
    """What a classifier says of the scored rows.

    Attributes:
        labels: (rows,)
        classes: names of the columns of `probabilities`.
        probabilities: (rows, K), all zero where a row has no answer; None from a classifier that gives none.
    """

    labels: NDArray[np.object_]
    classes: tuple[str, ...] = ()
    probabilities: NDArray[np.floating] | None = None

    @property
    def known_probabilities(self) -> NDArray[np.floating]:
        """The probabilities. Raises ValueError if the classifier gives none."""
        if self.probabilities is None:
            raise ValueError("a classifier without probabilities")
        return self.probabilities

    @property
    def confidence(self) -> NDArray[np.floating]:
        """Probability of the label of each row, 0 where there is no answer. (rows,)"""
        number = {name: i for i, name in enumerate(self.classes)}
        columns = np.array([number.get(name, 0) for name in self.labels], dtype=np.int64)
        return np.asarray(self.known_probabilities[np.arange(len(columns)), columns])

    @classmethod
    def most_probable(cls, probabilities: NDArray[np.floating], classes: Sequence[str]) -> Answers:
        """The class with the largest probability in each row, (rows, K); the first among equals."""
        return cls(np.array(classes, dtype=object)[probabilities.argmax(axis=1)], tuple(classes), probabilities)
