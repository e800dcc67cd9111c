"""Scores of predicted labels, against scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from netanomaly.evaluation.metrics import Labels, accuracy, confusion, macro_f1, per_class

CLASSES = ("normal", "congestion", "ddos_flood", "None", "1")

moderate = settings(max_examples=60, deadline=None)
rows = given(pairs=st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=60))


def _labels(names: Sequence[str]) -> Labels:
    return np.array(names, dtype=object)


def _split(pairs: Sequence[tuple[str, str]]) -> tuple[Labels, Labels]:
    """Truth and prediction."""
    return _labels([pair[0] for pair in pairs]), _labels([pair[1] for pair in pairs])


@moderate
@rows
def test_macro_f1_is_that_of_scikit_learn_where_every_class_occurs(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = _split([*pairs, *zip(CLASSES, CLASSES[1:] + CLASSES[:1], strict=True)])
    assert macro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="macro"), abs=1e-12)


@moderate
@rows
def test_accuracy_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = _split(pairs)
    assert accuracy(truth, predicted) == pytest.approx(accuracy_score(truth, predicted), abs=1e-12)


@moderate
@rows
def test_scores_of_classes_are_those_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = _split([*pairs, *zip(CLASSES, CLASSES, strict=True)])
    expected = precision_recall_fscore_support(truth, predicted, labels=list(CLASSES))
    found = per_class(truth, predicted, CLASSES)
    for i, name in enumerate(CLASSES):
        scores = [found[name][key] for key in ("precision", "recall", "f1", "support")]
        assert scores == pytest.approx([values[i] for values in expected], abs=1e-12)
        assert found[name]["predicted"] == (predicted == name).sum()


@moderate
@rows
def test_confusion_is_that_of_scikit_learn_and_holds_every_row(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = _split(pairs)
    found = confusion(truth, predicted, CLASSES)
    assert found["labels"] == list(CLASSES)
    assert found["matrix"] == confusion_matrix(truth, predicted, labels=list(CLASSES)).tolist()
    assert sum(map(sum, found["matrix"])) == len(pairs)


def test_a_class_that_does_not_occur_is_not_averaged() -> None:
    truth = _labels(["a", "a", "b", "b"])
    predicted = _labels(["a", "a", "b", "c"])  # f1: a 1, b 2/3; c has none
    assert macro_f1(truth, predicted) == pytest.approx((1 + 2 / 3) / 2, abs=1e-12)


def test_a_class_that_the_model_cannot_name_counts_as_zero() -> None:
    truth = _labels(["a", "a", "b", "new"])
    predicted = _labels(["a", "a", "b", "b"])  # f1: a 1, b 2/3, new 0
    assert macro_f1(truth, predicted) == pytest.approx((1 + 2 / 3 + 0) / 3, abs=1e-12)


def test_rows_without_data_cost_the_recall_of_their_class_and_are_no_class() -> None:
    truth = _labels(["a", "a", "b", "b"])
    predicted = _labels(["a", "a", "b", "no_data"])
    assert macro_f1(truth, predicted) == pytest.approx((1 + 2 / 3) / 2, abs=1e-12)


@moderate
@rows
def test_macro_f1_is_the_mean_over_the_classes_that_occur(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = _split(pairs)
    scores = [entry["f1"] for entry in per_class(truth, predicted, CLASSES).values() if entry["f1"] is not None]
    assert len(scores) == len(set(truth))
    assert macro_f1(truth, predicted) == pytest.approx(np.mean(scores), abs=1e-12)


@moderate
@rows
def test_names_of_classes_do_not_matter(pairs: list[tuple[str, str]]) -> None:
    renamed = [tuple(f"x{CLASSES.index(name)}" for name in pair) for pair in pairs]
    assert macro_f1(*_split(pairs)) == pytest.approx(macro_f1(*_split(renamed)), abs=1e-12)


@moderate
@rows
def test_scores_that_cannot_be_told_are_null(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = _split(pairs)
    for name, entry in per_class(truth, predicted, CLASSES).items():
        assert (entry["precision"] is None) == (name not in predicted)
        assert (entry["recall"] is None) == (entry["f1"] is None) == (name not in truth)


@pytest.mark.parametrize("stranger", ["truth", "prediction"])
def test_a_label_outside_the_confusion_matrix_is_refused(stranger: str) -> None:
    strange, known = _labels(["a", "zebra"]), _labels(["a", "a"])
    truth, predicted = (strange, known) if stranger == "truth" else (known, strange)
    with pytest.raises(ValueError, match=r"outside the confusion matrix: \['zebra'\]"):
        confusion(truth, predicted, ["a", "b"])


@moderate
@rows
def test_perfect_and_hopeless(pairs: list[tuple[str, str]]) -> None:
    truth, _ = _split(pairs)
    assume(len(set(truth)) > 1)
    assert macro_f1(truth, truth) == accuracy(truth, truth) == 1.0
    wrong = _labels([CLASSES[CLASSES.index(name) - 1] for name in truth])
    assert macro_f1(truth, wrong) == accuracy(truth, wrong) == 0.0
