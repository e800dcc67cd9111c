"""The options of commands that read from Prometheus instead of files."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from netanomaly.durations import parse_duration
from netanomaly.errors import ConfigError

if TYPE_CHECKING:
    from netanomaly.predictor import Predictor
    from netanomaly.prometheus.table import PrometheusTables

OPTION = "--from-prometheus"
SECONDS = 60.0
"""To wait for the answer to a query."""


def add_prometheus(command: argparse.ArgumentParser) -> None:
    """Add the options that say where Prometheus is and what to ask it."""
    command.add_argument(
        OPTION,
        metavar="URL",
        help="rows from a Prometheus server: a query for each metric, a series for each value of the labels "
        "data.series, a row every data.interval",
    )
    command.add_argument(
        "--query",
        action="append",
        default=[],
        metavar="NAME=PROMQL",
        help="query of a metric, in place of the key query of data.metrics; may be given several times",
    )


def is_asked(options: argparse.Namespace) -> bool:
    """Whether rows come from Prometheus.

    Raises:
        ConfigError: --query without it.
    """
    if options.query and options.from_prometheus is None:
        raise ConfigError(f"--query: is for Prometheus; give {OPTION} URL as well")
    return options.from_prometheus is not None


def prometheus_tables(options: argparse.Namespace, predictor: Predictor) -> PrometheusTables:
    """What asks for the rows, as the options and the config say."""
    from netanomaly.build import build_grid_spans, build_input_format
    from netanomaly.prometheus.client import PrometheusClient
    from netanomaly.prometheus.http import Endpoint
    from netanomaly.prometheus.table import PrometheusTables

    data = predictor.config.data
    queries = {metric.name: metric.query for metric in data.metrics if metric.measured and metric.query is not None}
    for given in options.query:
        name, mark, query = given.partition("=")
        if not mark or not name or not query.strip():
            raise ConfigError(f"--query {given}: write NAME=PROMQL")
        queries[name] = query
    client = PrometheusClient(Endpoint(options.from_prometheus, OPTION, SECONDS))
    return PrometheusTables(client, build_input_format(data), queries, build_grid_spans(predictor.config).interval_ns)


def moment(text: str, option: str) -> int:
    """Nanoseconds since 1970 of a time in RFC 3339, or of so long ago, as in `6h`.

    Raises:
        ConfigError: the text is neither.
    """
    from netanomaly.data.utc_times import utc_nanoseconds

    if text == "now":
        return time.time_ns()
    try:
        return time.time_ns() - parse_duration(text)
    except ValueError:
        found = utc_nanoseconds([text])
    if found is None:
        raise ConfigError(f"{option} {text}: write a time like 2026-03-01T12:00:00Z, a duration like 6h (ago), or now")
    return int(found[0])
