"""scripts/testbed: what can be known without a network."""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.testbed import check, namespaces, score, visibility  # noqa: E402
from scripts.testbed.counters import RATES, parse_device, parse_snmp, rates, totals  # noqa: E402
from scripts.testbed.echoes import Echoes, train_rate_bps  # noqa: E402
from scripts.testbed.impairment import WORDS, Impairment, Lane  # noqa: E402
from scripts.testbed.limits import MAX_FAULT_PPS, MAX_LINK_BPS, check_options  # noqa: E402
from scripts.testbed.links import DOWN, draw_links  # noqa: E402
from scripts.testbed.randomness import draws  # noqa: E402
from scripts.testbed.relay import MAX_HELD, Relay  # noqa: E402
from scripts.testbed.rows import Row  # noqa: E402
from scripts.testbed.schedule import COOL_DOWN_S, LEAST_S, WARM_UP_S, plan  # noqa: E402
from scripts.testbed.severity import (  # noqa: E402
    FAULTS,
    BandwidthDrop,
    Congestion,
    DdosFlood,
    PacketLoss,
    PortScan,
)
from scripts.testbed.writing import METRICS, Incident, label_of, rfc3339, write_run  # noqa: E402

from netanomaly import load  # noqa: E402
from netanomaly.build import build_grid, build_input_format  # noqa: E402
from netanomaly.data.ingest import NO_PART, read_table  # noqa: E402
from netanomaly.errors import ConfigError  # noqa: E402

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


# ---- the plan


