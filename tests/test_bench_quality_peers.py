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

from scripts import (  # noqa: E402
    prepare_cisco_bgpclear,
    prepare_kddi_ipcore,
    prepare_optical_failure,
    prepare_snmp_mib,
)
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


@pytest.mark.parametrize("kind", [pytest.param("inception", marks=pytest.mark.slow), "encoder"])
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


def router_table(**columns: list[float]) -> pd.DataFrame:
    """Three rows of a router's file: all that belongs to the router itself, and the given columns of interfaces."""
    of_router = (*prepare_cisco_bgpclear.NODE_TOTALS.values(), *prepare_cisco_bgpclear.NODE_LEVELS.values())
    values = {"": [0, 1, 2], "time": [1501867181.0, 1501867186.0, 1501867190.0], **dict.fromkeys(of_router, 7)}
    places = {name.replace("_", "/", 3).replace("_", "-"): cells for name, cells in columns.items()}
    return pd.DataFrame({**values, **places})


def test_cisco_interfaces_become_one_row() -> None:
    table = router_table(
        HundredGigE0_0_0_1output_packet_rate=[0, 999, 5000],
        HundredGigE0_0_0_12output_packet_rate=[9000.0, 8000.0, 8500.0],
        HundredGigE0_0_0_1peak_output_packet_rate=[10**6, 10**6, 10**6],
        HundredGigE0_0_0_1packets_sent=[1e12, 1e12 + 5, 1e12 + 4],
        HundredGigE0_0_0_12packets_sent=[10, 20, 40],
    )
    table["vrf__update-messages-received"] = [7005, 7173, 7262]
    events = pd.DataFrame({"Start": [1501867100, 1501867190], "End": [1501867185, 1501867200], "Event": "clearBGP"})
    rows = prepare_cisco_bgpclear.tidy(table, events, "bgpclear_second__leaf3")
    assert rows.shape == (2, 3 + 45) and set(rows["series"]) == {"bgpclear_second__leaf3"}
    assert rows["timestamp"].tolist() == [1501867186, 1501867190] and rows["label"].tolist() == ["normal", "bgp_clear"]
    assert rows["out_pps_sum"].tolist() == [8999, 13500] and rows["out_pps_max"].tolist() == [8000, 8500]
    assert rows["active_interfaces"].tolist() == [1, 2]
    assert rows["out_pps_change_max"].tolist() == [999, 4001] and rows["out_pps_change_min"].tolist() == [-1000, 500]
    assert rows["tx_packets_delta_sum"].tolist() == [15, 20]  # a total that falls counts as nothing
    assert rows["bgp_updates_received_delta"].tolist() == [168, 89] and rows["paths"].tolist() == [7, 7]
    assert rows[["in_pps_sum", "in_pps_max", "rx_bytes_delta_sum"]].isna().all(axis=None)
    lacking = prepare_cisco_bgpclear.tidy(router_table(), events, "leaf7")
    assert lacking[["active_interfaces", "out_pps_change_min", "tx_packets_delta_sum"]].isna().all(axis=None)
    assert lacking.drop(columns=["series", "label"]).dtypes.map(pd.api.types.is_numeric_dtype).all()


def test_cisco_clone_becomes_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, made = tmp_path / "clone", tmp_path / "made"
    (clone / "Data" / "DatasetByNodes").mkdir(parents=True)
    (clone / "GrounTruth").mkdir()
    for run, nodes in prepare_cisco_bgpclear.RUNS.items():
        kind = "portflap" if run.startswith("portflap") else "clearBGP"
        events = f"Node,Host,Start,End,Event,Type\nleaf1,None,1501867190,1501867411,{kind},single\n"
        if run != "bgpclear_first":
            (clone / "GrounTruth" / f"{run}.txt").write_text(events)
        for node in nodes:
            table = router_table(HundredGigE0_0_0_1packets_sent=[1, 2, 4])
            table.to_csv(clone / "Data" / "DatasetByNodes" / f"{node}{run}.csv", index=False)
    monkeypatch.setattr(sys, "argv", ["prepare_cisco_bgpclear", str(clone), str(made)])
    prepare_cisco_bgpclear.main()
    rows, split = pd.read_csv(made / "data.csv.gz"), pd.read_csv(made / "split.csv")
    assert len(rows) == 2 * 34 and set(rows["series"]) == set(split["series"])
    labels = rows.groupby(rows["series"].str.split("__").str[0])["label"].agg(list)
    assert set(labels["bgpclear_first"]) == {"normal"}  # its events are of other times
    assert labels["portflap_first"][:2] == ["normal", "port_flap"]
    assert labels["bgpclear_no_traffic_2hourRun"] == ["normal", "bgp_clear"]
    assert split["split"].value_counts().to_dict() == {"train": 23, "val": 22, "test": 22}
    first = prepare_cisco_bgpclear.read_events(clone, "bgpclear_first")
    assert len(first) == 7 and (first["End"] > first["Start"]).all()
