"""Options and guards of the whole suite."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import settings

from netanomaly import Predictor
from streams import hard_network, predictor

# The same examples every time where a failure has to be about the change at hand; new ones everywhere else.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# A shell starts background jobs with SIGINT ignored, and children inherit that: tests that send it would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data-root", type=Path, help="directory of the data sets that are not in the repository")


@pytest.fixture
def data_root(request: pytest.FixtureRequest) -> Path:
    root = request.config.getoption("--data-root")
    if root is None:
        pytest.skip("needs data that are not in the repository: --data-root DIR")
    return Path(root).resolve()


@pytest.fixture(scope="session")
def plain() -> Predictor:
    """Of chunks and streams, with fresh weights."""
    return predictor()


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """The rows of four links, with all that goes wrong in one."""
    return hard_network()


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """A test leaves the environment, the signal handlers, the threads and the random numbers as they were."""
    environment, threads = _environment(), torch.get_num_threads()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    root = logging.getLogger()  # `main` sets it up anew for each command, here on a stream that pytest has closed
    root.handlers = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    root.setLevel(logging.WARNING)
    assert _environment() == environment
    assert torch.get_num_threads() == threads
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def _environment() -> dict[str, str]:
    """The environment, without what pytest, and torch and scikit-learn on being imported, put there."""
    others = ("PYTEST_", "KMP_", "TORCHINDUCTOR_", "_TORCHINDUCTOR_")
    return {key: value for key, value in os.environ.items() if not key.startswith(others)}
