"""A bundle, and a network whose lines are watched."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from netanomaly import Predictor, load
from netanomaly.bundle import save_bundle
from streams import bundle, hard_network


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("watch") / "run"
    save_bundle(directory, bundle())
    return directory


@pytest.fixture(scope="session")
def plain(run: Path) -> Predictor:
    return load(run)


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return hard_network(40)


@pytest.fixture(scope="session")
def lines(frame: pd.DataFrame) -> list[str]:
    """The header and a line per row."""
    return str(frame.to_csv(index=False, lineterminator="\n")).splitlines(keepends=True)
