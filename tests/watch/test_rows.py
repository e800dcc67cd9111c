"""Lines that can be read are, whatever stands between them."""

from __future__ import annotations

import logging
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly import DataError, Predictor
from netanomaly.data.cells import CellFormat
from netanomaly.data.ingest import InputFormat
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.counts import BROKEN, HEADER, IN_FULL, Counts, LeftOut
from netanomaly.watch.loop import watch
from netanomaly.watch.rows import RowReader

HEADER_LINE = "time,link,note,rtt\n"
GOOD = "2026-03-01T00:00:00Z,a,x,1.5\n"
CELLS = st.sampled_from(
    ["2026-03-01T00:00:00Z", "a", "", "1.5", "nan", "inf", "-1e3", '"x"', '"', "7 ms", "²", "x\x00", "é", "\udc80"]
)
LINES = st.one_of(
    st.just(GOOD),
    st.just(HEADER_LINE),
    st.lists(CELLS, min_size=1, max_size=6).map(lambda cells: ",".join(cells) + "\n"),
    st.builds(lambda time, number: f"{time},a,x,{number}\n", CELLS, CELLS),
)


def reader(cells: CellFormat = CellFormat()) -> tuple[RowReader, Counts]:  # noqa: B008
    form = InputFormat((Metric("rtt", "rtt"),), ("time",), TimeFormat(), ("link",), cells=cells)
    counts = Counts()
    return RowReader(Path("lines"), "utf-8", HEADER_LINE, form, LeftOut(counts)), counts


def read(lines: list[str], at_once: int) -> tuple[list[float], Counts]:
    rows, counts = reader()
    values: list[float] = []
    for first in range(0, len(lines), at_once):
        for table in rows.tables(lines[first : first + at_once], first):
            values += table.values[:, 0].tolist()
    return values, counts


@examples(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES, max_size=8))
def test_lines_are_read_alike_one_by_one_and_together(lines: list[str]) -> None:
    together, counts = read(lines, 100)
    alone, counts_alone = read(lines, 1)
    assert str(together) == str(alone)
    assert counts.left_out == counts_alone.left_out
    assert len(together) + counts.left_out.total() == sum(1 for line in lines if line.strip())


@examples(max_examples=60, deadline=None)
@given(LINES)
def test_what_looks_hopeless_is_refused_by_the_reader(line: str) -> None:
    rows, _ = reader()
    if rows._is_hopeless(line):
        with pytest.raises(DataError):
            rows._read([line], 0, HEADER_LINE)


def test_a_quote_that_is_left_open_swallows_no_rows() -> None:
    values, counts = read([GOOD, '2026-03-01T00:00:00Z,a,"x\n', GOOD, GOOD, 'y",2.5\n', GOOD], 100)
    assert values == [1.5] * 4
    assert counts.left_out == {BROKEN: 2}


def test_another_header_among_the_lines_counts_from_there_on() -> None:
    lines = [GOOD, HEADER_LINE, GOOD, "rtt,link,time\n", "7,a,2026-03-01T00:00:00Z\n", GOOD]
    values, counts = read(lines, 100)
    assert values == [1.5, 1.5, 7.0]
    assert counts.left_out == {HEADER: 2, BROKEN: 1}


def test_a_flood_of_garbage_is_told_in_a_few_lines(
    plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "flood.csv"
    path.write_text("".join([*lines, *["garbage\n", "a,b,c,d,e\n", '"\n'] * 2000, lines[0]]))
    taken: list[pd.DataFrame] = []

    class Kept:
        def take(self, answers: pd.DataFrame) -> None:
            taken.append(answers)

    with caplog.at_level(logging.WARNING):
        counts = watch(StreamingPredictor(plain), path, sinks=[Kept()])
    assert sum(map(len, taken)) == counts.answered.total() == len(lines) - 1
    assert counts.left_out == {BROKEN: 6000, HEADER: 1}
    assert counts.lines == len(lines) - 1 + 6001
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == IN_FULL + 2
    assert said[-1] == "6001 lines left out: 6000 broken, 1 header again"
