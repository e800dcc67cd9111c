"""The results of scripts/bench_quality.py: one file that grows, means over seeds, ranks, a table, a plot."""

from __future__ import annotations

import importlib
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = (
    "macro_f1",
    "accuracy",
    "worst_series_macro_f1",
    "mean_series_macro_f1",
    "incident_recall",
    "incident_precision",
    "median_delay_s",
    "false_alarms_per_series_day",
    "pr_auc",
    "ece",
    "search_seconds",
    "training_seconds",
    "scoring_seconds",
    "whole_seconds",
)
"""What means are taken of."""


def load(path: Path) -> dict[str, Any]:
    """The results so far, none if there is no file."""
    if not path.exists():
        return {"results": {}, "ranks": {}}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found["results"], found["ranks"]
    except (ValueError, TypeError, KeyError) as error:
        raise OSError(f"{path}: not results of this script, and not replaced ({error!r})") from None
    return found


def save(path: Path, report: Mapping[str, Any]) -> None:
    """Write the results, whole or not at all: a run that is stopped loses nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def is_done(report: Mapping[str, Any], dataset: str, method: str, seed: int, budget: float) -> bool:
    """Whether there is a result. One that ran out of time with this budget or more is one; a failure is none."""
    run = report["results"].get(dataset, {}).get(method, {}).get("runs", {}).get(str(seed))
    if run is None or "skipped" not in run:
        return run is not None
    return str(run["skipped"]).startswith("not done") and bool(run["budget"] >= budget)


def add(report: dict[str, Any], dataset: str, method: str, seed: int, run: Mapping[str, Any]) -> None:
    """Put a run into the results, and take means and ranks anew."""
    entry = report["results"].setdefault(dataset, {}).setdefault(method, {"runs": {}})
    entry["runs"][str(seed)] = dict(run)
    report["results"][dataset][method] = summary(entry["runs"])
    report["ranks"] = ranks(report["results"])


def summary(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Means over the seeds that gave a result; `skipped` says why others did not."""
    good = [runs[seed] for seed in sorted(runs, key=int) if "skipped" not in runs[seed]]
    result: dict[str, Any] = {}
    if good:
        result |= {key: mean_std([run.get(key) for run in good]) for key in FIGURES}
        for group in ("per_class", "merged", "per_series"):
            if group in good[0]:
                names = list(dict.fromkeys(name for run in good for name in run[group]))
                result[group] = {name: mean_std([run[group].get(name) for run in good]) for name in names}
        result["chosen"] = [[facts.get("chosen") for facts in run["facts"]] for run in good]
    if skipped := {seed: run["skipped"] for seed, run in runs.items() if "skipped" in run}:
        result["skipped"] = skipped
    return {**result, "runs": dict(runs)}


def mean_std(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, sample standard deviation (null of a single value) and the values; those that are null are left out."""
    known = [value for value in values if value is not None]
    return {
        "mean": statistics.mean(known) if known else None,
        "std": statistics.stdev(known) if len(known) > 1 else None,
        "values": list(values),
    }


def ranks(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The mean rank of every method by macro-F1, 1 the best; equals share the mean of their ranks.

    Over the data sets; a method without a result on one of them is behind all that have one there.
    """
    methods = list(dict.fromkeys(method for found in results.values() for method in found))
    per_dataset = {
        name: _ranks_of({m: _macro_f1(found.get(m, {})) for m in methods}) for name, found in results.items()
    }
    means = {m: statistics.mean(found[m] for found in per_dataset.values()) for m in methods}
    return {"mean": dict(sorted(means.items(), key=lambda item: item[1])), "per_dataset": per_dataset}


def _macro_f1(entry: Mapping[str, Any]) -> float | None:
    found: float | None = entry.get("macro_f1", {}).get("mean")
    return found


def _ranks_of(scores: Mapping[str, float | None]) -> dict[str, float]:
    order = {method: -1.0 if score is None else score for method, score in scores.items()}
    return {
        method: sum(other > score for other in order.values()) + (sum(o == score for o in order.values()) + 1) / 2
        for method, score in order.items()
    }


def as_table(report: Mapping[str, Any]) -> str:
    """Macro-F1 of all methods on all data sets with their ranks, then a table for each data set, as Markdown."""
    results, means = report["results"], report["ranks"].get("mean", {})
    lines = [
        f"| macro-F1 | {' | '.join(results)} | mean rank |",
        f"| --- |{' --- |' * (len(results) + 1)}",
    ]
    for method, rank in means.items():
        cells = [_cell(found.get(method), "macro_f1") for found in results.values()]
        lines.append(f"| {method} | {' | '.join(cells)} | {rank:.1f} |")
    for name, found in results.items():
        lines += ["", *_dataset_table(name, found)]
    return "\n".join(lines)


def _dataset_table(name: str, found: Mapping[str, Any]) -> list[str]:
    columns = {
        "macro-F1": "macro_f1",
        "accuracy": "accuracy",
        "worst series": "worst_series_macro_f1",
        "incidents": "incident_recall",
        "delay, s": "median_delay_s",
        "alarms/day": "false_alarms_per_series_day",
        "PR-AUC": "pr_auc",
        "ECE": "ece",
        "search, s": "search_seconds",
        "training, s": "training_seconds",
        "scoring, s": "scoring_seconds",
    }
    lines = [f"| {name} | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for method, entry in sorted(found.items(), key=lambda item: -(_macro_f1(item[1]) or 0.0)):
        lines.append(f"| {method} | {' | '.join(_cell(entry, key) for key in columns.values())} |")
    merged = {method: entry["merged"] for method, entry in found.items() if "merged" in entry}
    lines += [
        f"- {method}, merged as published: accuracy {_cell(entry, 'accuracy')}, macro-F1 {_cell(entry, 'macro_f1')}"
        for method, entry in merged.items()
    ]
    lines += [
        f"- {method}, seed {seed}: left out, {reason}"
        for method, entry in found.items()
        for seed, reason in entry.get("skipped", {}).items()
    ]
    return lines


def _cell(entry: Mapping[str, Any] | None, key: str) -> str:
    figure = (entry or {}).get(key) or {}
    mean, std = figure.get("mean"), figure.get("std")
    if mean is None:
        return "left out" if entry and "skipped" in entry and key == "macro_f1" else "-"
    digits = 3 if key.endswith(("f1", "accuracy", "recall", "auc", "ece")) else 1
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std is not None else "")


def plot(report: Mapping[str, Any], path: Path) -> bool:
    """Macro-F1 of every method, a group of bars for each data set; False if Matplotlib is not there."""
    try:
        matplotlib, pyplot = importlib.import_module("matplotlib"), importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return False
    matplotlib.use("Agg")
    results, methods = report["results"], list(report["ranks"]["mean"])
    figure, axes = pyplot.subplots(figsize=(2 + 2.2 * len(results), 5), layout="constrained")
    width = 0.85 / len(methods)
    for number, method in enumerate(methods):
        figures = [found.get(method, {}).get("macro_f1") or {} for found in results.values()]
        places = [place + (number - (len(methods) - 1) / 2) * width for place in range(len(results))]
        heights = [entry.get("mean") or 0.0 for entry in figures]
        axes.bar(places, heights, width, yerr=[entry.get("std") or 0.0 for entry in figures], label=method)
    axes.set_xticks(range(len(results)), list(results))
    axes.set_ylabel("macro-F1 on the test rows, mean and standard deviation over seeds")
    axes.legend(ncols=4, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return True
