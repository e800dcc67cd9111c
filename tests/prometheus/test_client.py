"""Range queries: what is asked, what comes of it, and what is said when nothing does."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from servers import matrix, serving

from netanomaly import ConfigError, DataError
from netanomaly.data.ingest import InputFormat
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat
from netanomaly.prometheus.client import MOST_POINTS, Found, PrometheusClient, Unreachable, pieces
from netanomaly.prometheus.http import Endpoint
from netanomaly.prometheus.table import PrometheusTables

SECOND = 10**9
START = 1_772_323_200 * SECOND  # 2026-03-01T00:00:00Z
RTT = Metric("rtt", "round trip", unit="ms")
RATE = Metric("rate", "bits", unit="Mbit/s")
FORM = InputFormat((RTT, RATE), ("time",), TimeFormat(), ("site", "link"))
QUERIES = {"rtt": "rtt_seconds * 1000", "rate": "rate(bits[1m])"}


def client(url: str, seconds: float = 5.0) -> PrometheusClient:
    return PrometheusClient(Endpoint(url, "--from-prometheus", seconds))


def asked(url: str, form: InputFormat = FORM, queries: Mapping[str, str] = QUERIES) -> PrometheusTables:
    return PrometheusTables(client(url), form, queries, SECOND)


@examples(max_examples=100, deadline=None)
@given(st.integers(0, 50), st.integers(1, 7), st.integers(1, 9), st.integers(0, 6))
def test_pieces_hold_every_step_once_and_not_too_many(steps: int, step: int, most: int, beyond: int) -> None:
    end = 100 + steps * step + min(beyond, step - 1)
    found = [range(first, last + 1, step) for first, last in pieces(100, end, step, most)]
    assert [moment for part in found for moment in part] == list(range(100, end + 1, step))
    assert max(map(len, found)) <= most


def test_a_long_range_is_asked_for_piece_by_piece() -> None:
    with serving(lambda path, body: (200, matrix())) as server:
        assert list(asked(server.url).tables(START, START + 25_000 * SECOND)) == []
    forms = [parse_qs(body.decode()) for _, body in server.asked]
    assert len(forms) == 3 * 2 and {path for path, _ in server.asked} == {"/api/v1/query_range"}
    lengths = [round((float(form["end"][0]) - float(form["start"][0])) / float(form["step"][0])) + 1 for form in forms]
    assert lengths == [MOST_POINTS] * 4 + [25_001 - 2 * MOST_POINTS] * 2


def test_results_are_joined_into_rows_in_base_units() -> None:
    first = START // SECOND

    def answer(path: str, body: bytes) -> tuple[int, Any]:
        if b"rtt" in body:
            return 200, matrix(
                ({"site": "s", "link": "b"}, [(first, "10"), (first + 2, "NaN")]),
                ({"site": "s", "link": "a", "x": "y"}, [(first + 1, "20.5")]),
            )
        return 200, matrix(
            ({"site": "s", "link": "b"}, [(first, "3")]), ({"link": "c", "site": "t"}, [(first + 2, "1")])
        )

    with serving(answer) as server:
        (table,) = asked(server.url).tables(START, START + 3 * SECOND)
    assert table.series.tolist() == ["s/b", "s/a", "s/b", "t/c"]
    assert table.time_texts.tolist() == [f"2026-03-01T00:00:0{second}Z" for second in (0, 1, 2, 2)]
    assert ((table.times - START) // SECOND).tolist() == [0, 1, 2, 2]
    np.testing.assert_allclose(table.values, [[0.01, 3e6], [0.0205, np.nan], [np.nan, np.nan], [np.nan, 1e6]])


LABELS = {"site": "s", "link": "a"}


@pytest.mark.parametrize(
    ("status", "answer", "kind", "said"),
    [
        (400, {"status": "error", "errorType": "bad_data", "error": "parse error"}, DataError, "HTTP 400: parse error"),
        (422, {"status": "error", "error": "many-to-many"}, DataError, "HTTP 422: many-to-many"),
        (404, b"<html>no\n page</html>", DataError, "HTTP 404: <html>no page</html>"),
        (302, b"", DataError, "redirects to http://elsewhere/"),
        (503, {"status": "error", "error": "query timed out"}, Unreachable, "HTTP 503: query timed out"),
        (429, b"", Unreachable, "HTTP 429: Too Many Requests"),
        (200, {"status": "error", "errorType": "execution", "error": "no"}, DataError, "execution: no"),
        (200, b"<html>", DataError, "not an answer of Prometheus"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": [{}]}}, DataError, "not an answer"),
        (200, {"status": "success", "data": {"resultType": "scalar", "result": []}}, DataError, "a scalar, not"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "histograms": []}]}},
         DataError, "histogram_quantile"),
        (200, matrix((LABELS, [(1, "many")])), DataError, "not an answer of Prometheus: ValueError"),
        (200, matrix((LABELS, [(1e30, "1")])), DataError, "not an answer of Prometheus: ValueError: a time"),
        (200, matrix((LABELS, [("inf", "1")])), DataError, "not an answer of Prometheus: ValueError: a time"),
        (200, b'{"status": "success", "data": {"result": [1e999]}}', DataError, "the number 1e999 is too large"),
        (200, b"[" * 100_000, DataError, "nested more than 100 deep"),
        (400, b"[" * 60_000, DataError, "HTTP 400: \\[\\["),
        (200, matrix((LABELS, [(START // SECOND - 1, "1")])), DataError, "a sample at 1772323199.000, which was not"),
        (200, matrix((LABELS, [(START // SECOND + 1, "1")])), DataError, "a sample at 1772323201.000, which was not"),
        (200, matrix((LABELS, [(START // SECOND, "+Inf")])), DataError, "rtt of 's/a' at 2026-03-01T00:00:00Z is \\+"),
        (200, matrix((LABELS, []), ({**LABELS, "if": "1"}, [])), DataError, "two results are of series 's/a'"),
        (200, matrix(({"site": "s"}, [])), DataError, "no label 'link' of data.series; it has site"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(status: int, answer: Any, kind: type[DataError], said: str) -> None:
    with serving(lambda path, body: (status, answer)) as server, pytest.raises(DataError, match=said) as caught:
        list(asked(server.url).tables(START, START))
    assert type(caught.value) is kind and "\n" not in str(caught.value)


def long_range(most: int, refusal: Any) -> tuple[list[int], list[int]]:
    """How many steps each query asked for, and the seconds of the rows, of 100 steps; more than `most` are refused."""
    lengths: list[int] = []

    def answer(path: str, body: bytes) -> tuple[int, Any]:
        form = {key: float(values[0]) for key, values in parse_qs(body.decode()).items() if key != "query"}
        moments = range(int(form["start"]), int(form["end"]) + 1)
        lengths.append(len(moments))
        return refusal if len(moments) > most else (200, matrix((LABELS, [(moment, "1") for moment in moments])))

    with serving(answer) as server:
        tables = list(asked(server.url).tables(START, START + 99 * SECOND))
    return lengths, [second for table in tables for second in ((table.times - START) // SECOND).tolist()]


@pytest.mark.parametrize(
    "refusal",
    [(422, {"status": "error", "error": "query processing would load too many samples into memory"}), (413, b"")],
)
def test_where_too_much_was_asked_for_halves_are(refusal: Any) -> None:
    lengths, seconds = long_range(30, refusal)
    assert seconds == list(range(100))
    assert lengths == [100, 50, 25, 25, 25, 25, 50, 25, 25, 25, 25]


@pytest.mark.parametrize(("limit", "most"), [("prometheus.http.MOST_BYTES", 1200), ("strict_json.MOST_CONTAINERS", 60)])
def test_where_too_much_comes_halves_are_asked_for(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"netanomaly.{limit}", most)
    lengths, seconds = long_range(100, None)
    assert seconds == list(range(100)) and lengths[0] == 100 and 2 < len(lengths) < 30


def test_not_more_samples_are_asked_for_than_an_answer_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netanomaly.prometheus.table.MOST_SAMPLES", 40)
    lengths, seconds = long_range(100, None)
    assert seconds == list(range(100)) and lengths == [25] * 8


@pytest.mark.timeout(20)
def test_many_series_are_looked_through_once() -> None:
    names = [f"{number:06d}" for number in range(60_000)]  # all pairs of them would take a minute
    nothing = np.empty(0, dtype=np.int64)
    found = [Found({"site": "s", "link": name}, nothing, nothing / 1) for name in names]
    assert asked("http://localhost")._names("rtt", found) == [f"s/{name}" for name in names]


def test_infinite_values_may_be_told_and_missing() -> None:
    told: list[str] = []
    answer = matrix((LABELS, [(START // SECOND, "-Inf")]))
    with serving(lambda path, body: (200, answer)) as server:
        (table,) = asked(server.url).tables(START, START, told.append)
    assert np.isnan(table.values).all() and "is -inf" in told[0] and len(told) == 2


def test_who_does_not_answer_may_answer_later() -> None:
    release = threading.Event()
    with serving(lambda path, body: (200, matrix()) if release.wait(5) else (500, b"")) as server:
        with pytest.raises(Unreachable, match=r"no answer within 0\.2 s"):
            client(server.url, 0.2).query_range("up", START, START, SECOND)
        release.set()
    with pytest.raises(Unreachable, match="refused"):
        client(server.url).query_range("up", START, START, SECOND)


def test_user_and_password_of_the_url_are_sent_and_not_shown() -> None:
    with serving(lambda path, body: (401, b"")) as server:
        url = server.url.replace("http://", "http://ann:p%40ss@") + "/prom/"
        with pytest.raises(DataError, match="HTTP 401") as caught:
            client(url).query_range("up", START, START, SECOND)
    assert server.authorization == ["Basic YW5uOnBAc3M="]  # printf 'ann:p@ss' | base64
    assert server.asked[0][0] == "/prom/api/v1/query_range"
    assert "ann" not in str(caught.value) and "p%40ss" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:9090",
        "ftp://host",
        "http://",
        "http://a:b",
        "http://host/?x=1",
        "file:///etc/passwd",
        "http://[::1",
        "http://host/\udce9",
        "http://\udce9:a@host",
        "http://h\u00f6st",
        "http://host/a b",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--from-prometheus"):
        Endpoint(url, "--from-prometheus", 1.0)


@pytest.mark.parametrize(
    ("form", "queries", "said"),
    [
        (FORM, {"rtt": "x"}, "no query for 'rate'"),
        (FORM, {**QUERIES, "loss": "x"}, "the bundle's metrics are rtt, rate"),
        (InputFormat((RTT,), ("time",), TimeFormat()), {"rtt": "x"}, "data.series: name the labels"),
    ],
)
def test_queries_have_to_be_those_of_the_metrics(form: InputFormat, queries: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        asked("http://localhost", form, queries)


def test_a_step_is_whole_milliseconds() -> None:
    with pytest.raises(ConfigError, match="millisecond"):
        PrometheusTables(client("http://localhost"), FORM, QUERIES, SECOND + 1)
