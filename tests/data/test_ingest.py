from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tables import START, make_format, stamp, write

from netanomaly.data.cells import Columns
from netanomaly.data.ingest import NO_PART, InputFormat, Table, find_files, read_table, table_of_frames
from netanomaly.data.schema import UNITS, Metric
from netanomaly.data.timestamps import TimeFormat
from netanomaly.errors import DataError

SECOND = 10**9
HEAD = "time,link,rtt,label\n"


def line(second: int, link: str = "a", rtt: object = 1, label: str = "normal") -> str:
    return f"{stamp(second)},{link},{rtt},{label}\n"


def read(path: Path, content: str, form: InputFormat | None = None) -> Table:
    return read_table({write(path, content): NO_PART}, form or make_format())


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {"time": [stamp(0), stamp(1)], "link": ["a", "a"], "rtt": [1.0, 2.0], "label": ["x", "y"], **columns}
    )


def take(given: pd.DataFrame, form: InputFormat | None = None) -> Table:
    return table_of_frames([(given, NO_PART, "lab")], form or make_format())


def same(found: Table, wanted: Table) -> None:
    for name in ("series", "times", "labels", "parts"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    np.testing.assert_array_equal(found.values, wanted.values)


# Files


def test_files_come_sorted_within_a_pattern_and_once(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        write(tmp_path / name, "")
    found = find_files(["c.txt", "*.csv", "a.csv", "./b.csv"], tmp_path)
    assert [path.name for path in found] == ["c.txt", "a.csv", "b.csv"]


def test_a_pattern_may_reach_into_folders(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    write(tmp_path / "x" / "y" / "a.csv", "")
    assert find_files(["**/*.csv"], tmp_path) == [tmp_path / "x" / "y" / "a.csv"]


def test_an_absolute_path_leaves_the_root(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "")
    assert find_files([str(path)], "elsewhere") == [path]


@pytest.mark.parametrize(("pattern", "told"), [("*.csv", "no file matches this pattern"), ("a.csv", "no such file")])
def test_what_matches_nothing_is_a_data_error_that_quotes_it(tmp_path: Path, pattern: str, told: str) -> None:
    with pytest.raises(DataError) as caught:
        find_files([pattern], tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / pattern}: {told}")
    assert f"(seen from {Path.cwd()})" in str(caught.value)


def test_a_file_whose_name_looks_like_a_pattern_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "links [1].csv", "")
    assert find_files(["links [1].csv"], tmp_path) == [path]


def test_a_root_whose_name_looks_like_a_pattern_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "run [1]").mkdir()
    path = write(tmp_path / "run [1]" / "a.csv", "")
    assert find_files(["*.csv"], tmp_path / "run [1]") == [path]


def test_no_files_at_all_is_a_data_error() -> None:
    with pytest.raises(DataError, match="no files to read"):
        read_table({}, make_format())


def test_rows_of_several_files_come_in_order_with_their_parts(tmp_path: Path) -> None:
    files = {
        write(tmp_path / "b.csv", HEAD + line(0, "x") + line(1, "x")): 2,
        write(tmp_path / "a.csv", HEAD + line(0, "y")): 0,
    }
    table = read_table(files, make_format())
    assert table.series.tolist() == ["x", "x", "y"]
    assert table.parts.tolist() == [2, 2, 0]


def test_a_row_of_the_second_file_is_found_in_it(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.csv", HEAD + line(0)), write(tmp_path / "b.csv", HEAD + "\n" + line(1))]
    table = read_table(dict.fromkeys(files, NO_PART), make_format())
    assert [table.where(0), table.where(1)] == [f"{files[0]}: line 2", f"{files[1]}: line 3"]


def test_skipped_lines_are_told_with_their_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "netanomaly"):
        read(tmp_path / "links.csv", HEAD + line(0) + "x\n" + line(1) + "x,y\n", make_format(skip_bad_lines=True))
    assert "links.csv: skipped 2 of 4 lines" in caplog.text


# Series


def test_series_columns_are_joined_by_a_slash(tmp_path: Path) -> None:
    form = make_format(series=("site", "link"), label=None)
    table = read(tmp_path / "links.csv", f"time,site,link,rtt\n{stamp(0)}, fra ,eth0,1\n{stamp(0)},7,eth0,1\n", form)
    assert table.series.tolist() == ["fra/eth0", "7/eth0"]


@pytest.mark.parametrize("cell", ["", "  "])
def test_a_row_without_a_series_is_refused(tmp_path: Path, cell: str) -> None:
    with pytest.raises(DataError, match="line 3, column 'link': empty; every row belongs to a series"):
        read(tmp_path / "links.csv", HEAD + line(0) + line(1, cell))


@pytest.mark.parametrize("name", ["fra-ams.csv", "fra-ams.csv.gz", "fra-ams.parquet"])
def test_without_series_columns_a_file_is_a_series_of_its_name(tmp_path: Path, name: str) -> None:
    given = frame()
    path = tmp_path / name
    given.to_parquet(path) if name.endswith("parquet") else given.to_csv(path, index=False)
    assert set(read_table({path: NO_PART}, make_format(series=())).series) == {"fra-ams"}


def test_files_named_after_addresses_are_different_series(tmp_path: Path) -> None:
    files = [write(tmp_path / f"10.0.0.{i}.csv", HEAD + line(i)) for i in (1, 2)]
    assert read_table(dict.fromkeys(files, NO_PART), make_format(series=())).series.tolist() == ["10.0.0.1", "10.0.0.2"]


def files_of_one_name(tmp_path: Path, parts: tuple[int, int]) -> dict[Path, int]:
    for folder in ("fra", "ams"):
        (tmp_path / folder).mkdir()
    names = [write(tmp_path / folder / "link.csv", HEAD + line(i)) for i, folder in enumerate(("fra", "ams"))]
    return dict(zip(names, parts, strict=True))


def test_files_of_one_name_in_two_folders_are_not_silently_one_series(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="another file would be 'link' too; rename it, or name the series columns"):
        read_table(files_of_one_name(tmp_path, (NO_PART, NO_PART)), make_format(series=()))


def test_files_of_one_name_may_be_the_same_series_in_two_parts(tmp_path: Path) -> None:
    assert set(read_table(files_of_one_name(tmp_path, (0, 2)), make_format(series=())).series) == {"link"}


# Labels


def test_labels_keep_the_names_that_pandas_takes_for_nothing(tmp_path: Path) -> None:
    names = ["None", "no", "NA", "nan", "null", "NaN", "true", "0", "<NA>"]
    content = HEAD + "".join(line(i, label=name) for i, name in enumerate(names))
    assert read(tmp_path / "links.csv", content).labels.tolist() == names


def test_an_empty_label_is_unlabelled_and_spaces_do_not_count(tmp_path: Path) -> None:
    content = HEAD + line(0, label="") + line(1, label="  ") + line(2, label=" normal ")
    assert read(tmp_path / "links.csv", content).labels.tolist() == ["", "", "normal"]


def test_without_a_label_column_all_rows_are_unlabelled(tmp_path: Path) -> None:
    table = read(tmp_path / "links.csv", HEAD + line(0), make_format().without_label())
    assert table.labels.tolist() == [""]


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["x", None], ["x", ""]),
        (["x", float("nan")], ["x", ""]),
        ([0, 1], ["0", "1"]),
        (pd.array(["x", None], dtype="string"), ["x", ""]),
        (pd.Categorical(["x", "y"]), ["x", "y"]),
        (pd.Categorical(["x", None]), ["x", ""]),
        (pd.array([1, None], dtype="Int64"), ["1", ""]),
        ([1.5, None], ["1.5", ""]),
    ],
    ids=["None", "nan", "int", "string", "category", "category with a hole", "Int64 with a hole", "float with a hole"],
)
def test_labels_of_a_frame_may_be_of_any_kind(labels: Any, wanted: list[str]) -> None:
    assert take(frame(label=labels)).labels.tolist() == wanted


