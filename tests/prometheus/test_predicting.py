"""Rows of Prometheus are labelled as the same rows of a CSV."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from servers import Server, of_frame, serving

from netanomaly.cli import main

QUERIES = [part for name in ("rtt_ms", "throughput_bps", "loss_ratio") for part in ("--query", f"{name}={name}")]
RANGE = ["--start", "2026-03-01T00:00:00Z", "--end", "2026-03-01T00:02:00Z"]


def written(path: Path, frame: pd.DataFrame) -> str:
    frame.to_csv(path, index=False)
    return str(path)


def test_predict_is_that_of_the_same_rows_as_csv(
    run: Path, rows: pd.DataFrame, prometheus: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "rows.csv", rows)
    for name, given in (("csv", [source]), ("asked", ["--from-prometheus", prometheus.url, *QUERIES, *RANGE])):
        incidents = ["--incidents", str(tmp_path / f"{name}.json"), "--reasons"]
        assert main(["predict", str(run), *given, "--out", str(tmp_path / f"{name}.csv"), *incidents]) == 0
    csv, asked = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("csv", "asked"))
    pd.testing.assert_frame_equal(csv, asked, rtol=0, atol=1e-6)
    assert set(asked["series"]) == {"a", "b", "c"} and len(asked) == len(rows)
    one, other = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("csv", "asked"))
    assert len(one) == len(other) > 2 and [list(line) for line in one] == [list(line) for line in other]
    for line, same in zip(one, other, strict=True):
        assert [line[key] for key in ("series", "start", "end", "label")] == [
            same[key] for key in ("series", "start", "end", "label")
        ]


def test_queries_and_labels_may_stand_in_the_yaml(run: Path, rows: pd.DataFrame, tmp_path: Path) -> None:
    """And a metric may be written in another unit."""
    renamed = rows.rename(columns={"link": "instance"}).assign(mega=rows["throughput_bps"] / 1e6)
    metrics = (
        "{name: rtt_ms, unit: ms, query: rtt_ms}, {name: throughput_bps, unit: Mbit/s, query: mega}, "
        "{name: loss_ratio, unit: ratio, measured: false}"
    )
    (tmp_path / "data.yaml").write_text(f"data: {{series: instance, metrics: [{metrics}]}}\n")
    source = written(tmp_path / "rows.csv", rows)
    with serving(of_frame(renamed, "instance")) as server:
        options = ["--data", str(tmp_path / "data.yaml"), "--from-prometheus", server.url, *RANGE]
        assert main(["predict", str(run), *options, "--out", str(tmp_path / "asked.csv")]) == 0
    own = ["--set", "data.metrics=[{name: rtt_ms, unit: ms}, {name: throughput_bps, unit: bit/s}, "
           "{name: loss_ratio, unit: ratio, measured: false}]"]  # fmt: skip
    assert main(["predict", str(run), source, *own, "--out", str(tmp_path / "csv.csv")]) == 0
    csv, asked = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("csv", "asked"))
    kept = csv.merge(asked[["series", "timestamp"]])  # rows with nothing but a loss are none here
    assert len(kept) == len(asked) and kept["label"].tolist() == asked["label"].tolist()
    np.testing.assert_allclose(kept["confidence"], asked["confidence"], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--from-prometheus", "URL", *QUERIES], 2, "give --start TIME"),
        (["--from-prometheus", "URL", *QUERIES, "--start", "yesterday"], 2, "--start yesterday: write a time like"),
        (["--from-prometheus", "URL", *QUERIES, "--start", "1h", "--end", "2h"], 2, "--end 2h: is not after"),
        (["--from-prometheus", "URL", "x.csv", *QUERIES, "--start", "1h"], 2, "name no files"),
        (["--from-prometheus", "URL", "--query", "rtt_ms", "--start", "1h"], 2, "--query rtt_ms: write NAME=PROMQL"),
        (["--from-prometheus", "URL", "--start", "1h"], 2, "no query for 'rtt_ms'"),
        (["--from-prometheus", "URL", *QUERIES, "--start", "2026-02-01T00:00:00Z", "--end", "2026-02-01T00:01:00Z"],
         3, "no query has a sample"),
        (["x.csv", "--query", "rtt_ms=x"], 2, "give --from-prometheus URL"),
        (["x.csv", "--start", "1h"], 2, "--start: is about rows from Prometheus"),
        ([], 2, "no rows: name files"),
        (["--from-prometheus", "http://127.0.0.1:9", *QUERIES, "--start", "1h"], 3, "refused"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    run: Path, prometheus: Server, options: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [prometheus.url if option == "URL" else option for option in options]
    assert main(["predict", str(run), *given]) == code
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
