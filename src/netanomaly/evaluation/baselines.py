"""Two classifiers that look at nothing: what a score is worth shows beside theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netanomaly.evaluation.rows import Answers


def majority(training_labels: NDArray[np.object_]) -> str:
    """The most frequent training label; the first in the alphabet among equals."""
    names, counts = np.unique(training_labels.astype(str), return_counts=True)
    return str(names[np.argmax(counts)])


def random_answers(training_labels: NDArray[np.object_], rows: int, seed: int) -> Answers:
    """Labels drawn with the frequencies of the training labels, and probabilities that are as random.

    The Gumbel-max trick (Maddison et al., A* Sampling, NeurIPS 2014): of log frequencies with Gumbel noise, class k is
    the largest with just its frequency; their softmax is a draw of probabilities whose largest is the label.
    """
    names, counts = np.unique(training_labels.astype(str), return_counts=True)
    drawn = np.log(counts / counts.sum()) + np.random.default_rng(seed).gumbel(size=(rows, len(names)))
    powers = np.exp(drawn - drawn.max(axis=1, keepdims=True))
    return Answers.most_probable(powers / powers.sum(axis=1, keepdims=True), [str(name) for name in names])
