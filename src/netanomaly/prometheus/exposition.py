"""Metrics for Prometheus to scrape (extra `prometheus`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from netanomaly.errors import ConfigError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Collect = Callable[[], Iterable["Metric"]]
"""All metrics as they are now; called at each scrape, from another thread."""


class _Collector:
    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are looked at when they are scraped."""
        return ()

    def collect(self) -> Iterable[Metric]:
        return self._collect()


@contextmanager
def served(collect: Collect, address: str, port: int) -> Iterator[int]:
    """Answer scrapes at /metrics while the block lasts; gives the port (0 asks for a free one).

    Raises:
        ConfigError: prometheus_client is not installed, or the port cannot be listened at.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        hint = "pip install 'netanomaly[prometheus]'"
        raise ConfigError(f"--metrics-port: metrics need prometheus_client: {hint}") from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(collect))
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"--metrics-port {port}: cannot listen at {address}: {why}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
