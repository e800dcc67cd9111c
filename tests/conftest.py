"""Options and guards of the whole suite."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
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


LONGEST = ("test_readme.py", "test_cli.py", "test_resuming.py")
"""Files that take longest: begun last, one process would work on them alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)


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
    """A test leaves the process as it was: see `_state`; threads and processes that it started are over."""
    before, threads, children = _state(), set(threading.enumerate()), _has_children()
    yield
    root = logging.getLogger()  # `main` sets it up anew for each command, here on a stream that pytest has closed
    root.handlers = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    root.setLevel(logging.WARNING)
    after = _state()
    assert after == before
    for thread in set(threading.enumerate()) - threads:
        if not thread.daemon:  # tqdm has one that watches over its bars
            thread.join(timeout=5)
            assert not thread.is_alive(), thread
    assert children or not _has_children(), "a process that was started is still there, or nobody has waited for it"


def _state() -> dict[str, Any]:
    """What a test might change for those after it."""
    logger = logging.getLogger("netanomaly")
    return {
        "environment": _environment(),
        "directory": Path.cwd(),
        "signal handlers": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "threads of torch": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "gradients": torch.is_grad_enabled(),
        "type of new tensors": torch.get_default_dtype(),
        "errors of numpy": np.geterr(),
        "logging": (
            logger.level,
            list(logger.handlers),
            logger.propagate,
            logger.disabled,
            logging.root.manager.disable,
        ),
    }


def _has_children() -> bool:
    """Whether there is a process that this one has started and not waited for; those of multiprocessing stay."""
    return any(not _serves(child) for child in psutil.Process().children())


def _serves(child: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "from multiprocessing." in " ".join(child.cmdline())
    return False


def _environment() -> dict[str, str]:
    """The environment, without what pytest, and torch and scikit-learn on being imported, put there."""
    others = ("PYTEST_", "KMP_", "TORCHINDUCTOR_", "_TORCHINDUCTOR_")
    return {key: value for key, value in os.environ.items() if not key.startswith(others)}
