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
