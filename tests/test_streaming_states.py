"""What a stream knows is saved and gone on from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from netanomaly import Predictor
from netanomaly.errors import DataError
from netanomaly.streaming import StreamingPredictor
from streams import content, hard_network, parts, predictor, same_answers, unchanged


@pytest.mark.parametrize("duplicates", ["error", "mean"])
@pytest.mark.parametrize("rows", [1, 33, 150])
def test_a_restart_changes_no_answer(duplicates: str, rows: int, tmp_path: Path) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(shared=duplicates == "mean")
    going, path = StreamingPredictor(trained), tmp_path / "deep" / "state"
    going.update(frame.iloc[:rows])
    going.save(path)
    again = StreamingPredictor(predictor(duplicates=duplicates))
    again.update(frame.iloc[:5].assign(link="forgotten"))
    again.restore(path)
    unchanged(again, content(going))
    assert again.series == going.series
    for part in parts(frame.iloc[rows:], range(0, len(frame), 40)):
        pd.testing.assert_frame_equal(again.update(part), going.update(part), check_exact=True)


def test_a_saved_state_is_that_of_the_moment(plain: Predictor, frame: pd.DataFrame, tmp_path: Path) -> None:
    stream = StreamingPredictor(plain)
    stream.update(frame.iloc[:100])
    stream.save(tmp_path / "state")
    first = stream.update(frame.iloc[100:])
    stream.restore(tmp_path / "state")
    pd.testing.assert_frame_equal(stream.update(frame.iloc[100:]), first, check_exact=True)


def test_a_state_without_series_is_one_too(plain: Predictor, frame: pd.DataFrame, tmp_path: Path) -> None:
    stream = StreamingPredictor(plain)
    stream.save(tmp_path / "state")
    stream.update(frame.iloc[:10])
    stream.restore(tmp_path / "state")
    same_answers(stream.update(frame), plain.predict(frame))


def _garbage(path: Path, kind: str) -> None:
    if kind == "another bundle's":
        StreamingPredictor(predictor(stem=2)).save(path)
    elif kind == "of other weights":
        other = predictor()
        other.model.members[0].head.bias.data += 1
        StreamingPredictor(other).save(path)
    elif kind == "no words about it":
        save_file({"valid": np.zeros(1)}, path)
    elif kind == "nothing about it":
        save_file({"valid": np.zeros(1)}, path, {"about": "{}"})
    elif kind == "a list about it":
        save_file({"valid": np.zeros(1)}, path, {"about": "[]"})
    elif kind == "cut short":
        StreamingPredictor(predictor()).save(path)
        path.write_bytes(path.read_bytes()[:-10])
    elif kind == "a bit of an array turned":
        stream = StreamingPredictor(predictor())
        stream.update(hard_network(4))
        stream.save(path)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    elif kind == "a directory":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(kind.encode() * 40)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("another bundle's", "is the state of a stream with another bundle"),
        ("of other weights", "is the state of a stream with another bundle"),
        ("no words about it", "not a saved state of a stream"),
        ("nothing about it", ""),
        ("a list about it", ""),
        ("cut short", "not a saved state of a stream"),
        ("a directory", "is a directory, not a saved state of a stream"),
        ("a bit of an array turned", "is damaged"),
        ("missing", "no such file"),
        ("", "not a saved state of a stream"),
        ("garbage", "not a saved state of a stream"),
    ],
)
def test_what_is_no_state_of_this_bundle_is_refused_and_changes_nothing(
    plain: Predictor, frame: pd.DataFrame, tmp_path: Path, kind: str, said: str
) -> None:
    path, stream = tmp_path / "state", StreamingPredictor(plain)
    stream.update(frame.iloc[:100])
    before = content(stream)
    _garbage(path, kind)
    with pytest.raises(DataError) as caught:
        stream.restore(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    unchanged(stream, before)
