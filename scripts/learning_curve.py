"""How many labelled incidents a new network takes: training from a bundle beside training from random weights.

    python scripts/learning_curve.py --out runs/learning_curve.json
    python scripts/learning_curve.py --counts 1 4 --seeds 0 --rate 5e-4        # one rate: nothing is chosen

The bundled testbed plays both networks. A bundle is trained on two of its links, a01 and a02. The pool of links a03 to
a06 is the new network: of each class of incident a few are drawn by the seed, and only their rows are labelled, and
the normal rows between each and the incident before it; all other rows of the pool are without a label. From these
rows one classifier is trained from the bundle (`training.init_from`), another one from random weights, and a third one
from random weights and the rows of both networks, for those who still have the old ones. All name every row of links
a07 and a08, whose labels are read for the score alone: the mean F1 of the nine classes. With no incident at all the
bundle answers as it is, and beside it stands the answer `normal` to every row.

Learning rates for the start from the bundle (--rate, several) are compared before that, within the pool: incidents are
drawn from a03 to a05, and all rows of a06 judge; the rate with the best mean over counts and seeds is taken. Random
weights keep the default's rate. No member sees the levels, and epochs are as many as the default has, so that nothing
else is chosen; the validation part that training asks for is the last fifth of a01 and a02.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402
from scripts.bench.quality_data import CONFIGS, NORMAL, TESTBED  # noqa: E402

from netanomaly import Predictor, keep_freed_memory, load, train  # noqa: E402
from netanomaly.evaluation.metrics import macro_f1  # noqa: E402

KNOWN, POOL, JUDGES = ("a01", "a02"), ("a03", "a04", "a05", "a06"), ("a07", "a08")
HELD_OUT = "a06"
"""The link of the pool that learning rates are judged on."""
FROM_BUNDLE, FROM_SCRATCH, FROM_BOTH = "from the bundle", "from random weights", "from random weights, both networks"
Scores = dict[str, list[float]]
"""For each way to train the macro-F1, seed by seed."""
Rates = dict[float, dict[int, list[float]]]
"""For each learning rate and number of incidents the macro-F1, seed by seed."""


@dataclass(frozen=True)
class Lab:
    """What all trainings share.

    Attributes:
        frame: the rows of all links, in order of time within each.
        work: where runs are written.
        changes: to the defaults, for all of them.
    """

    frame: pd.DataFrame
    work: Path
    changes: tuple[str, ...]

    def of(self, links: Sequence[str]) -> pd.DataFrame:
        """The rows of some links."""
        return self.frame[self.frame["series"].isin(links)]

    def train(self, name: str, training: pd.DataFrame, seed: int, *changes: str) -> Predictor:
        """Train on some rows, with the last fifth of the known links as validation part."""
        frames = {"train": training, "validation": known_network(self.frame)[1]}
        own = (f"run_dir={json.dumps(str(self.work / name))}", f"seed={seed}")
        return train(CONFIGS / f"{TESTBED}.yaml", frames, overrides=[*self.changes, *own, *changes], overwrite=True)

    def start(self, seed: int) -> Path:
        """The bundle of a seed, trained on the known network when it is first asked for."""
        directory = self.work / f"start{seed}"
        if not directory.exists():
            self.train(directory.name, known_network(self.frame)[0], seed)
        return directory

    def adapted(self, training: pd.DataFrame, seed: int, rate: float) -> Predictor:
        """A training from the bundle of the seed."""
        start = f"training.init_from={json.dumps(str(self.start(seed)))}"
        return self.train("adapted", training, seed, start, f"training.learning_rate={rate}")


def main() -> None:
    """Train, print, and write the results."""
    options = _options()
    logging.disable(logging.WARNING)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as work:
        lab = Lab(
            read_testbed(), Path(work), (f"model.members={options.members}", "channels.levels=hidden", "threads=1")
        )
        by_rate = {} if len(options.rate) == 1 else compare_rates(lab, options.rate, options.counts, options.seeds)
        rate = best_rate(by_rate) if by_rate else options.rate[0]
        curve = {count: point(lab, count, options.seeds, rate) for count in options.counts}
    if by_rate:
        print(as_table_of_rates(by_rate) + "\n")
    print(as_table(curve, rate))
    if options.out is not None:
        found = {
            "counts": {str(count): scores for count, scores in curve.items()},
            "rate": rate,
            "rates": {f"{one:g}": scores for one, scores in by_rate.items()},  # by number of incidents
            "seeds": options.seeds,
            "members": options.members,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="+", type=int, default=[0, 1, 2, 4, 8], help="labelled incidents per class")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--members", type=int, default=1, help="members of each classifier (default %(default)s)")
    parser.add_argument("--rate", nargs="+", type=float, default=[2e-3, 6e-4, 2e-4, 6e-5], help="to choose from")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    if min(options.counts) < 0:
        parser.error("--counts: numbers from 0 on")
    return options


def read_testbed() -> pd.DataFrame:
    """The rows of the bundled testbed, in order of time within each link."""
    frame = pd.read_csv(ROOT / "data" / "testbed" / "data.csv.gz", dtype={"label": object})
    return frame.sort_values(["series", "timestamp"], ignore_index=True)


def known_network(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the known links to train with, and the last fifth to validate with."""
    rows = frame[frame["series"].isin(KNOWN)]
    is_late = rows.groupby("series").cumcount() >= 0.8 * rows.groupby("series")["series"].transform("size")
    return rows[~is_late], rows[is_late]


