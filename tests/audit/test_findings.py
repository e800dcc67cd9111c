"""What is odd about labels, in rows made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from netanomaly.audit.cross_fit import CrossFitted
from netanomaly.audit.findings import LABEL, MISSING, ONSET, find
from netanomaly.audit.tables import finding_table, row_table
from netanomaly.data.timestamps import TimeFormat
from netanomaly.evaluation.rows import ScoredRows

SECOND = 10**9
CLASSES = ("normal", "a", "b")
LETTERS = {".": "normal", "a": "a", "b": "b"}


def _given(*series: tuple[str, str, str]) -> CrossFitted:
    """Rows from (series, labels, what a model says); it is 90 % sure of everything."""
    names, times, truth, said = [], [], [], []
    for name, labels, answers in series:
        for second, (label, answer) in enumerate(zip(labels, answers, strict=True)):
            names.append(name)
            times.append(second * SECOND)
            truth.append(LETTERS[label])
            said.append(CLASSES.index(LETTERS[answer]))
    probabilities = np.full((len(said), 3), 0.05)
    probabilities[np.arange(len(said)), said] = 0.9
    rows = ScoredRows(
        np.array(names, dtype=object), np.array(times), np.array(truth, dtype=object), SECOND, 3 * SECOND, "normal", "-"
    )
    return CrossFitted(rows, CLASSES, probabilities, 0)


CALM = "." * 20
GOOD = (CALM + "aaaaaaaaaa" + CALM, CALM + ".aaaaaaaaa" + CALM)  # a model sees it a row late


def test_labels_that_a_model_agrees_with_are_not_told() -> None:
    assert find(_given(*((name, *GOOD) for name in "wxyz"))) == []


def test_an_incident_with_another_name_is_told() -> None:
    (found,) = find(_given(("w", *GOOD), ("x", CALM + "aaaaaaaaaa" + CALM, CALM + ".bbbbbbbbb" + CALM)))
    assert (found.kind, found.series, found.label, found.suggested) == (LABEL, "x", "a", "b")
    assert (found.start, found.last) == (20 * SECOND, 29 * SECOND)
    assert found.p_label == pytest.approx(0.05)
    assert found.suspicion == pytest.approx(found.p_suggested - found.p_label)


def test_an_incident_that_looks_normal_is_told() -> None:
    (found,) = find(_given(("w", *GOOD), ("x", CALM + "aaaaaaaaaa" + CALM, "." * 50)))
    assert (found.kind, found.suggested) == (LABEL, "normal")


def test_normal_rows_that_look_like_an_incident_are_told_unless_they_are_few() -> None:
    (found,) = find(_given(("w", *GOOD), ("x", "." * 50, CALM + "bbbbbbbbbb" + CALM), ("y", "." * 9, "....bb...")))
    assert (found.kind, found.series, found.label, found.suggested) == (MISSING, "x", "normal", "b")
    assert (found.start, found.last) == (20 * SECOND, 29 * SECOND)


@pytest.mark.parametrize(
    ("labels", "shift"),
    [
        ("." * 14 + "a" * 16 + CALM, 6),  # labelled six rows too early
        (CALM + "......aaaa" + CALM, -6),  # and too late
        ("." * 18 + "a" * 12 + CALM, None),  # by two rows only
    ],
)
def test_an_onset_that_is_off_is_told_against_the_others_of_its_class(labels: str, shift: int | None) -> None:
    found = find(_given(*((name, *GOOD) for name in "vwxyz"), ("u", labels, GOOD[1])))
    assert [(one.kind, one.series, one.shift_s) for one in found] == ([(ONSET, "u", shift)] if shift else [])


def test_the_most_suspicious_comes_first_and_tables_hold_everything() -> None:
    given = _given(
        *((name, *GOOD) for name in "vwxyz"),
        ("a", "." * 50, CALM + "bbbbbbbbbb" + CALM),
        ("b", "." * 14 + "a" * 16 + CALM, GOOD[1]),
    )
    found = find(given)
    suspicions = [one.suspicion for one in found]
    assert len(found) == 2 and suspicions == sorted(suspicions, reverse=True)
    assert all(0 <= value <= 1 for value in suspicions)
    table = finding_table(found, TimeFormat(), SECOND)
    assert set(table["kind"]) == {MISSING, ONSET}
    missing = table[table["kind"] == MISSING].iloc[0]
    assert (missing["start"], missing["end"]) == ("1970-01-01T00:00:20Z", "1970-01-01T00:00:30Z")
    rows = row_table(given, TimeFormat())
    assert len(rows) == len(given.rows) and rows["p_label"].is_monotonic_increasing
    assert rows["p_label"].iloc[0] == 0.05


def test_rows_without_a_normal_class_have_no_onsets_and_nothing_missing() -> None:
    given = _given(("x", "aaaabbbb", "bbbbbbbb"))
    known = CrossFitted(given.rows, ("a", "b"), given.probabilities[:, 1:], 0)
    assert [one.kind for one in find(known)] == [LABEL]


def test_nothing_is_found_in_nothing_odd() -> None:
    assert finding_table([], TimeFormat(), SECOND).empty
