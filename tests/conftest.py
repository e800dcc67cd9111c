"""Options and guards of the whole suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data-root", type=Path, help="directory of the data sets that are not in the repository")


@pytest.fixture
def data_root(request: pytest.FixtureRequest) -> Path:
    root = request.config.getoption("--data-root")
    if root is None:
        pytest.skip("needs data that are not in the repository: --data-root DIR")
    return Path(root).resolve()


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """A test leaves the environment, the signal handlers, the threads and the random numbers as they were."""
    environment, threads = dict(os.environ), torch.get_num_threads()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    # PYTEST_CURRENT_TEST changes by itself
    now = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    assert now == {key: value for key, value in environment.items() if key != "PYTEST_CURRENT_TEST"}
    assert torch.get_num_threads() == threads
    assert {number: signal.getsignal(number) for number in handlers} == handlers
