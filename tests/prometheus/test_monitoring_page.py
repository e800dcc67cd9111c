"""docs/monitoring.md: what it shows is valid."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from netanomaly import load_config

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PROMTOOL, AMTOOL = shutil.which("promtool"), shutil.which("amtool")


def block(word: str) -> str:
    (found,) = [text for text in BLOCKS if word in text]
    return str(found)


def test_the_rows_and_trackers_are_accepted_by_the_config() -> None:
    config = load_config({**yaml.safe_load(block("# links.yaml")), **yaml.safe_load(block("tensorboard:"))})
    assert config.data.series == ("instance", "ifName") and config.data.metrics[0].query == "rate(ifHCInOctets[2m])"
    assert config.tracking.mlflow is not None


def test_the_watcher_is_watched_before_its_first_row_too() -> None:
    """The time of the last row is missing until there is one: nothing can be compared with it."""
    (group,) = yaml.safe_load(block("# netanomaly.rules.yml"))["groups"]
    (rule,) = [rule for rule in group["rules"] if rule.get("alert") == "NetanomalyNoRows"]
    parts = [" ".join(part.split()) for part in re.split(r"\bor\b", rule["expr"])]
    assert '(up{job="netanomaly"} == 1 unless on(instance) netanomaly_last_row_timestamp_seconds)' in parts
    assert len(parts) == 3


@pytest.mark.slow
@pytest.mark.skipif(not PROMTOOL, reason="promtool is not installed")
def test_prometheus_takes_its_config_and_rules(tmp_path: Path) -> None:
    for name in ("prometheus.yml", "netanomaly.rules.yml"):
        (tmp_path / name).write_text(block(f"# {name}"), encoding="utf-8")
    subprocess.run([str(PROMTOOL), "check", "config", "prometheus.yml"], cwd=tmp_path, check=True)


@pytest.mark.slow
@pytest.mark.skipif(not AMTOOL, reason="amtool is not installed")
def test_alertmanager_takes_its_config(tmp_path: Path) -> None:
    (tmp_path / "alertmanager.yml").write_text(block("# alertmanager.yml"), encoding="utf-8")
    subprocess.run([str(AMTOOL), "check-config", "alertmanager.yml"], cwd=tmp_path, check=True)
