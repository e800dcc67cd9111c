"""The classifiers that look at nothing."""

from __future__ import annotations

import numpy as np
import pytest

from netanomaly.evaluation.baselines import majority, random_answers
from netanomaly.evaluation.probabilities import macro_average_precision


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "b"], "b"),
        (["b", "a"], "a"),  # equals: the first in the alphabet
        (["c", "b", "a", "c", "b"], "b"),
        (["None", "None", "x"], "None"),
    ],
)
def test_majority(labels: list[str], expected: str) -> None:
    assert majority(np.array(labels, dtype=object)) == expected


TRAINING = np.repeat(["c", "a", "b"], [60, 30, 10]).astype(object)


def test_random_labels_have_the_frequencies_of_the_training_labels() -> None:
    found = random_answers(TRAINING, 100_000, seed=0)
    shares = [np.mean(found.labels == name) for name in ("a", "b", "c")]
    np.testing.assert_allclose(shares, [0.3, 0.1, 0.6], atol=0.01)


def test_random_probabilities_have_the_label_as_their_largest_and_add_up() -> None:
    found = random_answers(TRAINING, 500, seed=0)
    assert found.probabilities is not None and found.classes == ("a", "b", "c")
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(np.array(found.classes)[found.probabilities.argmax(axis=1)], found.labels)


def test_random_probabilities_rank_no_better_than_chance() -> None:
    truth = np.random.default_rng(1).permutation(np.repeat(TRAINING, 200))
    found = random_answers(TRAINING, len(truth), seed=0)
    assert found.probabilities is not None
    assert macro_average_precision(truth, found.probabilities, found.classes) == pytest.approx(1 / 3, abs=0.01)


def test_random_answers_are_those_of_their_seed() -> None:
    first, again, other = (random_answers(TRAINING, 100, seed).labels for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
