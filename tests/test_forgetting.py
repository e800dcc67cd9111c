"""A stream forgets series that are gone, and its answers are those of one that forgets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly import DataError, Predictor, StreamingPredictor
from networks import METRICS
from streams import MAX_GAP, parts, predictor, same_answers

SECOND = 10**9
SOON = 3 * SECOND
SHARING = predictor(duplicates="mean")
ALONE = predictor()


@pytest.fixture(scope="module", autouse=True)
def a_clock_that_is_quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("netanomaly.stream_memory.RECENT", 9)
        yield


def network(lives: list[tuple[int, int]], *, shared: bool = False, seed: int = 0) -> pd.DataFrame:
    """Series that live for a while, at a row a second, in order of time; some come back under their names."""
    rng, rows = np.random.default_rng(seed), []
    for number, (begin, length) in enumerate(lives):
        seconds = begin + np.arange(length, dtype=float)
        if shared:
            seconds = np.repeat(seconds, rng.integers(1, 3, length)) + rng.uniform(0, 0.3)
        rows.append(pd.DataFrame({"link": f"s{number % 5}", "seconds": seconds}))
    frame = pd.concat(rows).drop_duplicates(["link", "seconds"] if not shared else None)
    frame = frame.sort_values("seconds", kind="stable", ignore_index=True)
    if not shared:
        frame = frame[~(frame.groupby("link")["seconds"].diff() < 1)].reset_index(drop=True)
    frame = frame[rng.random(len(frame)) > 0.3].reset_index(drop=True)  # gaps within segments
    frame[list(METRICS)] = rng.lognormal(0, 1, (len(frame), len(METRICS)))
    moments = pd.Timestamp("2026-03-01T00:00:00Z") + pd.to_timedelta(frame.pop("seconds"), unit="s")
    return frame.assign(timestamp=moments.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


@examples(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 15)), min_size=2, max_size=9),
    st.integers(1, 40),
    st.booleans(),
)
def test_forgetting_changes_no_answer(lives: list[tuple[int, int]], rows: int, shared: bool) -> None:
    trained, frame = SHARING if shared else ALONE, network(lives, shared=shared)
    forgetful, other = StreamingPredictor(trained, forget_after=SOON), StreamingPredictor(trained)
    for part in parts(frame, range(0, len(frame), rows)):
        same_answers(forgetful.update(part), other.update(part))
    assert forgetful.too_early == 0


@pytest.fixture(scope="module")
def come_and_gone() -> pd.DataFrame:
    frame = network([(0, 120), *((12 * n, 9) for n in range(9))])
    gone = frame["link"] != "s0"
    return frame.assign(link=frame["link"].where(~gone, frame["link"] + "-" + (frame.index // 24).astype(str)))


def test_memory_is_that_of_the_living(plain: Predictor, come_and_gone: pd.DataFrame) -> None:
    forgetful, other = StreamingPredictor(plain, forget_after=SOON), StreamingPredictor(plain)
    for part in parts(come_and_gone, range(0, len(come_and_gone), 5)):
        same_answers(forgetful.update(part), other.update(part))
    assert len(forgetful._memory.series) < len(other._memory.series) * 2 / 3
    assert forgetful._memory._slots.used < other._memory._slots.used  # slots are given again
    assert set(forgetful.series) == set(other.series)


def test_a_late_row_of_a_forgotten_series_is_late(plain: Predictor, come_and_gone: pd.DataFrame) -> None:
    stream = StreamingPredictor(plain, forget_after=SOON)
    for part in parts(come_and_gone, range(0, len(come_and_gone), 5)):
        stream.update(part)
    first = come_and_gone[come_and_gone["link"] != "s0"].head(1)
    assert first["link"].item() not in stream._memory.series
    with pytest.raises(DataError, match="goes back in time"):
        stream.update(first)
    assert first["link"].item() not in stream._memory.series
    stream.begin_again(first["link"].item())
    same_answers(stream.update(first), StreamingPredictor(plain).update(first))


def test_what_is_forgotten_is_saved_too(plain: Predictor, come_and_gone: pd.DataFrame, tmp_path: Path) -> None:
    stream = StreamingPredictor(plain, forget_after=SOON)
    middle = len(come_and_gone) // 2
    for part in parts(come_and_gone.iloc[:middle], range(0, middle, 5)):
        stream.update(part)
    stream.save(tmp_path / "state", {"a": 1})
    again = StreamingPredictor(plain, forget_after=SOON)
    assert again.restore(tmp_path / "state") == {"a": 1}
    assert again.series == stream.series
    for part in parts(come_and_gone.iloc[middle:], range(0, middle, 5)):
        pd.testing.assert_frame_equal(again.update(part), stream.update(part), check_exact=True)
    assert again._memory.series == stream._memory.series


def test_a_series_that_comes_back_too_late_is_counted(plain: Predictor) -> None:
    frame = network([(0, 30), (0, 100)])
    behind = frame[frame["link"] == "s0"]
    stream = StreamingPredictor(plain, forget_after=SOON)
    stream.update(behind.iloc[:20])
    for part in parts(frame[frame["link"] == "s1"], range(0, 100, 10)):
        stream.update(part)
    assert stream._memory.series == ["s1"]
    stream.update(behind.iloc[20:])
    assert stream.too_early == 1


def test_series_after_each_other_are_not_forgotten_while_they_come(plain: Predictor) -> None:
    frame = network([(0, 40), (3, 40), (1, 40)]).sort_values("link", kind="stable", ignore_index=True)
    forgetful, other = StreamingPredictor(plain, forget_after=SOON), StreamingPredictor(plain)
    for part in parts(frame, range(0, len(frame), 9)):
        same_answers(forgetful.update(part), other.update(part))
    assert forgetful.too_early == 0


def test_one_wrong_time_makes_nobody_forgotten(plain: Predictor) -> None:
    frame = network([(0, 60), (0, 60), (0, 1)])
    wrong = frame[frame["link"] == "s2"].assign(timestamp="2027-03-01T00:00:00Z")
    right = frame[frame["link"] != "s2"]
    forgetful, other = StreamingPredictor(plain, forget_after=SOON), StreamingPredictor(plain)
    for stream in (forgetful, other):
        stream.update(right.iloc[:40])
        stream.update(wrong)
    for part in parts(right.iloc[40:], range(0, len(right), 8)):
        same_answers(forgetful.update(part), other.update(part))
    assert forgetful.too_early == 0


def test_the_silence_that_is_needed_is_the_gap_and_more(plain: Predictor) -> None:
    stream = StreamingPredictor(plain, forget_after=SOON)
    frame = network([(0, 1), (0, 60)])
    for part in parts(frame, range(len(frame))):
        stream.update(part)
        if "s0" not in stream._memory.series:
            break
    seconds = (pd.Timestamp(part["timestamp"].item()) - pd.Timestamp("2026-03-01T00:00:00Z")).total_seconds()
    assert seconds > MAX_GAP + 3 + SOON / SECOND


def test_a_series_that_is_behind_is_not_forgotten_while_it_comes(plain: Predictor) -> None:
    frame = network([(600, 200), (610, 200), (0, 40)])
    behind = frame[frame["link"] == "s2"]
    others = frame[frame["link"] != "s2"]
    forgetful, other = StreamingPredictor(plain, forget_after=SOON), StreamingPredictor(plain)
    for part in [
        others.iloc[:300],
        *(pd.concat([behind.iloc[n : n + 2], others.iloc[300 + n : 302 + n]]) for n in range(0, 40, 2)),
    ]:
        same_answers(forgetful.update(part), other.update(part))
    assert forgetful.too_early == 0
