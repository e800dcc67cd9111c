"""How well `netanomaly audit` finds labels that were made wrong on purpose, on the bundled testbed.

    python scripts/bench_audit.py --out runs/bench_audit.json

Of the incidents of the links outside the test part some get another name, some become normal rows, and some begin ten
rows earlier or later than they did; the rest stay. Of every kind it says how many of the first n findings of that kind
are among the n that were made.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402

from netanomaly import keep_freed_memory  # noqa: E402
from netanomaly.audit.cross_fit import cross_fit  # noqa: E402
from netanomaly.audit.findings import LABEL, MISSING, ONSET, Finding, find  # noqa: E402
from netanomaly.config import load_config  # noqa: E402
from netanomaly.prepare import prepare  # noqa: E402

CONFIG, DATA = ROOT / "configs" / "quickstart.yaml", ROOT / "data" / "testbed" / "data.csv.gz"
SHIFT_ROWS = 10
SHORTEST = 8
"""Rows of an incident that may be spoilt, at least."""
TEST, NORMAL = ("a07", "a08"), "normal"

Labels = NDArray[np.object_]
Made = dict[str, list[tuple[str, int, int]]]
"""By kind, the series and first and last time (ns) of what was spoilt."""


def main() -> None:
    """Spoil labels, audit them, print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=8, metavar="N", help="labels of each kind to spoil (default: 8)")
    parser.add_argument("--folds", type=int, default=3, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="A.B=VALUE", help="change a key of the config")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    keep_freed_memory()
    frame = pd.read_csv(DATA)
    spoilt, made = spoil(frame, options.each, np.random.default_rng(options.seed))
    config = load_config(CONFIG, [f"seed={options.seed}", *options.set])
    found = find(cross_fit(prepare(config, spoilt), options.folds, torch.device("cpu")))
    incidents = len(_incidents(frame["label"].to_numpy(dtype=object), frame["series"].to_numpy(dtype=object)))
    result = {
        kind: {"made": len(made[kind]), "told": sum(one.kind == kind for one in found), **_hits(found, made, kind)}
        for kind in (LABEL, MISSING, ONSET)
    }
    print(f"{incidents} incidents outside the test part, {options.each} of each kind spoilt")
    for kind, entry in result.items():
        print(f"{kind}: {entry['hits']} of the {entry['made']} are among the first {entry['made']} of {entry['told']}")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"incidents": incidents, **result}, indent=2) + "\n", encoding="utf-8")


def spoil(frame: pd.DataFrame, each: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Made]:
    """The frame with some labels made wrong, and what was spoilt."""
    labels, series = frame["label"].to_numpy(dtype=object).copy(), frame["series"].to_numpy(dtype=object)
    incidents = _incidents(labels, series)
    chosen = rng.choice(len(incidents), size=3 * each, replace=False)
    kinds = (LABEL, MISSING, ONSET)
    names = sorted(set(labels) - {NORMAL})
    times = pd.to_datetime(frame["timestamp"]).dt.as_unit("ns").astype("int64").to_numpy()
    made: Made = {kind: [] for kind in kinds}
    for place, number in enumerate(chosen):
        rows, kind, label = incidents[number], kinds[place % 3], labels[incidents[number][0]]
        if kind == LABEL:
            labels[rows] = rng.choice([name for name in names if name != label])
        elif kind == MISSING:
            labels[rows] = NORMAL
        elif place % 2:  # begins later
            labels[rows[: min(SHIFT_ROWS, len(rows) // 2)]] = NORMAL
        else:
            labels[_calm_before(labels, series, rows[0])] = label
        made[kind].append((str(series[rows[0]]), int(times[rows[0]]), int(times[rows[-1]])))
    return frame.assign(label=labels), made


def _calm_before(labels: Labels, series: Labels, first: int) -> NDArray[np.int64]:
    """Up to `SHIFT_ROWS` normal rows of the series right before a row."""
    earlier = np.flatnonzero(series[:first] == series[first])[-SHIFT_ROWS:]
    stops = np.flatnonzero(labels[earlier] != NORMAL)
    return earlier[stops[-1] + 1 :] if len(stops) else earlier


def _incidents(labels: Labels, series: Labels) -> list[NDArray[np.int64]]:
    """Row numbers of each incident of the links outside the test part; the rows of a link are in order of time."""
    found: list[NDArray[np.int64]] = []
    for name in sorted(set(series) - set(TEST)):
        rows = np.flatnonzero(series == name)
        starts = np.flatnonzero(np.r_[True, labels[rows][1:] != labels[rows][:-1]])
        found += [run for run in np.split(rows, starts[1:]) if labels[run[0]] != NORMAL and len(run) >= SHORTEST]
    return found


def _hits(found: list[Finding], made: Made, kind: str) -> dict[str, Any]:
    """How many of those made are met by the first as many findings of their kind."""
    first = [one for one in found if one.kind == kind][: len(made[kind])]
    met = [
        any(one.series == series and one.start <= last and one.last >= start for one in first)
        for series, start, last in made[kind]
    ]
    return {"hits": sum(met)}


if __name__ == "__main__":
    run_command(main)
