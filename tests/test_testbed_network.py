"""scripts/testbed on real namespaces, for some seconds; skipped where they may not be made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
ONE_FAULT = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from scripts.testbed.campaign import run_campaign
from scripts.testbed.links import draw_links
from scripts.testbed.schedule import Fault
from scripts.testbed.severity import LatencySpike
from scripts.testbed.writing import write_run

if __name__ == "__main__":
    links = draw_links(1, 1)
    what = LatencySpike("step", 150.0, 0.0, 100.0, 0.0, (0, 1))
    found = run_campaign(links, [Fault(0, "t01", "latency_spike", 10.0, 16.0, 0.9, what)], 18, 1)
    write_run(Path({out!r}), found.rows, found.incidents, found.about)
"""


def _may() -> bool:
    if sys.platform != "linux" or not Path("/dev/net/tun").exists():
        return False
    tried = "unshare -n tc qdisc add dev lo root tbf rate 1mbit burst 3000 limit 9000"
    return subprocess.run(["sh", "-c", tried], capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _may(), reason="needs Linux, the right to make network namespaces, TUN and sch_tbf"),
]


def _host() -> str:
    """Interfaces, routes and namespaces of the host, without what changes by itself."""
    commands = (["ip", "-o", "link"], ["ip", "route"], ["ip", "netns", "list"], ["sysctl", "net.ipv4.ip_forward"])
    return "\n".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands)


def _descendants(process: int) -> set[int]:
    """Processes below one."""
    found: set[int] = set()
    for line in subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        child, parent = map(int, line.split())
        if parent == process:
            found |= {child} | _descendants(child)
    return found


def test_a_fault_on_a_real_link_is_measured_and_the_host_stays_as_it_was(tmp_path: Path) -> None:
    script, before = tmp_path / "one_fault.py", _host()
    script.write_text(ONE_FAULT.format(root=str(ROOT), out=str(tmp_path)), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert _host() == before
    rows = pd.read_csv(tmp_path / "data.csv")
    assert len(rows) > 20
    health, fault = (rows[rows["label"] == label] for label in ("normal", "latency_spike"))
    assert len(fault) > 6
    rtt_ms = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["links"][0]["rtt_ms"]
    # the least: queues may be full at times; and probes that left before the fault are still coming in its first second
    assert health["rtt_ms"].min() == pytest.approx(rtt_ms, rel=0.2)
    assert fault["rtt_ms"][2:].min() == pytest.approx(rtt_ms + 150, rel=0.2)
    assert rows["throughput_rx_bps"].sum() > 0
    assert pd.read_csv(tmp_path / "quality.csv")["collector_lag_ms"].notna().all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    before, out = _host(), tmp_path / "run"
    command = [sys.executable, str(ROOT / "scripts/testbed/run.py"), "--smoke", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "2 links are up" in process.stdout.readline()
    time.sleep(10)
    below = _descendants(process.pid)
    assert len(below) >= 4  # two wires, traffic, faults
    process.send_signal(number)
    process.communicate(timeout=60)
    until = time.monotonic() + 20
    while (left := {one for one in below if os.path.exists(f"/proc/{one}")}) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left
    assert _host() == before
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert len(pd.read_csv(out / "data.csv")) > 0