@given(seed=st.integers(0, 10**6), count=st.integers(2, 8), minutes=st.floats(4, 60), rounds=st.integers(1, 2))
@settings(max_examples=40)
def test_faults_never_overlap_and_every_class_has_its_rounds(
    seed: int, count: int, minutes: float, rounds: int
) -> None:
    links = draw_links(seed, count)
    try:
        faults = plan(links, minutes * 60, seed, rounds)
    except ValueError:
        assert minutes * 60 < WARM_UP_S + COOL_DOWN_S + 2 * LEAST_S * -(-rounds * 8 // count)
        return
    for label in FAULTS:
        assert sum(fault.label == label for fault in faults) >= rounds
    for link in links:
        own = [fault for fault in faults if fault.link == link.name]
        assert own[0].start_s >= WARM_UP_S + LEAST_S - 1e-6
        assert own[-1].end_s <= minutes * 60 - COOL_DOWN_S + 1e-6
        assert all(fault.end_s - fault.start_s >= LEAST_S - 1e-6 for fault in own)
        assert all(after.start_s - before.end_s >= LEAST_S - 1e-6 for before, after in pairwise(own))
    assert all(0 <= fault.severity <= 1 for fault in faults)
    assert len({fault.number for fault in faults}) == len(faults)


def test_severities_of_a_class_are_spread_and_not_below_the_least() -> None:
    faults = plan(draw_links(3, 8), 3600, 3, rounds=2, least_severity=0.5)
    for label in FAULTS:
        found = sorted(fault.severity for fault in faults if fault.label == label)
        edges = np.linspace(0.5, 1, len(found) + 1)
        assert all(low <= value <= high for value, low, high in zip(found, edges, edges[1:], strict=False))


def test_a_plan_follows_from_its_seed() -> None:
    links = draw_links(1, 4)
    assert draw_links(1, 4) == links != draw_links(2, 4)
    assert plan(links, 600, 1, rounds=2) == plan(links, 600, 1, rounds=2) != plan(links, 600, 2, rounds=2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="8 faults of at least 8 s do not fit into 110 s"):
        plan(draw_links(1, 1), 120, 1, rounds=1)


@given(seed=st.integers(0, 10**6), severity=st.floats(0, 1), label=st.sampled_from(list(FAULTS)))
def test_faults_stay_within_the_limits(seed: int, severity: float, label: str) -> None:
    (link,) = draw_links(seed, 1)
    assert max(link.rate_bps) <= MAX_LINK_BPS
    found = FAULTS[label](severity, link, draws(seed))
    match found:
        case Congestion():
            assert found.rate_bps / 8 / (found.packet_bytes + 28) <= MAX_FAULT_PPS + 1e-6
            assert 3 <= found.connections <= 16
        case DdosFlood() | PortScan():
            assert 15 <= found.packets_per_s <= MAX_FAULT_PPS
        case PacketLoss():
            assert 0.01 <= found.share <= 0.15 + 1e-9
        case BandwidthDrop():
            assert 0.1 - 1e-9 <= found.factor <= 0.65


@pytest.mark.parametrize(
    ("minutes", "links", "seed", "what"),
    [
        (61, 2, 1, "--minutes: 61"),
        (1, 2, 1, "--minutes: 1 "),
        (float("nan"), 2, 1, "--minutes: nan"),
        (10, 9, 1, "--links: 9"),
        (10, 0, 1, "--links: 0"),
        (10, 2, -1, "--seed: -1"),
    ],
)
def test_runs_beyond_the_limits_are_refused(minutes: float, links: int, seed: int, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        check_options(minutes, links, seed)


def test_the_command_says_what_is_wrong_in_a_line(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts/testbed/run.py"), "--minutes", "600", "--out", str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "run.py: --minutes: 600 is not between 2 and 60\n"
    assert not (tmp_path / "new").exists()


class _NoPrivilege:
    def unshare(self, _flags: int) -> int:
        return -1


def test_without_the_privilege_it_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_libc", _NoPrivilege)
    monkeypatch.setattr(namespaces.shutil, "which", lambda name: name)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(ConfigError, match=r"may not make network namespaces .* as root .*CAP_NET_ADMIN.*`unshare -Urn"):
        namespaces.leave_host()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ConfigError, match="needs Linux"):
        namespaces.leave_host()


# ---- the wire


def _lane(impairment: Impairment, seed: int = 0) -> Lane:
    lane = Lane(draws("lane", seed))
    lane.set(impairment)
    return lane


def test_a_constant_delay_is_exact() -> None:
    lane = _lane(Impairment(delay_ms=25))
    assert [lane.release(now) for now in (1.0, 1.5, 2.0)] == [1.025, 1.525, 2.025]


@given(seed=st.integers(0, 999), gaps=st.lists(st.floats(0, 0.01), min_size=2, max_size=60))
def test_jitter_keeps_the_order_and_reordering_does_not(seed: int, gaps: list[float]) -> None:
    times = np.cumsum(gaps).tolist()
    lane = _lane(Impairment(delay_ms=20, jitter_ms=15), seed)
    found = [lane.release(now) for now in times]
    assert found == sorted(found)
    assert all(leaves >= now + 50e-6 - 1e-12 for now, leaves in zip(times, found, strict=True))
    hasty = _lane(Impairment(delay_ms=20, reorder=1.0), seed)
    assert [hasty.release(now) for now in times] == [now + 0.01 for now in times]


def test_jitter_has_the_spread_and_the_memory_that_were_asked_for() -> None:
    lane = _lane(Impairment(delay_ms=100, jitter_ms=5, memory_ms=100))
    delays = np.array([lane.release(now) - now for now in np.arange(20000) * 0.05])
    assert delays.std() == pytest.approx(5e-3, rel=0.1)
    assert np.corrcoef(delays[1:], delays[:-1])[0, 1] == pytest.approx(np.exp(-0.5), abs=0.05)


@pytest.mark.parametrize("impairment", [Impairment(loss=0.1), Impairment(burst_loss=0.1, burst_packets=10)])
def test_as_much_is_lost_as_was_asked_for(impairment: Impairment) -> None:
    lane = _lane(impairment)
    lost = np.array([lane.release(now) is None for now in np.arange(60000) / 1000])
    assert lost.mean() == pytest.approx(0.1, abs=0.01)
    again = lost[1:][lost[:-1]].mean()  # chance that the packet after a lost one is lost, too
    assert again == pytest.approx(0.1 if impairment.loss else 0.7 * 0.9, abs=0.05)


def test_nothing_passes_an_outage_and_all_passes_a_healthy_wire() -> None:
    assert [_lane(Impairment(down=True)).release(now) for now in (0.0, 1.0)] == [None, None]
    assert _lane(Impairment()).release(3.0) == 3.0


def test_an_impairment_survives_as_numbers() -> None:
    found = Impairment(1, 2, 3, 0.4, 0.5, 6, 0.7, True)
    assert len(found.as_words()) == WORDS
    assert Impairment.from_words(found.as_words()) == found


def test_packets_leave_when_they_are_due() -> None:
    lanes = (_lane(Impairment(delay_ms=10)), _lane(Impairment(delay_ms=30)))
    relay, sent = Relay(lanes), []

    def send(direction: int, packet: bytes) -> None:
        sent.append((direction, packet))

    relay.accept(0, b"a", 1.0)
    relay.accept(1, b"b", 1.0)
    relay.accept(0, b"c", 1.001)
    assert relay.next_s(9.0) == pytest.approx(1.010)
    relay.send_due(1.009, send)
    assert sent == []
    relay.send_due(1.0105, send)
    assert sent == [(0, b"a")]
    assert relay.late_s == pytest.approx(0.0005)
    lanes[1].set(Impairment(down=True))
    relay.send_due(2.0, send)
    assert sent == [(0, b"a"), (0, b"c")]
    assert (relay.carried, relay.dropped) == (2, 1)
    assert relay.next_s(9.0) == 9.0


def test_a_wire_holds_only_so_many_packets() -> None:
    relay = Relay((_lane(Impairment(delay_ms=1000)), _lane(Impairment())))
    for _ in range(MAX_HELD + 5):
        relay.accept(0, b"", 0.0)
    assert relay.dropped == 5


@linux
def test_netem_is_told_the_same() -> None:
    from scripts.testbed.netem import netem_arguments

    text = " ".join(netem_arguments(Impairment(delay_ms=12.5, jitter_ms=2, loss=0.01)))
    assert text == "netem limit 8192 delay 12.500ms 2.000ms loss 1.000000% rate 10gbit"
    assert "loss 100%" in " ".join(netem_arguments(Impairment(down=True, burst_loss=0.1)))
    bursts = " ".join(netem_arguments(Impairment(burst_loss=0.07, burst_packets=10)))
    assert "loss gemodel 1.111111% 10.000000% 70.000000% 0.000000%" in bursts


# ---- what is measured

SNMP = "Tcp: ActiveOpens PassiveOpens RetransSegs OutRsts CurrEstab\nTcp: {} 2 3 4 5\n"
SNMP += "Udp: InDatagrams NoPorts InErrors\nUdp: 10 20 30\n"
DEV = "Inter-|   Receive |  Transmit\n face |bytes packets\n  wan0: {} 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n"


def test_totals_become_rates() -> None:
    def read(opened: int, received: int, drops: int) -> dict[str, float]:
        site = parse_snmp(SNMP.format(opened))
        return totals(parse_device(DEV.format(received), "wan0"), site, site, (0, drops))

    found = rates(read(1, 1000, 7), read(4, 2000, 5), 0.5)
    assert set(found) == set(RATES)
    assert found["throughput_rx_bps"] == 8 * 1000 / 0.5
    assert found["new_flows_per_s"] == 3 / 0.5
    assert found["udp_rx_per_s"] == 0
    assert found["queue_drops_per_s"] is None  # the counter began anew
    with pytest.raises(ValueError, match="no device wan9"):
        parse_device(DEV.format(1), "wan9")


def test_echoes_become_round_trips_jitter_and_loss() -> None:
    echoes = Echoes()
    for number, now in enumerate((10.0, 10.1, 10.2, 10.3)):
        echoes.sent(number, now)
    echoes.answered(0, 10.020)
    echoes.answered(1, 10.130)
    echoes.answered(1, 10.140)  # a duplicate
    found = echoes.metrics(10.5)
    assert found["rtt_ms"] == pytest.approx(25)
    assert found["rtt_max_ms"] == pytest.approx(30)
    assert found["jitter_ms"] == pytest.approx(10)
    assert found["loss_ratio"] is None  # none has timed out yet
    found = echoes.metrics(11.31)
    assert found["loss_ratio"] == 0.5
    assert found["rtt_ms"] is None
    assert echoes.metrics(12.5)["loss_ratio"] is None  # too long ago


@given(rate=st.floats(1e6, 45e6), used=st.floats(0.5, 1.2))
def test_a_train_tells_the_rate(rate: float, used: float) -> None:
    gap = 1400 * 8 / (rate * used)
    arrivals = [(number, max(0, number - 1) * gap) for number in range(8)]
    assert train_rate_bps(arrivals, rate) == pytest.approx(rate * used)
    assert train_rate_bps(arrivals[:4], rate) is None
    assert train_rate_bps([(number, number * gap / 9) for number in range(8)], rate) is None


def _row(series: str, due: float, value: float | None = 1.0) -> Row:
    return Row(series, due, due + 0.01, dict.fromkeys(METRICS, value), 1.5, None, 0.5)


def test_files_are_read_by_netanomaly(tmp_path: Path) -> None:
    links = draw_links(1, 2)
    fault = plan(links, 600, 1, rounds=2)[0]
    incidents = [Incident(fault, 1000.2, 1001.3)]
    rows = [
        _row(link.name, 1000 + at / 2, None if at == 3 else 1e6 + at) for at in range(6) for link in reversed(links)
    ]
    write_run(tmp_path, rows, incidents, {"seed": 1})
    with (tmp_path / "data.csv").open(encoding="utf-8") as file:
        header = next(csv.reader(file))
    bundled = pd.read_csv(ROOT / "data/testbed/data.csv.gz", nrows=1)
    assert header == list(bundled.columns)
    predictor = load("starter")
    table = read_table({tmp_path / "data.csv": NO_PART}, build_input_format(predictor.config.data))
    assert len(table.series) == 12
    labels = pd.read_csv(tmp_path / "data.csv")
    own = labels[labels["series"] == fault.link]["label"].tolist()
    assert own == ["normal", *[fault.label] * 3, "normal", "normal"]
    assert set(labels[labels["series"] != fault.link]["label"]) == {"normal"}
    assert len(build_grid(predictor.config, table).segments) == 2
    written = pd.read_csv(tmp_path / "incidents.csv")
    assert written["start"].tolist() == ["1970-01-01T00:16:40.200Z"]
    assert pd.read_csv(tmp_path / "quality.csv")["collector_lag_ms"].tolist() == [1.5] * 12


def test_a_row_carries_the_state_of_its_middle() -> None:
    fault = plan(draw_links(1, 2), 600, 1, rounds=2)[0]
    incidents = [Incident(fault, 10.0, 20.0)]
    assert label_of(fault.link, 10.25, incidents) == fault.label
    assert label_of(fault.link, 10.24, incidents) == "normal"
    assert label_of(fault.link, 20.25, incidents) == "normal"
    assert rfc3339(0.9996) == "1970-01-01T00:00:01.000Z"


# ---- what is said of a run


@given(
    these=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    those=st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_cliffs_delta_counts_pairs(these: list[int], those: list[int]) -> None:
    pairs = [np.sign(a - b) for a in these for b in those]
    found = visibility.cliffs_delta(np.array(these, float), np.array(those, float))
    assert found == pytest.approx(statistics.mean(float(pair) for pair in pairs))


def _run_frames(moved: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A minute of a link for each class; the fault moves what it should by so many standard deviations."""
    rng, rows, incidents = np.random.default_rng(0), [], []
    for at, (label, moves) in enumerate(visibility.EXPECTED.items()):
        times = pd.date_range("2026-01-01", periods=120, freq="500ms", tz="UTC")
        part = pd.DataFrame({name: rng.normal(100, 1, 120) for name in METRICS})
        for metric, sign in moves.items():
            part.loc[60:99, metric] += sign * moved
        part.insert(0, "series", f"t{at}")
        part.insert(1, "timestamp", [f"{time:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z" for time in times])
        part["label"] = ["normal"] * 60 + [label] * 40 + ["normal"] * 20
        rows.append(part)
        incidents.append((f"t{at}", part["timestamp"][60], part["timestamp"][100], label, 0.5))
    return pd.concat(rows, ignore_index=True), pd.DataFrame(
        incidents, columns=["series", "start", "end", "label", "severity"]
    )


def test_faults_that_show_are_seen_and_others_are_named() -> None:
    assert visibility.hidden(visibility.effects(*_run_frames(moved=3))) == {}
    rows, incidents = _run_frames(moved=-3)  # the wrong way
    assert set(visibility.hidden(visibility.effects(rows, incidents))) == set(FAULTS)
    found = visibility.hidden(visibility.effects(rows, incidents[incidents["label"] != "port_scan"]))
    assert found["port_scan"] == "no incident"


def test_check_ends_with_1_if_a_fault_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check.py", str(tmp_path)])
    for moved in (3.0, 0.0):
        rows, incidents = _run_frames(moved)
        rows.to_csv(tmp_path / "data.csv", index=False)
        incidents.to_csv(tmp_path / "incidents.csv", index=False)
        if moved:
            check.main()
            assert "every fault is visible" in capsys.readouterr().out
        else:
            with pytest.raises(SystemExit, match="1"):
                check.main()
            assert "not visible: bandwidth_drop (median effect" in capsys.readouterr().out


def test_scores_tell_what_is_above_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "DRAWS", 40)
    rng = np.random.default_rng(1)
    truth = np.array((["normal"] * 30 + ["port_scan"] * 20) * 6, dtype=object)
    series = np.repeat(np.array(["a", "b"], dtype=object), 150)
    parts = score.stretches(series, truth)
    assert len(np.unique(parts)) == 12
    good = score.class_scores("port_scan", truth, truth, (truth == "port_scan") + rng.normal(0, 0.2, 300), parts)
    assert good.above_chance
    assert (good.recall, good.incidents, good.named) == (1.0, 6, pytest.approx(0.4))
    blind = np.array(rng.permutation(truth), dtype=object)
    assert not score.class_scores("port_scan", truth, blind, rng.random(300), parts).above_chance


# ---- packets and processes


@linux
@given(data=st.binary(min_size=1, max_size=99))
def test_a_checksum_makes_the_sum_vanish(data: bytes) -> None:
    from scripts.testbed.attacks import checksum, echo_packet

    padded = data + b"\0" * (len(data) % 2)
    assert checksum(padded + checksum(padded).to_bytes(2, "big")) == 0
    assert checksum(echo_packet(1, 2, data)) == 0


@linux
def test_only_its_own_processes_are_ended() -> None:
    import time

    from scripts.testbed.processes import Children

    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    children = Children()
    try:
        children.start(time.sleep, 60, end_s=time.time() + 60, name="own")
        assert children.dead() is None
        children.end()
        assert all(not process.is_alive() for process in children._started)
        assert other.poll() is None
    finally:
        other.terminate()
        other.wait()


def test_the_draw_of_a_link_has_a_down_rate_from_the_range() -> None:
    for link in draw_links(5, 8):
        assert 8e6 <= link.rate_bps[DOWN] <= 40e6
