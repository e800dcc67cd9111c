"""Is a fault of a class that training never had called unknown? Every class of the testbed is left out in turn.

    python scripts/bench_unknown.py --out runs/bench_unknown.json                # the score of the package
    python scripts/bench_unknown.py --scores all --out runs/bench_unknown.json   # others beside it
    python scripts/bench_unknown.py --split development --scores all             # test links are not used

The rows of one class lose their label in the training and validation part, so that they are context only, and a model
is trained as by default, but that no member sees the levels, which halves the time.
Then the score of every labelled row of the links that judge says how unknown it looks: rows of the class that was left
out should have the highest ones. The limit of the package's score is its own (no series of training and validation,
seen from the others, has a larger share of its rows above it), that of others the score that a share of the validation
rows is above.

AUROC           chance that a row of the left-out class scores higher than a row of a known one
recall          share of the rows of the left-out class above the limit
incidents       share of its incidents that have most rows above the limit
false           share of the rows of known classes above the limit, on the links that judge
f1 after        macro-F1 of all labelled rows of these links, rows above the limit named as the left-out class
known f1 after  the same without the rows of that class: what limits cost where nothing new happens

Trained bundles are kept in --work and used again.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402
from scripts.bench.unknown_scores import SCORES, SHIPPED, Rows, known_rows, read  # noqa: E402

from netanomaly import Predictor, keep_freed_memory, load  # noqa: E402
from netanomaly.build import threads  # noqa: E402
from netanomaly.bundle import load_bundle, save_bundle  # noqa: E402
from netanomaly.config import load_config  # noqa: E402
from netanomaly.data.batches import IGNORED, channel_segment  # noqa: E402
from netanomaly.data.ingest import UNLABELLED  # noqa: E402
from netanomaly.data.splits import TEST, TRAIN, VALIDATION  # noqa: E402
from netanomaly.deciding import limited  # noqa: E402
from netanomaly.evaluation.metrics import macro_f1  # noqa: E402
from netanomaly.prepare import Prepared, prepare  # noqa: E402
from netanomaly.run import fit_bundle  # noqa: E402

SPLITS = {
    "test": (["a01", "a02", "a03", "a04", "a05"], ["a06"], ["a07", "a08"]),
    "development": (["a01", "a02", "a03"], ["a04"], ["a05", "a06"]),
}
"""Links that train, choose and judge. The score was chosen on `development`."""
NORMAL = "normal"
Result = dict[str, float]
Labels = NDArray[np.object_]


def main() -> None:
    """Train, score, print, and write the results."""
    options = _options()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    keep_freed_memory()
    frame = pd.read_csv(ROOT / "data" / "testbed" / "data.csv.gz", dtype={"label": object})
    classes = sorted(set(frame["label"].dropna()) - {NORMAL})
    if unknown := sorted(set(options.classes or ()) - set(classes)):
        raise SystemExit(f"bench_unknown.py: --classes {' '.join(unknown)}: there are {', '.join(classes)}")
    names = list(SCORES) if options.scores == ["all"] else options.scores
    found: dict[str, dict[str, Result]] = {name: {} for name in names}
    for left_out in options.classes or classes:
        started = time.perf_counter()
        predictor, prepared = trained_without(left_out, frame, options.split, options.work)
        truth = prepare(prepared.config, _of_split(frame, options.split))
        rows = _read(predictor, prepared)
        judged = judged_rows(predictor, truth, rows, left_out)
        for name in names:
            scores = SCORES[name](predictor, rows)
            joined = np.concatenate([own[one.segment.valid] for own, one in zip(scores, rows, strict=True)])
            limits = None
            if name == SHIPPED:  # the package's own rule, which looks at every series apart
                known = known_rows(predictor, [one.segment for one in rows])
                bundle = load_bundle(options.work / options.split / left_out)
                limits = {share: limited(known, bundle, prepared, share).limit for share in options.shares}
            found[name][left_out] = judge(judged, joined, left_out, options.shares, limits)
        print(f"{left_out}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    cost = cost_of_scoring(predictor, rows)
    print(as_table(found, options.shares))
    print(f"\nThe score takes {cost:.1%} of the time of the classifier on the same channels.")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        told = {"split": options.split, "scores": found, "cost": cost}
        options.out.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", nargs="+", metavar="NAME", help="to leave out; default: all but the normal one")
    parser.add_argument(
        "--scores", nargs="+", default=[SHIPPED], choices=(*SCORES, "all"), metavar="NAME", help=f"{', '.join(SCORES)}"
    )
    parser.add_argument("--split", choices=SPLITS, default="test", help="which links judge (default %(default)s)")
    parser.add_argument(
        "--shares",
        nargs="+",
        type=float,
        default=[0.05, 0.02, 0.01],
        help="of validation rows above the limit (default 0.05 0.02 0.01)",
    )
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "bench_unknown", metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    if not all(0 < share < 1 for share in options.shares):
        parser.error("--shares: numbers between 0 and 1")
    if "all" in options.scores and len(options.scores) > 1:
        parser.error("--scores: all, or names")
    return options


def trained_without(left_out: str, frame: pd.DataFrame, split: str, work: Path) -> tuple[Predictor, Prepared]:
    """A bundle that was trained without the labels of a class, from `work` if it is there, and what it learnt from."""
    training, validation, judges = SPLITS[split]
    rows = _of_split(frame, split)
    hidden = (rows["label"] == left_out) & ~rows["series"].isin(judges)
    parts = {"train": training, "validation": validation, "test": judges}
    config = load_config(
        ROOT / "configs" / "quickstart.yaml",
        [
            f"data.split={json.dumps({'by': 'series', **parts})}",
            "channels.levels=hidden",
            "threads=1",
            f"data.root={json.dumps(str(ROOT))}",
        ],
    )
    prepared = prepare(config, rows.assign(label=rows["label"].mask(hidden, None)))
    directory = work / split / left_out
    if not (directory / "manifest.json").exists():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "log.jsonl").write_text("", encoding="utf-8")
        with threads(config):
            bundle, _ = fit_bundle(prepared, torch.device("cpu"), directory / "log.jsonl")
        save_bundle(directory, bundle)
    return load(directory, "cpu"), prepared


def _of_split(frame: pd.DataFrame, split: str) -> pd.DataFrame:
    return frame[frame["series"].isin([link for links in SPLITS[split] for link in links])]


def _read(predictor: Predictor, prepared: Prepared) -> list[Rows]:
    """All segments, with targets at training rows."""
    number = {name: i for i, name in enumerate(predictor.classes)}
    rows = []
    for segment, wanted in zip(prepared.grid.segments, prepared.labelled(TRAIN), strict=True):
        targets = np.array([number.get(name, IGNORED) for name in segment.labels], dtype=np.int64)
        given = channel_segment(segment, predictor.channels, np.where(wanted, targets, IGNORED))
        rows.append(read(predictor, given))
    return rows


@dataclass(frozen=True)
class Judged:
    """All rows in which anything was measured, segment after segment.

    Attributes:
        part, label, named: what a row is for, what it is, what the model calls it. (rows,)
        places: incident of the left-out class that a row of the judging links is of, else -1. (rows,)
    """

    part: NDArray[np.int8]
    label: Labels
    named: Labels
    places: NDArray[np.int64]


def judged_rows(predictor: Predictor, truth: Prepared, rows: Sequence[Rows], left_out: str) -> Judged:
    """The rows with the labels of `truth`."""
    segments, parts = truth.grid.segments, truth.split.parts
    names, valid = np.array(predictor.classes, dtype=object), np.concatenate([s.valid for s in segments])
    labels, part = np.concatenate([s.labels for s in segments]), np.concatenate(parts)
    first = np.concatenate([np.arange(len(s)) == 0 for s in segments])
    is_new = (labels == left_out) & (part == TEST)
    begins = is_new & (first | ~np.concatenate([[False], is_new[:-1]]))
    named = np.concatenate([names[row.answer.argmax(axis=1)] for row in rows])
    places = np.where(is_new, begins.cumsum() - 1, -1)
    return Judged(part[valid], labels[valid], named[valid], places[valid])


def judge(
    rows: Judged,
    scores: NDArray[np.float64],
    left_out: str,
    shares: Sequence[float],
    limits: Mapping[float, float] | None = None,
) -> Result:
    """What the scores of the rows come to, see above; `limits` by share: default, those of the validation rows."""
    is_held = (rows.part == VALIDATION) & (rows.label != UNLABELLED) & (rows.label != left_out)
    is_test = (rows.part == TEST) & (rows.label != UNLABELLED)
    truth, named, values, places = rows.label[is_test], rows.named[is_test], scores[is_test], rows.places[is_test]
    is_new = truth == left_out
    result = {
        "auroc": float(roc_auc_score(is_new, values)),
        "f1 before": macro_f1(truth, named),
        "known f1 before": macro_f1(truth[~is_new], named[~is_new]),
    }
    for share in shares:
        above = values > (np.quantile(scores[is_held], 1 - share) if limits is None else limits[share])
        called = np.where(above, left_out, named)
        most = pd.Series(above[is_new]).groupby(places[is_new]).mean() > 0.5
        result |= {
            f"recall at {share:g}": float(above[is_new].mean()),
            f"incidents at {share:g}": float(most.mean()),
            f"false at {share:g}": float(above[~is_new].mean()),
            f"f1 after at {share:g}": macro_f1(truth, called),
            f"known f1 after at {share:g}": macro_f1(truth[~is_new], called[~is_new]),
        }
    return result


def cost_of_scoring(predictor: Predictor, rows: Sequence[Rows]) -> float:
    """Time of the package's score against that of the classifier alone, on the same channels: the best of three."""
    inputs = [replace(one.segment, targets=np.where(one.segment.valid, 0, IGNORED)) for one in rows]
    known = known_rows(predictor, [one.segment for one in rows])

    def best(work: Callable[[], object]) -> float:
        taken = []
        for _ in range(3):
            started = time.process_time()
            work()
            taken.append(time.process_time() - started)
        return min(taken)

    alone = best(lambda: predictor.score(inputs))
    return best(lambda: [known.score(one.channels, one.valid) for one in inputs]) / alone


