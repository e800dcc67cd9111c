"""scripts/soak.py: its network, its ledger, and a short run of all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.soak_ledger import Ledger  # noqa: E402
from scripts.bench.soak_network import Network, Rates  # noqa: E402
from scripts.bench_predict import METRICS, make_bundle  # noqa: E402
from scripts.soak import SMALL, slope  # noqa: E402

from netanomaly import Predictor, StreamingPredictor, load  # noqa: E402
from netanomaly.watch.counts import Counts  # noqa: E402
from netanomaly.watch.loop import watch  # noqa: E402

OFTEN = Rates(late=0.03, twice=0.03, ahead=0.01, jump=0.004, garbage=0.03, header=0.005)


class Lines:
    """Takes answers as JSON lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def take(self, answers: pd.DataFrame) -> None:
        self.lines += [json.dumps(row) for row in answers.to_dict("records")]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    directory = tmp_path_factory.mktemp("soak") / "bundle"
    make_bundle(directory, SMALL)
    return load(directory)


@pytest.fixture(scope="module")
def watched(quick: Predictor, tmp_path_factory: pytest.TempPathFactory) -> tuple[Network, list[str], Counts]:
    network = Network(25, METRICS, np.random.default_rng(1), OFTEN, sample_every=4)
    for link in network.links[:9]:
        link.ends //= 20  # some go
    path, sink = tmp_path_factory.mktemp("soak") / "links.csv", Lines()
    path.write_text(network.header + "".join(network.next_lines() for _ in range(70)), encoding="utf-8", newline="")
    stream = StreamingPredictor(quick, forget_after=10 * 10**9)
    return network, sink.lines, watch(stream, path, max_ahead=600 * 10**9, sinks=[sink])


def settled(quick: Predictor, network: Network, lines: list[str]) -> tuple[Ledger, int]:
    ledger = Ledger(network)
    ledger.read(lines)
    ledger.end_run()
    return ledger, ledger.settle(quick)


def test_every_row_of_a_network_that_misbehaves_is_answered_once_and_as_in_a_batch(
    quick: Predictor, watched: tuple[Network, list[str], Counts]
) -> None:
    network, lines, counts = watched
    ledger, compared = settled(quick, network, lines)
    assert not ledger.broken
    assert compared > 200 and len(lines) == network.owed_rows
    assert counts.left_out == network.left_out
    assert counts.lines == network.lines
    assert min(Counter(network.left_out).values()) > 0 and len(network.left_out) == 5
    assert counts.begun_again > 0


@pytest.mark.parametrize("what", ["lost", "twice", "invented", "wrong"])
def test_the_ledger_sees_what_is_wrong(quick: Predictor, watched: tuple[Network, list[str], Counts], what: str) -> None:
    network, lines, _ = watched
    place = next(n for n, line in enumerate(lines) if json.loads(line)["series"] in network.sampled)
    changed = list(lines)
    if what == "lost":
        del changed[place]
    elif what == "twice":
        changed.append(lines[place])
    else:
        answer = json.loads(lines[place])
        answer |= {"series": "nobody"} if what == "invented" else {"confidence": answer["confidence"] + 1e-3}
        changed[place] = json.dumps(answer)
    assert settled(quick, network, changed)[0].broken


def test_the_slope_is_that_of_a_line() -> None:
    points = [(rows, 100 + 3 * rows / 1e6) for rows in range(0, 10**6, 10**5)]
    steep, error = slope(points)
    assert abs(steep - 3) < 1e-9 and error < 1e-6


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_process_that_is_killed_again_and_again_loses_nothing() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "soak.py"), "--rows", "40000", "--series", "200", "--kills", "4"]
    done = subprocess.run([*command, "--state-every", "1s"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
