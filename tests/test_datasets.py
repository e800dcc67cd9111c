"""Public data sets, for those who have them: `sh scripts/test.sh --slow --data-root DIR`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netanomaly.cli import main

ROOT = Path(__file__).parents[1]


@pytest.mark.data
@pytest.mark.slow
def test_kddi_ipcore_is_judged_on_the_evaluation_week(data_root: Path, tmp_path: Path) -> None:
    config = ROOT / "configs" / "kddi_ipcore.yaml"
    assert main(["train", str(config), "--data-root", str(data_root), "--run-dir", str(tmp_path), "--quiet"]) == 0
    report = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    assert list(report["per_series"]) == ["evaluation"] and len(report["per_class"]) == 7
    assert report["macro_f1"] >= 0.80
