"""Check that each fault of a run is visible in the metrics.

    python scripts/testbed/check.py DIR

Each incident is compared with the normal rows of its link within a minute of it, in the metrics that its fault should
move, by Cliff's delta: from -1 to 1, it knows only which value is larger. Exit code 1 if a class has no incident, or if
the median over its incidents is less than 0.33.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench.command import run_command
from scripts.testbed.visibility import VISIBLE, effects, hidden

from netanomaly.evaluation.tables import table


def main() -> None:
    """Read, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR", help="that run.py wrote")
    directory = parser.parse_args().directory
    incidents = pd.read_csv(directory / "incidents.csv")
    found = effects(pd.read_csv(directory / "data.csv"), incidents)
    lines = [
        (
            one.label,
            one.series,
            f"{one.severity:.2f}",
            one.metric,
            f"{one.usual:.4g}",
            f"{one.during:.4g}",
            f"{one.size:.2f}",
        )
        for one in sorted(found, key=lambda one: (one.label, one.severity))
    ]
    print("\n".join(table(("fault", "link", "severity", "metric", "usual", "during", "effect"), lines)))
    if why := hidden(found):
        print("\nnot visible: " + "; ".join(f"{label} ({reason})" for label, reason in why.items()))
        raise SystemExit(1)
    print(f"\nevery fault is visible: the median effect of each class is at least {VISIBLE}")


if __name__ == "__main__":
    run_command(main)
