"""From files to a file of answers: the same in every format and for every size of chunk, whole or not at all."""

from __future__ import annotations

import gzip
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from netanomaly import ConfigError, DataError, Predictor
from netanomaly.predictions import STANDARD_OUTPUT, SUFFIXES, label_files
from streams import hard_network, predictor, same_answers

CHUNKS = pytest.mark.parametrize("chunk_rows", [0, 9, 50, 10_000])
EVERY_SUFFIX = pytest.mark.parametrize("suffix", SUFFIXES)


@pytest.fixture(scope="module")
def plain() -> Predictor:
    return predictor()


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return hard_network(60)


@pytest.fixture
def files(frame: pd.DataFrame, tmp_path: Path) -> list[str]:
    """The frame as three files, one of each kind."""
    paths = [str(tmp_path / name) for name in ("1.csv", "2.csv.gz", "3.parquet")]
    frame.iloc[:70].to_csv(paths[0], index=False)
    frame.iloc[70:71].to_csv(paths[1], index=False)
    frame.iloc[71:].to_parquet(paths[2])
    return paths


def read_back(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, keep_default_na=False)


def as_csv(frame: pd.DataFrame) -> str:
    return str(frame.to_csv(index=False, float_format="%.7f", lineterminator="\n"))


@CHUNKS
@EVERY_SUFFIX
def test_every_row_of_every_file_is_answered_in_order(
    plain: Predictor, frame: pd.DataFrame, files: list[str], tmp_path: Path, suffix: str, chunk_rows: int
) -> None:
    out = tmp_path / "new" / f"answers{suffix}"
    assert label_files(plain, files, out, chunk_rows) == len(frame)
    same_answers(read_back(out), plain.predict(frame))
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_rows_without_data_are_told(
    plain: Predictor, files: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        label_files(plain, files, tmp_path / "answers.csv", 50)
    count = (pd.read_csv(tmp_path / "answers.csv")["label"] == "no_data").sum()
    assert count > 0 and f"{count} of " in caplog.text and "without any measurement" in caplog.text


def test_every_format_holds_the_same(plain: Predictor, files: list[str], tmp_path: Path) -> None:
    outs = [tmp_path / f"answers{suffix}" for suffix in SUFFIXES]
    for out in outs:
        label_files(plain, files, out, 50)
    text = outs[0].read_bytes().decode()
    assert gzip.decompress(outs[1].read_bytes()).decode() == text
    assert as_csv(pd.read_parquet(outs[2])) == text
    assert text.count("series,timestamp,label") == 1 and "\r" not in text


@CHUNKS
def test_without_a_file_the_same_csv_goes_to_standard_output(
    plain: Predictor, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], chunk_rows: int
) -> None:
    label_files(plain, files, tmp_path / "answers.csv", chunk_rows)
    capsys.readouterr()
    assert label_files(plain, files, STANDARD_OUTPUT, chunk_rows) > 0
    printed = capsys.readouterr()
    assert printed.out == (tmp_path / "answers.csv").read_text(encoding="utf-8")
    assert printed.err == ""


@pytest.mark.parametrize("duplicates", ["last", "mean"])
@pytest.mark.parametrize("chunk_rows", [40, 97])
def test_rows_that_share_a_step_are_answered_as_all_at_once(tmp_path: Path, duplicates: str, chunk_rows: int) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(60, shared=True)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    label_files(trained, [str(tmp_path / "rows.csv")], tmp_path / "answers.parquet", chunk_rows)
    same_answers(read_back(tmp_path / "answers.parquet"), trained.predict(frame))


def test_names_that_need_quotes_come_back(plain: Predictor, frame: pd.DataFrame, tmp_path: Path) -> None:
    names = {"w": 'Zürich, "A"', "x": "x;y", "y": "NA", "z": " z"}
    frame.assign(link=frame["link"].map(names)).to_csv(tmp_path / "rows.csv", index=False)
    for suffix in SUFFIXES:
        label_files(plain, [str(tmp_path / "rows.csv")], tmp_path / f"answers{suffix}", 50)
        found = read_back(tmp_path / f"answers{suffix}")["series"]
        assert found.tolist() == [names[link].strip() for link in frame["link"]]


