"""A bundle, and a network whose rows lie in a Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from servers import Server, of_frame, serving

from netanomaly.bundle import save_bundle
from networks import network
from streams import bundle


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a bundle that takes every value as it is."""
    directory = tmp_path_factory.mktemp("prometheus") / "run"
    save_bundle(directory, bundle(counter=False))
    return directory


@pytest.fixture(scope="session")
def rows() -> pd.DataFrame:
    """Three links, all of them at each second, without labels; a row without any value is none in Prometheus."""
    frame = network("abc", 120).drop(columns="label")
    return frame.dropna(subset=["rtt_ms", "throughput_bps", "loss_ratio"], how="all").sort_values(
        ["timestamp", "link"], ignore_index=True
    )


@pytest.fixture
def prometheus(rows: pd.DataFrame) -> Iterator[Server]:
    with serving(of_frame(rows)) as server:
        yield server
