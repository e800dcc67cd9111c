from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tables import make_format, make_table, stamp, write

from netanomaly.data.incidents import label_rows
from netanomaly.data.timestamps import TimeFormat
from netanomaly.errors import DataError

ROWS = make_table([0, 1, 2, 3, 0, 1, 2, 3], series=["a"] * 4 + ["b"] * 4)


def incident(start: float, end: float, label: str = "loss", link: str = "a") -> str:
    return f"{link},{stamp(start)},{stamp(end)},{label}\n"


def labels(tmp_path: Path, *lines: str, head: str = "link,start,end,label\n") -> list[str]:
    path = write(tmp_path / "incidents.csv", head + "".join(lines))
    return label_rows(ROWS, path, make_format(), "normal").labels.tolist()


def refuse(tmp_path: Path, *lines: str, head: str = "link,start,end,label\n") -> str:
    with pytest.raises(DataError) as caught:
        labels(tmp_path, *lines, head=head)
    assert str(caught.value).startswith(f"{tmp_path / 'incidents.csv'}: ")
    return str(caught.value)


def test_the_row_at_the_start_is_in_and_the_row_at_the_end_is_out(tmp_path: Path) -> None:
    assert labels(tmp_path, incident(1, 3)) == ["normal", "loss", "loss", "normal"] + ["normal"] * 4


@pytest.mark.parametrize(
    ("start", "end", "inside"),
    [(0.999999999, 1.000000001, [1]), (1.000000001, 2, []), (0.5, 1, []), (-5, 99, [0, 1, 2, 3])],
)
def test_the_bounds_are_exact_to_the_nanosecond(tmp_path: Path, start: float, end: float, inside: list[int]) -> None:
    found = labels(tmp_path, incident(start, end))
    assert [i for i, label in enumerate(found) if label == "loss"] == inside


def test_only_the_named_series_is_labelled(tmp_path: Path) -> None:
    assert labels(tmp_path, incident(0, 9, link=" b ")) == ["normal"] * 4 + ["loss"] * 4


def test_several_incidents_of_one_series_touch_without_overlap(tmp_path: Path) -> None:
    found = labels(tmp_path, incident(2, 4, "flood"), incident(0, 2, "loss"))
    assert found[:4] == ["loss", "loss", "flood", "flood"]


def test_incidents_of_one_label_may_overlap(tmp_path: Path) -> None:
    assert labels(tmp_path, incident(0, 2), incident(1, 3))[:4] == ["loss"] * 3 + ["normal"]


def test_labels_keep_their_names(tmp_path: Path) -> None:
    assert labels(tmp_path, incident(0, 1, "None"), incident(1, 2, "NA"))[:2] == ["None", "NA"]


def test_the_label_of_all_other_rows_is_as_declared(tmp_path: Path) -> None:
    path = write(tmp_path / "incidents.csv", "link,start,end,label\n" + incident(0, 1))
    assert label_rows(ROWS, path, make_format(), "fine").labels.tolist() == ["loss"] + ["fine"] * 7


def test_other_columns_are_ignored(tmp_path: Path) -> None:
    line = f"0.4,{incident(0, 1)}"
    assert labels(tmp_path, line, head="severity,link,start,end,label\n")[0] == "loss"


def test_the_table_is_not_changed(tmp_path: Path) -> None:
    before = ROWS.labels.copy()
    labels(tmp_path, incident(0, 9))
    assert (ROWS.labels == before).all()


def test_without_series_columns_an_incident_covers_all_series(tmp_path: Path) -> None:
    path = write(tmp_path / "incidents.csv", f"start,end,label\n{stamp(1)},{stamp(2)},loss\n")
    found = label_rows(ROWS, path, make_format(series=()), "normal").labels.tolist()
    assert [i for i, label in enumerate(found) if label == "loss"] == [1, 5]


def test_several_series_columns_are_joined_as_in_the_data(tmp_path: Path) -> None:
    table = make_table([0, 1], series=["fra/eth0", "fra/eth1"])
    path = write(tmp_path / "incidents.csv", f"site,port,start,end,label\nfra,eth1,{stamp(0)},{stamp(9)},loss\n")
    found = label_rows(table, path, make_format(series=("site", "port")), "normal")
    assert found.labels.tolist() == ["normal", "loss"]


def test_times_are_read_as_in_the_data(tmp_path: Path) -> None:
    form = replace(make_format(separator=";"), times=TimeFormat("elapsed", "s"))
    table = replace(ROWS, times=ROWS.times - ROWS.times[0])
    path = write(tmp_path / "incidents.csv", "link;start;end;label\na;1;2.5;loss\n")
    found = label_rows(table, path, form, "normal").labels.tolist()
    assert [i for i, label in enumerate(found) if label == "loss"] == [1, 2]


@pytest.mark.parametrize("end", [1, 0.5])
def test_an_incident_that_ends_before_it_starts_is_refused_with_its_line(tmp_path: Path, end: float) -> None:
    message = refuse(tmp_path, incident(0, 1), "\n", incident(1, end))
    assert "line 4: the incident ends before it starts" in message


def test_an_unknown_series_is_refused_with_its_line_and_the_known_ones(tmp_path: Path) -> None:
    assert "line 2: no series 'c' in the data; it has a, b" in refuse(tmp_path, incident(0, 1, link="c"))


def test_overlapping_incidents_of_two_labels_are_refused_with_both_lines(tmp_path: Path) -> None:
    message = refuse(tmp_path, incident(0, 2), incident(0, 9, link="b"), incident(1, 3, "flood"))
    assert "line 4: overlaps the incident of " in message
    assert "line 2, which has another label" in message


def test_an_incident_without_a_label_is_refused(tmp_path: Path) -> None:
    assert "line 2, column 'label': empty" in refuse(tmp_path, incident(0, 1, " "))


def test_a_bad_time_is_refused_with_its_line_and_column(tmp_path: Path) -> None:
    assert "line 2, column 'end': found 'later'" in refuse(tmp_path, f"a,{stamp(0)},later,loss\n")


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    assert "no column 'end'" in refuse(tmp_path, f"a,{stamp(0)},loss\n", head="link,start,label\n")


def test_the_label_of_predictions_without_data_is_refused(tmp_path: Path) -> None:
    assert "line 2, column 'label': the label 'no_data' is reserved" in refuse(tmp_path, incident(0, 1, "no_data"))


def test_a_bad_line_is_refused_even_where_the_data_may_have_some(tmp_path: Path) -> None:
    path = write(tmp_path / "incidents.csv", "link,start,end,label\n" + incident(0, 1) + "a\n")
    with pytest.raises(DataError, match="line 3: found 1 fields"):
        label_rows(ROWS, path, make_format(skip_bad_lines=True), "normal")


def test_incidents_of_series_that_are_not_here_may_be_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "incidents.csv", "link,start,end,label\n" + incident(0, 1, link="c") + incident(1, 2))
    with caplog.at_level(logging.WARNING, "netanomaly"):
        found = label_rows(ROWS, path, make_format(), "normal", all_series=False).labels.tolist()
    assert [i for i, label in enumerate(found) if label == "loss"] == [1]
    assert "1 of 2 incidents are of series that are not here" in caplog.text


def test_incidents_that_cover_no_row_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "netanomaly"):
        labels(tmp_path, incident(0, 1), incident(50, 60), incident(1.2, 1.8))
    assert "2 of 3 incidents cover no row" in caplog.text


def test_incidents_that_all_cover_rows_are_not_talked_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "netanomaly"):
        labels(tmp_path, incident(0, 1))
    assert caplog.text == ""
