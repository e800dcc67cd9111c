"""Networks that nobody has seen, made from the bundled testbed: other lengths of faults, rates, gaps, metrics.

Each is a directory with data.csv.gz and split.csv like the testbed's own; the same seed writes the same rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SEED = 0
NORMAL = "normal"
SHORT, LONG = 5, 2_000
"""Rows of a fault in `testbed_short` and `testbed_day`."""
LAG = 4
"""Rows of a fault before its effect shows for sure: two seconds."""
BLOCK = 8
"""Rows of a fault that stay together where it is stretched."""
REMOVED = 0.3
"""Share of the rows that `testbed_missing` lacks."""
RARE = 0.01
"""Share of anomalies in `testbed_rare`."""
FASTER = 10
_RATES = ("throughput", "bandwidth", "packets", "queue_", "udp_", "retransmits")

Rows = NDArray[np.int64]
Order = Callable[[pd.DataFrame, np.random.Generator], Rows]


def make_variant(name: str, testbed: Path, directory: Path) -> Path:
    """The directory with the variant, written anew.

    Args:
        testbed: holds the bundled data.csv.gz and split.csv.
    """
    directory.mkdir(parents=True, exist_ok=True)
    split = pd.read_csv(testbed / "split.csv", dtype=str)
    frame = pd.read_csv(testbed / "data.csv.gz").sort_values(["series", "timestamp"], ignore_index=True)
    made = VARIANTS[name](frame, dict(zip(split["series"], split["split"], strict=True)))
    with tempfile.TemporaryDirectory(dir=directory) as unfinished:  # another run may be reading the files
        for file, table in (("data.csv.gz", made), ("split.csv", split)):
            part = Path(unfinished) / file
            packed = {"method": "gzip", "mtime": 0} if file.endswith(".gz") else None
            table.to_csv(part, index=False, compression=packed)
            part.replace(directory / file)
    return directory


def incidents(labels: NDArray[np.object_]) -> list[Rows]:
    """The rows of every fault of one series, in order of time: runs of one label that is not normal."""
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    runs = np.split(np.arange(len(labels)), starts[1:])
    return [run for run in runs if labels[run[0]] != NORMAL]


def short(frame: pd.DataFrame, parts: dict[str, str]) -> pd.DataFrame:
    """Five rows of each fault, as soon as its effect shows; the others are cut out."""

    def order(series: pd.DataFrame, rng: np.random.Generator) -> Rows:
        labels = series["label"].to_numpy(dtype=object)
        kept = [np.flatnonzero(labels == NORMAL), *(_after_lag(rows, SHORT) for rows in incidents(labels))]
        return np.sort(np.concatenate(kept))

    return _reordered(frame, order)


def day(frame: pd.DataFrame, parts: dict[str, str]) -> pd.DataFrame:
    """One fault of each class and link, of 2,000 rows: blocks of its rows drawn again and again; the others are cut."""

    def order(series: pd.DataFrame, rng: np.random.Generator) -> Rows:
        labels = series["label"].to_numpy(dtype=object)
        longest: dict[str, Rows] = {}
        for rows in incidents(labels):
            if len(rows) > len(longest.get(labels[rows[0]], ())):
                longest[labels[rows[0]]] = rows
        pieces = {int(row): np.array([row]) for row in np.flatnonzero(labels == NORMAL)}
        pieces |= {int(rows[0]): _stretched(rows, rng) for rows in longest.values()}
        return np.concatenate([pieces[start] for start in sorted(pieces)])

    return _reordered(frame, order)


def two_metrics(frame: pd.DataFrame, parts: dict[str, str]) -> pd.DataFrame:
    """Round trip and throughput, no more."""
    return frame[["series", "timestamp", "throughput_rx_bps", "rtt_ms", "label"]]


def fast(frame: pd.DataFrame, parts: dict[str, str]) -> pd.DataFrame:
    """Links of the test part are ten times as fast: so are rates and queues, in bytes and packets."""
    test = frame["series"].map(parts).eq("test")
    rates = [column for column in frame.columns if column.startswith(_RATES)]
    made = frame.astype(dict.fromkeys(rates, float))
    made.loc[test, rates] *= FASTER
    return made


def missing(frame: pd.DataFrame, parts: dict[str, str]) -> pd.DataFrame:
    """Three rows in ten are not there."""
    return frame[np.random.default_rng(SEED).random(len(frame)) >= REMOVED]


def rare(frame: pd.DataFrame, parts: dict[str, str]) -> pd.DataFrame:
    """One row in a hundred of each part is of a fault, of every class about as many; other faults are cut out."""
    of_part = frame["series"].map(parts)
    rng = np.random.default_rng(SEED)
    kept = (frame["label"] == NORMAL).to_numpy(copy=True)
    for part in sorted(of_part.unique()):
        rows = np.flatnonzero(of_part == part)
        budget = int(kept[rows].sum()) * RARE / (1 - RARE)
        kept[_thinned(frame, rows, budget, rng)] = True
    order_of = {name: np.flatnonzero(kept[rows]) for name, rows in frame.groupby("series").indices.items()}
    return _reordered(frame, lambda series, _: order_of[series["series"].iloc[0]])


def _thinned(frame: pd.DataFrame, rows: Rows, budget: float, rng: np.random.Generator) -> Rows:
    """Rows of faults, `budget` in all: of each class as many, from as few faults as it takes."""
    faults: dict[str, list[Rows]] = {}
    for _, series in frame.iloc[rows].groupby("series"):
        labels = series["label"].to_numpy(dtype=object)
        for found in incidents(labels):
            faults.setdefault(labels[found[0]], []).append(series.index.to_numpy()[found])
    each = max(1, round(budget / len(faults)))
    chosen: list[Rows] = []
    for name in sorted(faults):
        left = each
        for number in rng.permutation(len(faults[name])):
            some = _after_lag(faults[name][number], left)
            chosen.append(some)
            left -= len(some)
            if left <= 0:
                break
    return np.concatenate(chosen)


def _after_lag(rows: Rows, most: int) -> Rows:
    """At most so many rows of a fault, in a row, from where its effect shows if that leaves enough of them."""
    start = min(LAG, max(0, len(rows) - most))
    return rows[start : start + most]


def _stretched(rows: Rows, rng: np.random.Generator) -> Rows:
    """A fault of `LONG` rows: its first ones, then blocks of what follows them."""
    first, later = rows[:LAG], rows[LAG:] if len(rows) > LAG else rows
    blocks = -(-LONG // BLOCK)
    starts = rng.integers(max(1, len(later) - BLOCK + 1), size=blocks)
    drawn = np.minimum(starts[:, None] + np.arange(BLOCK), len(later) - 1).ravel()
    return np.concatenate([first, later[drawn]])[:LONG]


def _reordered(frame: pd.DataFrame, order: Order) -> pd.DataFrame:
    """Each series in another order of its rows, at the usual step and without gaps."""
    rng = np.random.default_rng(SEED)
    pieces = []
    for _, series in frame.groupby("series", sort=True):
        times = pd.to_datetime(series["timestamp"])
        step = times.diff().median()
        made = series.iloc[order(series, rng)].copy()
        made["timestamp"] = pd.date_range(times.iloc[0], periods=len(made), freq=step).map(pd.Timestamp.isoformat)
        pieces.append(made)
    return pd.concat(pieces, ignore_index=True)


VARIANTS: dict[str, Callable[[pd.DataFrame, dict[str, str]], pd.DataFrame]] = {
    "testbed_short": short,
    "testbed_day": day,
    "testbed_2metrics": two_metrics,
    "testbed_fast": fast,
    "testbed_missing": missing,
    "testbed_rare": rare,
}
