"""Scores as the cells of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netanomaly.evaluation.report import MODEL
from netanomaly.evaluation.tables import amount, score


@dataclass(frozen=True)
class Table:
    """Cells under their headers, the first of each row to the left; `marked` is the row that stands out."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: int = -1
    coloured: bool = False


@dataclass(frozen=True)
class Confusion:
    """Shares of the true rows, by name of the true class: counts, and how dark each cell is (0 to 100)."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


def classifiers(evaluation: Mapping[str, Any]) -> Table:
    """The model above the baselines."""
    header = (
        "classifier",
        "macro-F1",
        "accuracy",
        "incident recall",
        "delay, s",
        "false alarms a series and day",
        "PR-AUC",
        "ECE",
    )
    rows = [
        (
            name,
            *(score(entry[key]) for key in ("macro_f1", "accuracy", "incident_recall")),
            *(amount(entry[key]) for key in ("delay_median_s", "false_alarms_per_series_day")),
            *(score(entry[key]) for key in ("pr_auc", "ece")),
        )
        for name, entry in [(MODEL, evaluation), *evaluation["baselines"].items()]
    ]
    return Table(header, tuple(rows), marked=0)


def verdict(evaluation: Mapping[str, Any]) -> str:
    """Whether the model is the best of them by macro-F1."""
    baselines = {name: entry["macro_f1"] for name, entry in evaluation["baselines"].items()}
    if not baselines:
        return f"No baselines beside it. {evaluation.get('baselines_missing', '')}"
    best = max(baselines, key=lambda name: baselines[name])
    own, other = score(evaluation["macro_f1"]), score(baselines[best])
    if evaluation["macro_f1"] > baselines[best] and own != other:
        return f"{MODEL} is ahead: a macro-F1 of {own} against {other} of {best}, the best of the others."
    return f"{MODEL} is not ahead here: {best} has a macro-F1 of {other}, {MODEL} {own}."


def classes(evaluation: Mapping[str, Any]) -> Table:
    """Scores of rows by class."""
    rows = [
        (
            name,
            *(score(entry.get(key)) for key in ("precision", "recall", "f1", "average_precision")),
            f"{entry['support']:,}",
            f"{entry['predicted']:,}",
        )
        for name, entry in evaluation["per_class"].items()
    ]
    header = ("class", "precision", "recall", "F1", "PR-AUC", "rows", "rows named so")
    return Table(header, tuple(rows), coloured=True)


def alarms(scores: Mapping[str, Any]) -> Table:
    """Scores of alarms by class."""
    rows = [
        (
            name,
            f"{entry['found']} of {entry['incidents']}",
            score(entry["recall"]),
            str(entry["alarms"]),
            score(entry["precision"]),
            str(entry["false_alarms"]),
            amount(entry["delay_median_s"]),
        )
        for name, entry in scores["per_class"].items()
    ]
    header = ("class", "found", "recall", "alarms", "precision", "false", "delay, s")
    return Table(header, tuple(rows), coloured=True)


def intervals(scores: Mapping[str, Any]) -> Table:
    """Scores of all alarms with the middle 95 % of what a bootstrap draws."""
    names = (
        ("recall (incidents with a right alarm)", "recall", score),
        ("precision (alarms that are right)", "precision", score),
        ("median delay, s", "delay_median_s", amount),
        ("false alarms a series and day", "false_alarms_per_series_day", amount),
    )
    rows = []
    for name, key, text in names:
        span: Sequence[float] | None = scores["intervals"].get(key)
        rows.append((name, text(scores[key]), "-" if span is None else f"{text(span[0])} to {text(span[1])}"))
    return Table(("all alarms", "value", "95 % interval"), tuple(rows))


def series(evaluation: Mapping[str, Any]) -> Table:
    """Scores of rows by series, the worst first."""
    entries = sorted(evaluation["per_series"].items(), key=lambda pair: pair[1]["macro_f1"])
    rows = [(name, score(one["macro_f1"]), score(one["accuracy"]), f"{one['rows']:,}") for name, one in entries]
    return Table(("series", "macro-F1", "accuracy", "rows"), tuple(rows))


def confusion(evaluation: Mapping[str, Any]) -> Confusion:
    """Counts of true against named rows, shaded by the share of the true class's rows."""
    labels, matrix = evaluation["confusion"]["labels"], evaluation["confusion"]["matrix"]
    rows = [
        (name, tuple((count, round(100 * count / sum(counts))) for count in counts))
        for name, counts in zip(labels, matrix, strict=True)
        if sum(counts)
    ]
    return Confusion(tuple(labels), tuple(rows))
