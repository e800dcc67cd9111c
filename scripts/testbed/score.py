"""Score a bundle on a run of the testbed, class by class, against chance.

    python scripts/testbed/score.py DIR [--bundle starter]

A class is above chance if both hold: the area under its ROC curve, its rows against all others, is above 0.5 by more
than chance (the lower end of a 95 % bootstrap interval); and its recall is larger than the share of all rows that are
given its name, which is what naming rows blindly would find. The bootstrap draws whole incidents, and normal
stretches between them, with replacement: rows of one incident are alike. Exit code 1 if a class is not above chance.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench.command import run_command

from netanomaly import load
from netanomaly.evaluation.tables import score, table

DRAWS = 500


@dataclass(frozen=True)
class ClassScores:
    """How well one class is told from the others."""

    label: str
    rows: int
    incidents: int
    prior: float
    """Share of rows that are of it."""
    named: float
    """Share of rows that are called so: the recall of naming blindly."""
    recall: float
    precision: float
    f1: float
    auroc: float
    low: float
    high: float
    """95 % of the bootstrap."""

    @property
    def above_chance(self) -> bool:
        """See the top of the file."""
        return self.low > 0.5 and self.recall > self.named


def stretches(series: NDArray[np.object_], labels: NDArray[np.object_]) -> NDArray[np.int64]:
    """A number for each run of rows of one series and label; rows in order of series and time. (N,)"""
    new = (series[1:] != series[:-1]) | (labels[1:] != labels[:-1])
    return np.concatenate([[0], np.cumsum(new)]).astype(np.int64)


def class_scores(
    label: str,
    truth: NDArray[np.object_],
    named: NDArray[np.object_],
    chances: NDArray[np.float64],
    parts: NDArray[np.int64],
) -> ClassScores:
    """Scores of one class.

    Args:
        truth: labels, (N,).
        named: the bundle's, (N,).
        chances: probability of the class, (N,).
        parts: of `stretches`, (N,).
    """
    of_it, called = truth == label, named == label
    draws = _bootstrap(of_it, chances, parts)
    low, high = np.quantile(draws, [0.025, 0.975])
    return ClassScores(
        label,
        int(of_it.sum()),
        len(np.unique(parts[of_it])),
        float(of_it.mean()),
        float(called.mean()),
        float(recall_score(of_it, called)),
        float(precision_score(of_it, called, zero_division=0.0)),
        float(f1_score(of_it, called)),
        float(roc_auc_score(of_it, chances)),
        float(low),
        float(high),
    )


def _bootstrap(of_it: NDArray[np.bool_], chances: NDArray[np.float64], parts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Areas under the ROC curve with stretches of the class, and of the others, drawn anew. (DRAWS,)"""
    rng, areas = np.random.default_rng(0), np.empty(DRAWS)
    own, other = np.unique(parts[of_it]), np.unique(parts[~of_it])
    for at in range(DRAWS):
        drawn = np.concatenate([rng.choice(own, len(own)), rng.choice(other, len(other))])
        weights = np.bincount(drawn, minlength=parts.max() + 1)[parts]
        kept = weights > 0
        areas[at] = roc_auc_score(of_it[kept], chances[kept], sample_weight=weights[kept])
    return areas


def main() -> None:
    """Label, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR", help="that run.py wrote")
    parser.add_argument("--bundle", default="starter", help="directory of a bundle; default: the one in the package")
    options = parser.parse_args()
    frame = pd.read_csv(options.directory / "data.csv", dtype={"series": str, "label": str})
    predictor = load(options.bundle)
    answers = predictor.predict(frame)
    chances = answers[[f"p_{name}" for name in predictor.classes]].to_numpy()
    named = np.array(predictor.classes, dtype=object)[chances.argmax(axis=1)]
    truth = frame["label"].to_numpy(dtype=object)
    parts = stretches(frame["series"].to_numpy(dtype=object), truth)
    found = [
        class_scores(name, truth, named, chances[:, at], parts)
        for at, name in enumerate(predictor.classes)
        if name in truth
    ]
    print("\n".join(as_lines(found)))
    mean_f1, accuracy = float(np.mean([one.f1 for one in found])), float((named == truth).mean())
    print(f"\nmacro-F1 {score(mean_f1)}, accuracy {score(accuracy)}")
    below = [one.label for one in found if not one.above_chance]
    print("not above chance: " + ", ".join(below) if below else "every class is above chance")
    if below:
        raise SystemExit(1)


def as_lines(found: list[ClassScores]) -> list[str]:
    """The scores as a table."""
    head = (
        "class",
        "rows",
        "stretches",
        "prior",
        "named",
        "recall",
        "precision",
        "F1",
        "AUROC",
        "95 %",
        "above chance",
    )
    rows = [
        (
            one.label,
            str(one.rows),
            str(one.incidents),
            *map(score, (one.prior, one.named, one.recall, one.precision, one.f1, one.auroc)),
            f"{one.low:.2f} to {one.high:.2f}",
            "yes" if one.above_chance else "no",
        )
        for one in found
    ]
    return table(head, rows)


if __name__ == "__main__":
    run_command(main)
