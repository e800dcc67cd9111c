"""Peers of the benchmark of quality that need scikit-learn and PyTorch alone, and the scripts that prepare its data."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from netanomaly.model.positions import sinusoidal_table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import prepare_kddi_ipcore, prepare_optical_failure, prepare_snmp_mib  # noqa: E402
from scripts.bench.peers_quality import PEERS, answer  # noqa: E402
from scripts.bench.quality_networks import EncoderNetwork, InceptionNetwork, sinusoids  # noqa: E402
from scripts.bench.quality_problem import TEST, TRAIN, VALIDATION, Problem, ProblemSegment  # noqa: E402
from scripts.bench.quality_run import PEERS as NAMES  # noqa: E402
from scripts.bench.quality_search import Peer, search  # noqa: E402
from scripts.bench.quality_training import network  # noqa: E402


def easy_problem(rows: int = 120) -> tuple[Problem, np.ndarray]:
    """A level tells the class; the truth of the test rows comes beside it."""
    rng = np.random.default_rng(0)
    segments, truths = [], []
    for part in (TRAIN, VALIDATION, TEST):
        truth = np.repeat(rng.permutation(np.arange(rows // 10) % 3), 10)
        values = 3.0 * truth[:, None] + rng.normal(scale=0.3, size=(rows, 2))
        values[rng.random((rows, 2)) < 0.05] = np.nan
        relative = {32: np.nan_to_num(values).astype(np.float32), 64: np.zeros((rows, 2), dtype=np.float32)}
        relative[256] = relative[64]
        targets = truth if part != TEST else np.full(rows, -1)
        parts, wanted = np.full(rows, part, dtype=np.int8), np.full(rows, part == TEST)
        segments.append(ProblemSegment(values, relative, targets.astype(np.int64), parts, wanted))
        truths.append(truth)
    return Problem(("normal", "a", "b"), tuple(segments)), truths[TEST]


def test_every_peer_of_the_table_has_a_worker() -> None:
    assert set(PEERS) == set(NAMES)


def test_an_answer_of_the_worker(tmp_path: Path) -> None:
    problem, truth = easy_problem()
    problem.save(tmp_path / "problem.npz")
    paths = {"problem": str(tmp_path / "problem.npz"), "out": str(tmp_path / "out.npz")}
    answer({**paths, "method": "logistic", "seed": 0, "budget": 60, "threads": 1})
    with np.load(tmp_path / "out.npz") as found:
        facts, probabilities = json.loads(str(found["facts"])), found["probabilities"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities.argmax(axis=1) == truth).mean() > 0.95
    assert facts["chosen"]["window"] == 4 and facts["training_windows"] == 120  # longer ones see the state before
    assert facts["scoring_seconds"] > 0 and facts["training_seconds"] > 0


@pytest.mark.parametrize("kind", ["inception", "encoder"])
def test_networks_learn_and_choose_the_channels_that_tell(kind: str) -> None:
    problem, truth = easy_problem()
    axes = {"network": (kind,), "view": ("relative",), "window": (4,), "baseline": (64, 32), "layers": (1,)}
    peer = Peer({**axes, "class_weight": ("balanced",)}, network, few=120, most=120)
    threads = torch.get_num_threads()
    try:
        chosen = search(peer, problem, 0, budget=100, threads=1)
    finally:
        torch.set_num_threads(threads)
    assert chosen.facts["chosen"]["baseline"] == 32
    assert (chosen.scorer(problem.wanted()).argmax(axis=1) == truth).mean() > 0.8


def test_a_network_out_of_time_answers_with_what_it_has() -> None:
    problem, _ = easy_problem(30)
    settings = {"network": ("encoder",), "view": ("levels",), "window": (4,), "baseline": (32,), "layers": (1,)}
    peer = Peer({**settings, "class_weight": (None,)}, network, few=30, most=30)
    chosen = search(peer, problem, 0, budget=0, threads=torch.get_num_threads())
    assert chosen.facts["out_of_time"] and chosen.facts["epochs"] == 0
    assert chosen.scorer(problem.wanted()).shape == (30, 3)


def test_networks_by_their_papers() -> None:
    inception = InceptionNetwork(5, 3)
    kernels = [layer.weight.shape[2] for layer in inception.blocks[0].kernels]
    assert kernels == [39, 19, 9] and len(inception.blocks) == 6 and len(inception.shortcuts) == 2
    windows = torch.randn(4, 5, 16)
    assert inception(windows).shape == (4, 3)
    encoder = EncoderNetwork(5, 3, window=16, layers=1).eval()
    torch.testing.assert_close(sinusoids(16, 64), sinusoidal_table(16, 64))
    turned = torch.cat([windows[:, :, :-1].flip(2), windows[:, :, -1:]], dim=2)  # the newest row, which asks, stays
    assert not torch.allclose(encoder(windows), encoder(turned))  # positions matter


def test_optical_lines_become_rows() -> None:
    devices = [
        ("SPO1/18/11", "1e-8,30,,"),
        ("SPO2/18/11", "0,20,,"),
        *((f"Ampli{n}", ",,-20,0.5") for n in (1, 2, 3, 4)),
    ]
    lines = [
        f"{time},Type,{name},{cells},{fails}"
        for time, fails in ((100, ""), (102, ""), (105, 1))
        for name, cells in devices
    ]
    lines += ["103,Type,SPO1/18/11,1e-4,31,,,", "107,Type,Ampli1,,,-21,0.5,"]
    text = "\n".join(["Timestamp,Type,ID,BER,OSNR,InputPower,OutputPower,Failure", *lines])
    rows = prepare_optical_failure.tidy(pd.read_csv(io.StringIO(text)), "hard")
    assert rows["timestamp"].tolist() == [100, 104] and rows["label"].tolist() == ["normal", "hard_failure"]
    assert rows["spo1_log10_ber"].tolist() == [-4, -8] and rows["spo2_log10_ber"].tolist() == [-12, -12]
    assert rows["spo1_osnr_db"].tolist() == [31, 30] and rows["ampli1_in_power_dbm"].tolist() == [-20, -21]


def test_snmp_totals_become_counts() -> None:
    totals = pd.DataFrame({"ifInOctets11": [2**32 - 5, 10, 3], "ifoutDiscards11": [0, 1, 1], "tcpCurrEstab": [4, 5, 6]})
    rows = prepare_snmp_mib.tidy(totals, "normal_s1", "normal")
    assert rows["if_in_octets_delta"].tolist()[0] == 15 and np.isnan(rows["if_in_octets_delta"].tolist()[1])
    assert rows["ifout_discards_delta"].tolist() == [1, 0] and rows["tcp_curr_estab_count"].tolist() == [5, 6]
    assert rows["timestamp"].tolist() == [15, 30]


def test_kddi_tables_become_rows(tmp_path: Path) -> None:
    (tmp_path / "stable").mkdir()
    for kind, name in prepare_kddi_ipcore.TABLES.items():
        directory = tmp_path / "stable" if kind == "in_pps" else tmp_path
        minutes = ["20200629105400"] if kind == "in_pps" else ["20200629105400", "20200629105300"]
        table = "\n".join(f"{i}\t{i}.0\t{minute}" for i, minute in enumerate(minutes))
        (directory / name).write_text(f"\tTR-01+link-a-1\ttimestamp\n{table}\n")
    (tmp_path / "label.tsv").write_text("\tstatus\ttimestamp\n0\t5.0\t20200629105400\n")
    rows = prepare_kddi_ipcore.tidy(tmp_path, "learning")
    assert rows["timestamp"].tolist() == [1593395580, 1593395640]  # 10:53 in Japan is 01:53 UTC
    assert rows["label"].tolist() == ["", "packet_loss"]
    assert rows["tx_pps__tr_01_link_a_1"].tolist() == [1, 0]
    assert rows["in_pps__tr_01_link_a_1"].isna().tolist() == [True, False]