def as_table(found: Mapping[str, Mapping[str, Result]], shares: Sequence[float]) -> str:
    """AUROC of every score and class, and what limits come to in the mean."""
    classes = list(next(iter(found.values())))
    lines = [f"| AUROC | {' | '.join(classes)} | mean |", f"| --- |{' --- |' * (len(classes) + 1)}"]
    for name, results in found.items():
        values = [results[one]["auroc"] for one in classes]
        lines.append(f"| {name} | {' | '.join(f'{value:.3f}' for value in (*values, statistics.mean(values)))} |")
    columns = ("recall", "incidents", "false", "f1 after", "known f1 after")
    lines += [f"\n| mean of the classes | share | {' | '.join(columns)} |", f"| --- | --- |{' --- |' * len(columns)}"]
    for name, results in found.items():
        before = [statistics.mean(results[one][key] for one in classes) for key in ("f1 before", "known f1 before")]
        lines.append(f"| {name} | none | 0.000 | 0.000 | 0.000 | {before[0]:.3f} | {before[1]:.3f} |")
        for share in shares:
            means = [statistics.mean(results[one][f"{key} at {share:g}"] for one in classes) for key in columns]
            lines.append(f"| {name} | {share:g} | {' | '.join(f'{value:.3f}' for value in means)} |")
    per_class = [f"recall at {shares[0]:g}", f"incidents at {shares[0]:g}", f"false at {shares[0]:g}"]
    first = next(iter(found))
    lines += [f"\n| {first} | {' | '.join(classes)} |", f"| --- |{' --- |' * len(classes)}"]
    for key in per_class:
        lines.append(f"| {key} | {' | '.join(f'{found[first][one][key]:.3f}' for one in classes)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run_command(main)
