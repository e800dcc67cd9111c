"""Recipes compared on rows to train and validate with: where the defaults come from. No test row is read.

    python scripts/research.py --topics encoder                                 # the bundled testbed
    python scripts/research.py --data-root DIR --topics levels spans            # the public data sets as well
    python scripts/research.py --data-root DIR --set "quick=training.min_steps=100" --out runs/research.json

Each variant is a name and changes to the defaults. It is trained on some of the training and validation rows of a data
set and scored on the rest, fold after fold: on the testbed, whose links are alike, every link but those of the test
part is held out in turn; elsewhere the validation part is held out, and where that is of other sessions than the
training part, the two change places as well. The figure is the mean macro-F1 of folds and seeds; of a difference
between two variants a standard error is given. No variant chooses anything on what is held out, but for `best epoch`.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402
from scripts.bench.quality_data import PUBLIC, TESTBED, folds  # noqa: E402
from scripts.bench.quality_variants import VARIANTS  # noqa: E402

from netanomaly import keep_freed_memory  # noqa: E402
from netanomaly.build import threads  # noqa: E402
from netanomaly.config import Config, SplitByTable, load_config  # noqa: E402
from netanomaly.data.ingest import NO_PART, UNLABELLED  # noqa: E402
from netanomaly.data.purge import Split, split_report  # noqa: E402
from netanomaly.data.splits import TEST  # noqa: E402
from netanomaly.prepare import Prepared, prepare  # noqa: E402
from netanomaly.run import fit_bundle  # noqa: E402

TURNED = ("cisco_bgpclear", "snmp_mib")
"""Data sets whose training and validation parts are other sessions: each is as hard to tell from the other."""
BOTH, SEEN = "channels.levels=both", "channels.levels=seen"
ONE = ("model.members=1", "channels.levels=hidden")
"""Where the question is another, one member answers it as well as several, and faster."""
TOPICS: dict[str, dict[str, tuple[str, ...]]] = {
    "encoder": {
        "default": ONE,
        "no row layer": (*ONE, "model.row_layer=false"),
        "width 128": (*ONE, "model.width=128"),
        "depth 2": (*ONE, "model.sequence_model.depth=2"),
        "no feed-forward": (*ONE, "model.sequence_model.feed_forward=none"),
        "stem 3": (*ONE, "model.stem=3"),
    },
    "levels": {
        "hidden": ("model.members=1", "channels.levels=hidden"),
        "log_level seen": ("model.members=1", "channels.levels=seen"),
        "level seen": (
            "model.members=1",
            "channels.levels=seen",
            "channels.kinds=[deviation, log_ratio, spread, change, missing, level]",
        ),
        "both": ("model.members=1", BOTH),
        "log_level alone": (
            "model.members=1",
            "channels.levels=seen",
            "channels.kinds=[log_level, change, missing]",
        ),
    },
    "channels": {
        "default": ONE,
        "no spread": (*ONE, "channels.kinds=[deviation, log_ratio, change, missing, log_level]"),
        "no log_ratio": (*ONE, "channels.kinds=[deviation, spread, change, missing, log_level]"),
        "no change": (*ONE, "channels.kinds=[deviation, log_ratio, spread, missing, log_level]"),
    },
    "spans": {
        "auto": ONE,
        "window 32": (*ONE, "model.window=32"),
        "window 128": (*ONE, "model.window=128"),
        "window 8": (*ONE, "model.window=8", "model.stem=4"),
        "window 2": (*ONE, "model.window=2", "model.stem=1"),
        "baseline 64": (*ONE, "channels.baselines=64"),
        "baseline 256": (*ONE, "channels.baselines=256"),
        "baseline 1024": (*ONE, "channels.baselines=1024"),
        "baselines 64, 256": (*ONE, "channels.baselines=[64, 256]"),
    },
    "training": {
        "default": ONE,
        "600 steps": (*ONE, "training.min_steps=600"),
        "best epoch": (*ONE, "training.patience=1000"),
        "dropout 0.5": (*ONE, "model.dropout=0.5"),
        "jitter 0": (*ONE, "training.jitter=0"),
        "jitter 0.3": (*ONE, "training.jitter=0.3"),
        "weights none": (*ONE, "training.class_weights=none"),
        "weights sqrt": (*ONE, "training.class_weights=sqrt"),
        "label smoothing 0": (*ONE, "training.label_smoothing=0"),
        "rate 1e-3": (*ONE, "training.learning_rate=1e-3"),
        "rate 4e-3": (*ONE, "training.learning_rate=4e-3"),
    },
    "members": {
        "1": (SEEN, "model.members=1"),
        "3, one window": (SEEN, "model.members=3", "model.short_windows=[]"),
        "3, windows 8 and 2": (SEEN, "model.members=3", "model.short_windows=[8, 2]"),
        "3, windows 16 and 4": (SEEN, "model.members=3", "model.short_windows=[16, 4]"),
    },
}


def main() -> None:
    """Compare, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--topics",
        nargs="*",
        default=[],
        choices=TOPICS,
        metavar="NAME",
        help=f"of {', '.join(TOPICS)}; without --topics and --set: all, which takes hours",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=KEY=VALUE[;KEY=VALUE]", help="a variant")
    parser.add_argument("--datasets", nargs="+", choices=(TESTBED, *PUBLIC, *VARIANTS), metavar="NAME")
    parser.add_argument("--data-root", type=Path, metavar="DIR", help=f"holds {', '.join(PUBLIC)}; see data/README.md")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], help="default: 0 1")
    parser.add_argument("--folds", type=int, default=None, metavar="N", help="the first N only; default: all")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    if options.data_root is None and (needed := sorted(set(options.datasets or ()) & set(PUBLIC))):
        parser.error(f"{', '.join(needed)}: not bundled; --data-root DIR says where they are (see data/README.md)")
    names = options.datasets or [TESTBED, *(PUBLIC if options.data_root is not None else ())]
    logging.disable(logging.WARNING)
    keep_freed_memory()
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for topic, variants in _wanted(options.topics, options.set):
        for dataset in names:
            for name, changes in variants.items():
                started = time.perf_counter()
                scores = [
                    score
                    for seed in options.seeds
                    for score in compare(dataset, options.data_root, changes, seed, options.folds)
                ]
                found.setdefault(topic, {}).setdefault(name, {})[dataset] = scores
                took = time.perf_counter() - started
                print(f"{topic}, {name}, {dataset}: {statistics.mean(scores):.4f} ({took:.0f} s)", file=sys.stderr)
        print(as_table(topic, found[topic], names))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def compare(
    dataset: str, data_root: Path | None, changes: tuple[str, ...], seed: int, most: int | None = None
) -> list[float]:
    """The macro-F1 of a variant on what is held out, fold by fold; of the first folds, if there is a `most`."""
    (config,) = folds(dataset, data_root, ROOT / "runs" / "research")
    changed = load_config(config, [*changes, f"seed={seed}", "threads=1"])
    with tempfile.TemporaryDirectory() as name, threads(changed):
        scores = []
        for prepared in islice(development_folds(changed, dataset, Path(name)), most):
            _, outcome = fit_bundle(prepared, torch.device("cpu"), Path(name) / "log.jsonl")
            scores.append(outcome.validation_macro_f1)
    return scores


