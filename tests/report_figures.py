"""What figures a report has."""

from __future__ import annotations

import json
import re
from pathlib import Path


def figures(path: Path) -> set[str]:
    """The names of the figures in a report."""
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert found is not None
    return set(json.loads(found[1]))