# Times


def test_time_columns_are_joined_by_a_space(tmp_path: Path) -> None:
    form = replace(
        make_format(label=None),
        time_columns=("Date", "Time"),
        times=TimeFormat("%d.%m.%Y %H:%M:%S", timezone="Europe/Berlin"),
    )
    table = read(tmp_path / "links.csv", "Date,Time,link,rtt\n01.03.2026, 01:00:02,a,1\n", form)
    assert table.times.tolist() == [START + 2 * SECOND]
    assert table.time_texts.tolist() == ["01.03.2026 01:00:02"]


def test_a_bad_joined_time_is_told_with_both_columns(tmp_path: Path) -> None:
    form = replace(make_format(label=None), time_columns=("Date", "Time"), times=TimeFormat("%d.%m.%Y %H:%M"))
    with pytest.raises(DataError, match=r"line 2, column 'Date Time': found '01\.03\.2026 25:00'"):
        read(tmp_path / "links.csv", "Date,Time,link,rtt\n01.03.2026,25:00,a,1\n", form)


def test_an_epoch_may_have_the_declared_decimal_comma(tmp_path: Path) -> None:
    form = replace(make_format(label=None, separator=";", decimal=","), times=TimeFormat("epoch", "s"))
    table = read(tmp_path / "links.csv", "time;link;rtt\n1700000000,5;a;1,5\n", form)
    assert table.times.tolist() == [1_700_000_000_500_000_000]


def test_an_epoch_of_a_frame_has_a_point_whatever_is_declared() -> None:
    form = replace(make_format(decimal=","), times=TimeFormat("epoch", "s"))
    assert take(frame(time=[1_700_000_000.5, 1_700_000_001.0]), form).times.tolist()[0] == 1_700_000_000_500_000_000


def test_the_times_come_back_as_they_were_written(tmp_path: Path) -> None:
    text = "2026-03-01 01:00:00.50+01:00"
    table = read(tmp_path / "links.csv", f"time,link,rtt,label\n{text},a,1,x\n")
    assert table.time_texts.tolist() == [text]


