"""What people install: complete, nothing else, and at work outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_the_wheel_builds_installs_and_labels_rows(tmp_path: Path) -> None:
    result = subprocess.run(
        ["sh", str(ROOT / "scripts" / "check_wheel.sh"), str(tmp_path)],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "the wheel, installed alone, labelled" in result.stdout
