"""scripts/bench_unknown.py leaves classes out and counts what is called unknown."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import bench_unknown  # noqa: E402
from scripts.bench.unknown_scores import SCORES, read  # noqa: E402

from netanomaly import Predictor  # noqa: E402
from netanomaly.data.batches import channel_segment  # noqa: E402
from netanomaly.data.splits import TEST, TRAIN, VALIDATION  # noqa: E402
from streams import grid_of, predictor  # noqa: E402


def _judged() -> bench_unknown.Judged:
    """A row to train, ten to validate; to test four normal, three of `a`, two incidents of `new`, one unlabelled."""
    return bench_unknown.Judged(
        part=np.array([TRAIN, *[VALIDATION] * 10, *[TEST] * 13], dtype=np.int8),
        label=np.array(["a", *["normal"] * 9, "new", *["normal"] * 4, *["a"] * 3, *["new"] * 5, ""], dtype=object),
        named=np.array(["a", *["normal"] * 10, *["normal"] * 4, "a", "a", "normal", *["a"] * 5, "a"], dtype=object),
        places=np.array([-1] * 18 + [0, 0, 1, 1, 1, -1]),
    )


def test_rates_are_those_counted_by_hand() -> None:
    scores = np.array([99, *range(9), 99, 1, 2, 3, 9, 4, 5, 8.5, 9, 9, 9, 0, 1, 99], dtype=float)
    found = bench_unknown.judge(_judged(), scores, "new", [0.25])  # of nine validation rows, 7 and 8 are above 6
    assert found["recall at 0.25"] == pytest.approx(3 / 5)
    assert found["incidents at 0.25"] == pytest.approx(1 / 2)  # one of the second one's three rows
    assert found["false at 0.25"] == pytest.approx(2 / 7)  # 9 and 8.5
    # of 35 pairs: each new row with a 9 is above six known ones and equals one, that with a 1 equals one
    assert found["auroc"] == pytest.approx((3 * 6.5 + 0.5) / 35)
    assert found["known f1 before"] == pytest.approx((2 * 4 / 9 + 2 * 2 / 5) / 2)
    assert found["known f1 after at 0.25"] == pytest.approx((2 * 3 / 7 + 2 * 2 / 5) / 2)


def test_a_perfect_score_has_the_best_figures() -> None:
    rows = _judged()
    found = bench_unknown.judge(rows, (rows.label == "new").astype(float), "new", [0.5])
    assert (found["auroc"], found["recall at 0.5"], found["incidents at 0.5"], found["false at 0.5"]) == (1, 1, 1, 0)
    assert found["f1 after at 0.5"] > found["f1 before"]


@pytest.fixture(scope="module")
def model() -> Predictor:
    return predictor(members=2, short_windows=3)


def test_the_members_are_read_as_they_answer(model: Predictor, frame: pd.DataFrame) -> None:
    segment = max(grid_of(model, frame).segments, key=len)
    given = channel_segment(segment, model.channels)
    rows = read(model, given)
    np.testing.assert_allclose(rows.answer[segment.valid], model.score([given])[0][segment.valid, :-1], atol=1e-5)
    assert rows.states.shape == (len(segment), len(model.model.members), 16)


@pytest.mark.parametrize("name", SCORES)
def test_every_score_has_a_finite_value_for_every_row(name: str, model: Predictor, frame: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    segments = grid_of(model, frame).segments
    rows = [read(model, channel_segment(s, model.channels, rng.integers(0, 3, len(s)))) for s in segments]
    scores = SCORES[name](model, rows)
    assert [len(one) for one in scores] == [len(one) for one in segments]
    assert np.isfinite(np.concatenate(scores)).all() and np.ptp(np.concatenate(scores)) > 0


def test_the_table_has_every_class_and_share() -> None:
    rows = _judged()
    results = {"known_rows": {"new": bench_unknown.judge(rows, np.arange(24.0), "new", [0.05, 0.2])}}
    table = bench_unknown.as_table(results, [0.05, 0.2])
    assert "| AUROC | new | mean |" in table
    assert table.count("| known_rows |") == 5