def incident_numbers(frame: pd.DataFrame) -> pd.Series[int]:
    """For each row the number of the incident that it is of, or if it is normal of the one that follows on its link.

    An incident is a longest run of rows of a link with one label that is not normal. Normal rows that none follows
    have the number -1.
    """
    label, link = frame["label"], frame["series"]
    ends = (label != NORMAL) & ((label != label.shift(-1)) | (link != link.shift(-1)))
    number = ends.cumsum() - ends.astype(int)  # how many have ended before the row
    follows = ends[::-1].groupby(link).cummax()[::-1]
    return number.where(follows, -1)


def draw(frame: pd.DataFrame, count: int, seed: int) -> pd.DataFrame:
    """The rows with the labels of `count` incidents of each class and of the normal rows before each; no others.

    Raises:
        SystemExit: a class has fewer incidents.
    """
    number = incident_numbers(frame)
    classes = frame[frame["label"] != NORMAL].groupby(number)["label"].first()
    rng = np.random.default_rng(seed)
    drawn: list[int] = []
    for name in sorted(classes.unique()):
        known = classes.index[classes == name].to_numpy()
        if len(known) < count:
            raise SystemExit(f"learning_curve.py: {count} incidents of {name} are asked for, the pool has {len(known)}")
        drawn += rng.permutation(known)[:count].tolist()  # with more of them come all that fewer had
    return frame.assign(label=frame["label"].where(number.isin(drawn), None))


def score(predictor: Predictor, rows: pd.DataFrame) -> float:
    """Macro-F1 on all rows."""
    predicted = predictor.predict(rows.drop(columns="label"))["label"]
    return macro_f1(rows["label"].to_numpy(dtype=object), predicted.to_numpy(dtype=object))


def compare_rates(lab: Lab, rates: Sequence[float], counts: Sequence[int], seeds: Sequence[int]) -> Rates:
    """Macro-F1 on the pool's held-out link, for every count that the pool's other links have enough incidents for.

    Raises:
        SystemExit: there is no such count.
    """
    others, judge = lab.of([link for link in POOL if link != HELD_OUT]), lab.of([HELD_OUT])
    classes = others[others["label"] != NORMAL].groupby(incident_numbers(others))["label"].first()
    most = int(classes.value_counts().min())
    possible = [count for count in counts if 0 < count <= most]
    if not possible:
        raise SystemExit(
            f"learning_curve.py: rates are compared with 1 to {most} incidents; give one --rate, or --counts"
        )
    found: Rates = {}
    for rate in rates:
        for count in possible:
            scores = [score(lab.adapted(draw(others, count, seed), seed, rate), judge) for seed in seeds]
            found.setdefault(rate, {})[count] = scores
            print(f"rate {rate:g}, {count} incidents, on {HELD_OUT}: {_mean(scores)}", file=sys.stderr)
    return found


def best_rate(found: Rates) -> float:
    """The rate with the best mean of counts and seeds."""
    return max(found, key=lambda rate: statistics.mean(statistics.mean(scores) for scores in found[rate].values()))


def point(lab: Lab, count: int, seeds: Sequence[int], rate: float) -> Scores:
    """A point of the curve: what training from so many incidents of each class comes to on links that only judge."""
    judges, scores = lab.of(JUDGES), Scores()
    for seed in seeds:
        started = time.perf_counter()
        if count == 0:
            truth = judges["label"].to_numpy(dtype=object)
            found = {
                FROM_BUNDLE: score(load(lab.start(seed)), judges),
                FROM_SCRATCH: macro_f1(truth, np.full(len(truth), NORMAL, dtype=object)),
            }
        else:
            rows = draw(lab.of(POOL), count, seed)
            both = pd.concat([known_network(lab.frame)[0], rows])
            found = {
                FROM_BUNDLE: score(lab.adapted(rows, seed, rate), judges),
                FROM_SCRATCH: score(lab.train("scratch", rows, seed), judges),
                FROM_BOTH: score(lab.train("both", both, seed), judges),
            }
        for name, value in found.items():
            scores.setdefault(name, []).append(value)
        told = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        print(f"{count} incidents, seed {seed}: {told} ({time.perf_counter() - started:.0f} s)", file=sys.stderr)
    return scores


def as_table_of_rates(found: Rates) -> str:
    """Rates in rows, counts in columns."""
    counts = list(next(iter(found.values())))
    lines = [
        f"| learning rate, judged on {HELD_OUT} | {' | '.join(map(str, counts))} |",
        f"| --- |{' --- |' * len(counts)}",
    ]
    for rate, scores in found.items():
        lines.append(f"| {rate:g} | {' | '.join(_mean(scores[count]) for count in counts)} |")
    return "\n".join(lines)


def as_table(curve: dict[int, Scores], rate: float) -> str:
    """Counts in rows, ways to train in columns; mean and standard deviation of the seeds."""
    lines = [
        f"| labelled incidents per class | {FROM_BUNDLE} (rate {rate:g}) | {FROM_SCRATCH} | {FROM_BOTH} |",
        "| --- | --- | --- | --- |",
    ]
    for count, scores in curve.items():
        if count == 0:
            lines.append(f"| 0 | {_mean(scores[FROM_BUNDLE])} | {_mean(scores[FROM_SCRATCH])} (always `normal`) | |")
        else:
            cells = [_mean(scores[name]) for name in (FROM_BUNDLE, FROM_SCRATCH, FROM_BOTH)]
            lines.append(f"| {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(scores: Sequence[float]) -> str:
    """Mean and standard deviation."""
    spread = f" ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.3f}{spread}"


if __name__ == "__main__":
    run_command(main)