# Units


@pytest.mark.parametrize(
    "unit",
    [unit for unit in UNITS if UNITS[unit][0] in ("bit", "bit/s", "s", "ratio")],
)
def test_the_same_data_in_any_unit_give_the_same_values(tmp_path: Path, unit: str) -> None:
    base, factor = UNITS[unit]
    true = np.array([0.0, 1.0, 12_345.678, 0.25, 9.87e9])
    table = read(
        tmp_path / "links.csv",
        HEAD + "".join(line(i, rtt=repr(value / factor)) for i, value in enumerate(true.tolist())),
        make_format(Metric("rtt", "rtt", unit)),
    )
    np.testing.assert_allclose(table.values[:, 0], true, rtol=1e-12, atol=0)
    assert UNITS[base] == (base, 1.0)


@pytest.mark.parametrize(
    ("cells", "units"),
    [
        (("8e6", "8", "1e6", "1000", "1"), ("bit/s", "Mbit/s", "byte/s", "kB/s", "MB/s")),
        (("0.25", "250", "250000", "250000000"), ("s", "ms", "us", "ns")),
        (("12.5%", "12.5", "0.125"), ("%", "%", "ratio")),
        (("1048576", "1024", "1", "8388608"), ("B", "KiB", "MiB", "bit")),
        (("5", "5"), ("pps", "packet/s")),
    ],
)
def test_units_agree_with_each_other(tmp_path: Path, cells: tuple[str, ...], units: tuple[str, ...]) -> None:
    metrics = [Metric(f"m{i}", f"m{i}", unit) for i, unit in enumerate(units)]
    head = ",".join(["time", "link", *(metric.column for metric in metrics)])
    table = read(tmp_path / "links.csv", f"{head}\n{stamp(0)},a,{','.join(cells)}\n", make_format(*metrics, label=None))
    np.testing.assert_allclose(table.values[0], table.values[0, 0], rtol=1e-12, atol=0)


# One answer for every source


def test_csv_gzip_parquet_and_frame_give_the_same_table(tmp_path: Path) -> None:
    given = frame(rtt=[1.25, None], extra=["?", "!"], label=["None", None])
    given.to_csv(tmp_path / "a.csv", index=False)
    given.to_csv(tmp_path / "a.csv.gz", index=False)
    given.to_parquet(tmp_path / "a.parquet")
    wanted = take(given)
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        same(read_table({tmp_path / name: NO_PART}, make_format()), wanted)


def test_a_parquet_file_with_typed_times_gives_the_same_table(tmp_path: Path) -> None:
    given = frame(time=pd.to_datetime([stamp(0), stamp(1)]), label=pd.Categorical(["x", "y"]))
    given.to_parquet(tmp_path / "a.parquet")
    same(read_table({tmp_path / "a.parquet": NO_PART}, make_format()), take(frame()))


def test_a_frame_is_not_changed() -> None:
    given = frame(rtt=["1", " 2 "], label=[" x ", None]).set_index(pd.Index([5, 2]))
    before = given.copy(deep=True)
    table = take(given, make_format(Metric("rtt", "rtt", "ms")))
    table.values[:] = 0
    table.labels[:] = "z"
    table.series[:] = "z"
    table.time_texts[:] = "z"
    pd.testing.assert_frame_equal(given, before)


@pytest.mark.parametrize("skip", [False, True], ids=["fast", "slow"])
def test_two_metrics_may_come_from_one_column(tmp_path: Path, skip: bool) -> None:
    metrics = Metric("total", "rtt", "byte"), Metric("rate", "rtt", "byte", "counter")
    form = make_format(*metrics, skip_bad_lines=skip)
    np.testing.assert_array_equal(read(tmp_path / "links.csv", HEAD + line(0, rtt=2), form).values, [[16, 16]])


def test_two_metrics_may_come_from_one_column_of_a_frame() -> None:
    form = make_format(Metric("total", "rtt"), Metric("rate", "rtt", kind="counter"))
    np.testing.assert_array_equal(take(frame(), form).values, [[1, 1], [2, 2]])


def test_the_columns_follow_from_the_format() -> None:
    columns = make_format(Metric("a", "A", "%"), Metric("b", "B")).columns()
    assert columns == Columns(("time", "link", "label"), ("A", "B"), frozenset({"A"}))


@pytest.mark.parametrize("label", ["no_data", " no_data "])
def test_the_label_of_predictions_without_data_is_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(DataError, match="line 3, column 'label': the label 'no_data' is reserved"):
        read(tmp_path / "links.csv", HEAD + line(0) + line(1, label=label))


def test_a_value_too_large_in_the_base_unit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 3, column 'rtt': too large"):
        read(tmp_path / "links.csv", HEAD + line(0) + line(1, rtt="1e308"), make_format(Metric("rtt", "rtt", "Gbit/s")))