@pytest.mark.parametrize("chunk_rows", [0, 50])
@EVERY_SUFFIX
def test_files_may_write_their_times_in_different_ways(
    plain: Predictor, frame: pd.DataFrame, tmp_path: Path, suffix: str, chunk_rows: int
) -> None:
    first, second = frame.iloc[:100], frame.iloc[100:]
    first.assign(timestamp=pd.to_datetime(first["timestamp"])).to_parquet(tmp_path / "1.parquet")
    second.to_csv(tmp_path / "2.csv", index=False)
    out = tmp_path / f"answers{suffix}"
    label_files(plain, [str(tmp_path / "1.parquet"), str(tmp_path / "2.csv")], out, chunk_rows)
    found, wanted = read_back(out), plain.predict(frame)
    assert (
        pd.to_datetime(found["timestamp"].astype(str), format="ISO8601").tolist()
        == pd.to_datetime(wanted["timestamp"], format="ISO8601").tolist()
    )
    same_answers(found.assign(timestamp=""), wanted.assign(timestamp=""))


# Whole or not at all


def back_in_time(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame.iloc[5:], frame.iloc[:5]])


def a_step_again(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.tail(1)])


def too_few(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby("link").head(7)


def no_number(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.tail(1).assign(timestamp="2027-01-01T00:00:00Z", rtt_ms="x")])


def no_time(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.tail(1).assign(timestamp="x")])


BAD: dict[Callable[[pd.DataFrame], pd.DataFrame], str] = {
    back_in_time: "goes back in time",
    a_step_again: "within one interval|again",
    too_few: "the longest stretch without a gap has 7 rows, one window needs 8",
    no_number: "column 'rtt_ms': found 'x'",
    no_time: "column 'timestamp': found 'x'",
}


@EVERY_SUFFIX
@pytest.mark.parametrize(("change", "said"), BAD.items(), ids=[change.__name__ for change in BAD])
@pytest.mark.parametrize("chunk_rows", [0, 50])
def test_an_error_leaves_no_file_and_the_old_one_as_it_was(
    plain: Predictor,
    frame: pd.DataFrame,
    tmp_path: Path,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    said: str,
    suffix: str,
    chunk_rows: int,
) -> None:
    if change is back_in_time and chunk_rows == 0:
        return  # read whole, files may be in any order
    change(frame).to_csv(tmp_path / "rows.csv", index=False)
    for out in (tmp_path / "new" / f"answers{suffix}", tmp_path / "old" / f"answers{suffix}"):
        out.parent.mkdir()
        if out.parent.name == "old":
            out.write_text("old")
        with pytest.raises(DataError, match=said):
            label_files(plain, [str(tmp_path / "rows.csv")], out, chunk_rows)
    assert list((tmp_path / "new").iterdir()) == []
    assert [path.read_text() for path in (tmp_path / "old").iterdir()] == ["old"]


@pytest.mark.parametrize("chunk_rows", [0, 50])
def test_a_file_that_is_not_there_leaves_none(
    plain: Predictor, files: list[str], tmp_path: Path, chunk_rows: int
) -> None:
    with pytest.raises(DataError, match="no such file"):
        label_files(plain, [*files, str(tmp_path / "4.csv")], tmp_path / "new" / "answers.csv", chunk_rows)
    assert not (tmp_path / "new").exists() or list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("chunk_rows", [0, 50])
def test_parquet_without_its_package_is_a_config_error(
    plain: Predictor, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match=r"netanomaly\[parquet\]"):
        label_files(plain, files[:1], tmp_path / "new" / "answers.parquet", chunk_rows)
    with pytest.raises(ConfigError, match=r"netanomaly\[parquet\]"):
        label_files(plain, files[2:], tmp_path / "new" / "answers.csv", 50)
    assert list((tmp_path / "new").iterdir()) == []
