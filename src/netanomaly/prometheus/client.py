"""Range queries to Prometheus: samples of every series that a query finds, at the steps of a grid."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.errors import DataError
from netanomaly.prometheus.http import Endpoint, TooLong, Unanswered
from netanomaly.strict_json import TooManyParts, parse_json

log = logging.getLogger(__name__)

MOST_POINTS = 11_000
"""Steps of a query that Prometheus answers at most."""
FAR_SECONDS = 9.2e9
"""Since 1970: nanoseconds of later times do not fit into 64 bits."""
MILLISECOND = 10**6
"""Nanoseconds; Prometheus knows nothing finer."""
TOO_MUCH = (413, 422)
"""Statuses with which a query is refused for its size, among other reasons (`query.max-samples`)."""


class Unreachable(DataError):
    """Prometheus does not answer now; it may later."""


class TooMuch(DataError):
    """It may be that too much was asked for at once: fewer steps may be answered."""


@dataclass(frozen=True)
class Found:
    """A series that a query finds: its labels, and its samples. (n,), (n,)

    Attributes:
        times: in ns since 1970.
        values: NaN where Prometheus says so; may be infinite.
    """

    labels: Mapping[str, str]
    times: NDArray[np.int64]
    values: NDArray[np.float64]


class PrometheusClient:
    """Asks a Prometheus server, or whatever speaks its HTTP API."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def query_range(self, query: str, start: int, end: int, step: int) -> list[Found]:
        """What a query finds at `start`, `start` + `step` ... up to `end`, in ns since 1970; `MOST_POINTS` at most.

        Raises:
            Unreachable: there is no answer.
            TooMuch: the query is refused, or its answer is too large, in a way that fewer steps may change.
            DataError: Prometheus refuses the query, or the answer is none.
        """
        fields = {"query": query, "start": _seconds(start), "end": _seconds(end), "step": _seconds(step)}
        place = f"{self._endpoint.shown}: query {query}"
        try:
            answer = self._endpoint.post_form("/api/v1/query_range", fields)
        except Unanswered as error:
            too_much = isinstance(error, TooLong) or error.status in TOO_MUCH
            kind = Unreachable if error.may_pass else TooMuch if too_much else DataError
            raise kind(f"{place}: {error}") from error
        try:
            tree = parse_json(answer)
            if tree["status"] != "success":
                raise DataError(f"{place}: {tree.get('errorType', 'error')}: {tree.get('error', 'without a word')}")
            for warning in tree.get("warnings", ()):
                log.warning("%s: %s", place, warning)
            if tree["data"]["resultType"] != "matrix":
                raise DataError(f"{place}: the answer is a {tree['data']['resultType']}, not a matrix")
            found = [_found(result, place) for result in tree["data"]["result"]]
        except TooManyParts as error:
            raise TooMuch(f"{place}: the answer has {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{place}: not an answer of Prometheus: {type(error).__name__}: {error}") from error
        for one in found:
            _check_times(one, start, end, step, place)
        return found


def pieces(start: int, end: int, step: int, most: int = MOST_POINTS) -> Iterator[tuple[int, int]]:
    """First and last step of ranges of at most `most` steps that together are `start`, `start` + `step` ... `end`."""
    for first in range(start, end + 1, most * step):
        yield first, min(first + (most - 1) * step, end)


def _found(result: Mapping[str, Any], place: str) -> Found:
    labels = {str(name): str(value) for name, value in result["metric"].items()}
    if "values" not in result:
        raise DataError(f"{place}: {labels} is a histogram; ask for a number, as histogram_quantile() gives")
    seconds = np.array([float(time) for time, _ in result["values"]], dtype=np.float64)
    if not (np.abs(seconds) < FAR_SECONDS).all():
        raise ValueError("a time that is none")
    times = np.rint(seconds * 1000).astype(np.int64) * MILLISECOND
    values = [
        float(value) for _, value in result["values"]
    ]  # Python reads NaN, +Inf and -Inf as Prometheus writes them
    return Found(labels, times, np.array(values, dtype=np.float64))


def _check_times(found: Found, start: int, end: int, step: int, place: str) -> None:
    """Raise a DataError for samples that were not asked for: they would be taken for those of another step."""
    outside = (found.times <= start - step // 2 - 1) | (found.times >= end + (step + 1) // 2)
    for time in found.times[outside][:1]:
        raise DataError(f"{place}: {dict(found.labels)} has a sample at {_seconds(int(time))}, which was not asked for")


def _seconds(nanoseconds: int) -> str:
    """As Prometheus reads them, to the millisecond."""
    return f"{nanoseconds // 10**9}.{nanoseconds % 10**9 // MILLISECOND:03d}"
