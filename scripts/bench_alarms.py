"""Alarms and calibration on the two links of the testbed that training has not seen.

    python scripts/bench_alarms.py --out runs/bench_alarms.json

A bundle is trained for each seed as `configs/quickstart.yaml` says. Its rule for alarms is chosen on the validation
link with each aim in turn, and scored on the test links: what an engineer would get. Beside it stands what the best
common threshold would give there with no more false alarms than the aim (to 5 %: the test links have 0.99 hours), read
off the test rows themselves: how good the probabilities are, however well thresholds are chosen. One false alarm per
link and hour is 24 per series and day.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402

from netanomaly import Predictor, keep_freed_memory, load, train  # noqa: E402
from netanomaly.alarms.matching import alarm_scores  # noqa: E402
from netanomaly.alarms.raising import AlarmCollector  # noqa: E402
from netanomaly.alarms.rule import AlarmRule  # noqa: E402
from netanomaly.alarms.tuning import THRESHOLDS, tune  # noqa: E402
from netanomaly.config import load_config  # noqa: E402
from netanomaly.data.ingest import UNLABELLED  # noqa: E402
from netanomaly.data.splits import TEST, VALIDATION  # noqa: E402
from netanomaly.evaluation.reliability import reliability  # noqa: E402
from netanomaly.evaluation.rows import Answers, ScoredRows  # noqa: E402
from netanomaly.evaluation.tables import amount, score, table  # noqa: E402
from netanomaly.prepare import Prepared, prepare  # noqa: E402
from netanomaly.scoring import scored_rows  # noqa: E402

CONFIG = ROOT / "configs" / "quickstart.yaml"
SLACK = 1.05
HOURLY = 24.0
"""False alarms per series and day: one per link and hour."""
AIMS: dict[str, float | None] = {"best F1": None, "one an hour": HOURLY, "none at all": 0.0}
KEYS = ("recall", "precision", "delay_median_s", "delay_p90_s", "false_alarms_per_series_day")

Part = tuple[ScoredRows, NDArray[np.float64]]
"""Labelled rows and their class probabilities, (rows, K)."""


def main() -> None:
    """Train where there is no bundle, tune, score, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "bench_alarms", metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    keep_freed_memory()
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in options.seeds:
        for name, scores in measure(trained(options.work / str(seed), seed)):
            found.setdefault(name, []).append(scores)
    print("\n".join(as_lines(found)))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def trained(directory: Path, seed: int) -> Predictor:
    """The bundle in a directory, trained now if there is none."""
    if not (directory / "manifest.json").exists():
        changes = [f"seed={seed}", "threads=1", f"run_dir={json.dumps(str(directory))}"]
        train(load_config(CONFIG, [*changes, f"data.root={json.dumps(str(ROOT))}"]))
    return load(directory)


def measure(predictor: Predictor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Scores of the alarms by aim, and of the probabilities, on the test part."""
    prepared = prepare(predictor.config)
    chosen_on, judged_on = (_part(predictor, prepared, part) for part in (VALIDATION, TEST))
    for name, target in AIMS.items():
        rule = tune(*chosen_on, predictor.classes, target).rule
        yield name, _scores(judged_on, predictor.classes, rule)
        if target is not None:
            yield f"{name}, read off the test rows", _best_common(judged_on, predictor.classes, rule, target)
    rows, probabilities = judged_on
    model = Answers(predictor.name(probabilities), predictor.classes, probabilities)
    before = replace(model, probabilities=predictor.decisions.calibration.undone(probabilities))
    yield "calibration", {"before": reliability(rows.truth, before), "after": reliability(rows.truth, model)}


def _part(predictor: Predictor, prepared: Prepared, part: int) -> Part:
    wanted = prepared.labelled(part)
    counted = prepared.grid.to_rows(wanted) & (prepared.table.labels != UNLABELLED)
    probabilities = prepared.grid.to_rows(predictor.probabilities(prepared.grid.segments, wanted))[counted]
    return scored_rows(predictor.config, prepared.table, counted), probabilities


def _scores(part: Part, classes: tuple[str, ...], rule: AlarmRule) -> dict[str, Any]:
    rows, probabilities = part
    collector = AlarmCollector(rule, classes, rows.interval_ns)
    collector.add(rows.series, rows.times, probabilities)
    return {**alarm_scores(rows, collector.alarms()), "rule": rule.state()}


def _best_common(part: Part, classes: tuple[str, ...], rule: AlarmRule, target: float) -> dict[str, Any]:
    """The best recall of one threshold for all classes, with no more false alarms than the target on these rows."""
    tried = [
        _scores(part, classes, replace(rule, thresholds=dict.fromkeys(rule.thresholds, value))) for value in THRESHOLDS
    ]
    within = [scores for scores in tried if scores["false_alarms_per_series_day"] <= SLACK * target]
    return max(within or tried[-1:], key=lambda scores: float(scores["recall"] or 0.0))


def as_lines(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Means over the seeds as tables."""
    rows = [
        (name, *(text(_mean([one[key] for one in scores])) for key, text in zip(KEYS, _TEXTS, strict=True)))
        for name, scores in found.items()
        if name != "calibration"
    ]
    seeds = len(next(iter(found.values())))
    lines = table(("alarms", "recall", "precision", "delay, s", "p90, s", "false a link and day"), rows)
    for when in ("before", "after"):
        ece, brier = (_mean([one[when][key] for one in found["calibration"]]) for key in ("ece", "brier"))
        lines.append(f"{when} calibration: ECE {score(ece)}, Brier score {score(brier)}")
    return [*lines, f"means of {seeds} seeds"]


_TEXTS = (score, score, amount, amount, amount)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


if __name__ == "__main__":
    run_command(main)