def development_folds(config: Config, dataset: str, work: Path) -> Iterator[Prepared]:
    """The rows of a data set that recipes may be chosen with, split anew: what is held out is `VALIDATION`.

    Args:
        work: directory for the split tables.
    """
    given = pd.read_csv(Path(config.data.root) / cast("SplitByTable", config.data.split).path, dtype=str)
    for number, table in enumerate(_tables(given, dataset)):
        path = work / f"split_{number}.csv"
        table.to_csv(path, index=False)
        yield without_test(prepare(load_config(config, [f"data.split.path={json.dumps(str(path))}"])))


def _tables(given: pd.DataFrame, dataset: str) -> Iterator[pd.DataFrame]:
    """Split tables: series, t_start, t_end, split. What is to test stays so in all of them."""
    open_rows = given["split"] != "test"
    if dataset == TESTBED:
        for link in given["series"][open_rows]:
            yield given.assign(
                split=given["split"].where(~open_rows, np.where(given["series"] == link, "val", "train"))
            )
        return
    yield given
    if dataset in TURNED:
        yield given.assign(split=given["split"].replace({"train": "val", "val": "train"}))


def without_test(prepared: Prepared) -> Prepared:
    """The same without what the test rows hold: no values, no labels, no part."""
    segments = tuple(
        replace(
            segment,
            values=np.where(test[:, None], np.nan, segment.values),
            labels=np.where(test, UNLABELLED, segment.labels),
        )
        for segment, test in zip(prepared.grid.segments, (parts == TEST for parts in prepared.split.parts), strict=True)
    )
    parts = tuple(np.where(parts == TEST, NO_PART, parts).astype(np.int8) for parts in prepared.split.parts)
    grid = replace(prepared.grid, segments=segments)
    split = Split(parts, prepared.split.purged, prepared.split.unused)
    return replace(prepared, grid=grid, split=split, report=split_report(grid, split, prepared.history_rows))


def _wanted(topics: list[str], given: list[str]) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    for topic in topics or ([] if given else list(TOPICS)):
        yield topic, TOPICS[topic]
    if given:
        parted = (text.partition("=") for text in given)
        yield "given", {"default": (BOTH,), **{name: (BOTH, *changes.split(";")) for name, _, changes in parted}}


def as_table(topic: str, found: dict[str, dict[str, list[float]]], datasets: list[str]) -> str:
    """Variants in rows, data sets in columns; after each figure the difference to the first row, and its error."""
    first = next(iter(found.values()))
    lines = [f"\n| {topic} | {' | '.join(datasets)} |", f"| --- |{' --- |' * len(datasets)}"]
    for name, scores in found.items():
        cells = []
        for dataset in datasets:
            apart = [one - other for one, other in zip(scores[dataset], first[dataset], strict=True)]
            error = statistics.stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else math.nan
            difference = "" if scores is first else f" ({statistics.mean(apart):+.3f} ± {error:.3f})"
            cells.append(f"{statistics.mean(scores[dataset]):.3f}{difference}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run_command(main)
