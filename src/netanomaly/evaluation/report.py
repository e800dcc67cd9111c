"""The evaluation of predicted rows, as plain values for JSON and as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.evaluation.metrics import accuracy, confusion, macro_f1, per_class
from netanomaly.evaluation.probabilities import average_precisions
from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.evaluation.scores import classifier_scores
from netanomaly.evaluation.tables import amount, score, table

MODEL = "netanomaly"
"""What the model is called beside the baselines."""

FEW = 3
"""Incidents of a class below which its scores say little."""

_LEGEND = (
    "incidents: share found, with the right class; delay: median seconds until then; alarms: false ones per series "
    "and day;\nPR-AUC: mean over classes; ECE: calibration error, the smaller the better"
)


def evaluation_report(rows: ScoredRows, model: Answers, baselines: Mapping[str, Answers]) -> dict[str, Any]:
    """Scores of the rows given, all of them labelled.

    Classes are the trained ones in their order, then labels of the truth that training never had, then
    `no_data` if rows without data were met. None of them is left out and none moves another.

    Args:
        model: its classes are the ones it can name, the trained ones.
        baselines: answers of other classifiers to the same rows, by name.
    """
    truth, predicted, trained = rows.truth, model.labels, model.classes
    unseen = sorted(set(truth) - set(trained))
    classes = [*trained, *unseen, *sorted(set(predicted) - set(trained) - set(unseen))]
    series = _per_series(rows, predicted)
    return {
        **classifier_scores(rows, model),
        "rows": len(rows),
        "rows_without_data": int((predicted == rows.no_data).sum()),
        "normal": rows.normal,
        "per_class": _per_class(rows, model, classes),
        "per_series": series,
        "worst_series": _worst(series, set(rows.series[truth != rows.normal])),
        "confusion": confusion(truth, predicted, classes),
        "baselines": {name: classifier_scores(rows, answers) for name, answers in baselines.items()},
        "classes_absent_from_training": {name: int((truth == name).sum()) for name in unseen},
        "classes_absent_from_test": sorted(set(trained) - set(truth)),
    }


def _per_class(rows: ScoredRows, model: Answers, classes: Sequence[str]) -> dict[str, dict[str, float | int | None]]:
    found = per_class(rows.truth, model.labels, classes)
    if model.probabilities is not None:
        areas = average_precisions(rows.truth, model.probabilities, model.classes)
        for name, entry in found.items():
            entry["average_precision"] = areas.get(name)
    return found


def _per_series(rows: ScoredRows, predicted: NDArray[np.object_]) -> dict[str, dict[str, Any]]:
    rows_of = pd.Series(rows.series).groupby(rows.series, sort=True).indices
    return {
        str(name): {
            "macro_f1": macro_f1(rows.truth[own], predicted[own]),
            "accuracy": accuracy(rows.truth[own], predicted[own]),
            "rows": len(own),
        }
        for name, own in rows_of.items()
    }


def _worst(series: Mapping[str, Mapping[str, Any]], eventful: set[str]) -> dict[str, Any] | None:
    """The series with the lowest macro-F1, the first in the alphabet among equals; None if none is eventful.

    Only series with a row that is not normal: the macro-F1 of the others is about the normal class alone.
    """
    scores = {name: entry["macro_f1"] for name, entry in series.items() if name in eventful}
    if not scores:
        return None
    name = min(scores, key=lambda name: scores[name])
    return {"name": name, "macro_f1": scores[name]}


def report_text(report: Mapping[str, Any]) -> str:
    """The evaluation as tables for a terminal."""
    parts = [
        [f"{report['rows']} labelled rows of {len(report['per_series'])} series"],
        _classifiers(report),
        [_LEGEND],
        _verdict(report),
        _classes(report),
        *([_alarms(report["alarms"])] if "alarms" in report else []),
        *([_calibration(report["calibration"])] if "calibration" in report else []),
        table(
            ("series", "macro-F1", "accuracy", "rows"),
            [
                (name, score(entry["macro_f1"]), score(entry["accuracy"]), str(entry["rows"]))
                for name, entry in report["per_series"].items()
            ],
        ),
        *([line] for line in _remarks(report)),
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def _classifiers(report: Mapping[str, Any]) -> list[str]:
    """The model above the baselines."""
    header = ("classifier", "macro-F1", "accuracy", "incidents", "delay", "alarms", "PR-AUC", "ECE")
    return table(
        header,
        [
            (
                name,
                *(score(entry[key]) for key in ("macro_f1", "accuracy", "incident_recall")),
                *(amount(entry[key]) for key in ("delay_median_s", "false_alarms_per_series_day")),
                *(score(entry[key]) for key in ("pr_auc", "ece")),
            )
            for name, entry in [(MODEL, report), *report["baselines"].items()]
        ],
    )


def _verdict(report: Mapping[str, Any]) -> list[str]:
    """Whether the model is the best of them, and which classifiers are missing."""
    lines = [f"{name}: {reason}" for name, reason in report.get("baselines_left_out", {}).items()]
    if "baselines_missing" in report:
        lines.append(f"no baselines beside it: {report['baselines_missing']}")
    if not report["baselines"]:
        return lines or ["no baselines beside it"]
    scores = {name: entry["macro_f1"] for name, entry in report["baselines"].items()}
    best = max(scores, key=lambda name: scores[name])
    own, other = score(report["macro_f1"]), score(scores[best])
    if report["macro_f1"] > scores[best]:
        return [f"{MODEL} wins: a macro-F1 of {own} against {other} of {best}, the best of the others", *lines]
    if own == other:
        return [f"{MODEL} does NOT win here: {best} has the same macro-F1, {own}", *lines]
    return [f"{MODEL} does NOT win here: {best} has a macro-F1 of {other} against {own}", *lines]


def _classes(report: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, entry in report["per_class"].items():
        events = report["incidents_per_class"].get(name)
        rows.append(
            (
                name,
                *(score(entry.get(key)) for key in ("precision", "recall", "f1", "average_precision")),
                str(entry["support"]),
                f"{events['incidents_found']}/{events['incidents']}" if events else "-",
                amount(events["delay_median_s"] if events else None),
            )
        )
    return table(("class", "precision", "recall", "F1", "PR-AUC", "rows", "found", "delay"), rows)


def _alarms(scores: Mapping[str, Any]) -> list[str]:
    """What somebody on call is told, and how often for nothing."""
    rows = [
        (
            name,
            f"{entry['found']}/{entry['incidents']}",
            str(entry["alarms"]),
            score(entry["precision"]),
            str(entry["false_alarms"]),
            amount(entry["delay_median_s"]),
        )
        for name, entry in scores["per_class"].items()
    ]
    spans = scores["intervals"]
    told = [
        f"{name} {text(scores[key])}" + ("" if spans.get(key) is None else " ({} to {})".format(*map(text, spans[key])))
        for name, key, text in (
            ("recall", "recall", score),
            ("precision", "precision", score),
            ("median delay, s", "delay_median_s", amount),
            ("false alarms a series and day", "false_alarms_per_series_day", amount),
        )
    ]
    return [
        *table(("alarms", "found", "alarms", "precision", "false", "delay"), rows),
        f"{'; '.join(told)}; in brackets: 95 % intervals",
    ]


def _unknown(found: Mapping[str, Any]) -> list[str]:
    """How many rows `predict` would call unknown; the scores name every row."""
    shares = {
        "of the classes of training": found.get("known_called_unknown"),
        "of others": found.get("new_called_unknown"),
    }
    told = [f"{share:.1%} of the rows {which}" for which, share in shares.items() if share is not None]
    return [f"called unknown by predict (the scores here name every row): {', '.join(told)}"] if told else []


def _calibration(found: Mapping[str, Any]) -> list[str]:
    before, after = found["before"], found["after"]
    return [
        f"calibration on validation (temperature {found['temperature']:.2f}): ECE {score(before['ece'])} before, "
        f"{score(after['ece'])} after; Brier score {score(before['brier'])}, {score(after['brier'])}"
    ]


def _remarks(report: Mapping[str, Any]) -> list[str]:
    """What is out of the ordinary, a line each."""
    lines = _unknown(report.get("unknown", {}))
    worst = report["worst_series"]
    if worst is not None:
        lines.append(f"worst series (of those with an incident): {worst['name']}, macro-F1 {score(worst['macro_f1'])}")
    if report["normal"] not in report["per_class"]:
        lines.append(f"no class is called '{report['normal']}' (data.normal): every class counts as an incident")
    few = [name for name, entry in report["incidents_per_class"].items() if 0 < entry["incidents"] < FEW]
    if few:
        lines.append(f"fewer than {FEW} incidents here, so their scores are largely luck: {', '.join(few)}")
    if report["rows_without_data"]:
        lines.append(f"{report['rows_without_data']} rows in which nothing was measured: no_data, counted as wrong")
    if report["classes_absent_from_training"]:
        counts = ", ".join(f"{name} ({count} rows)" for name, count in report["classes_absent_from_training"].items())
        lines.append(f"never seen in training, counted as wrong: {counts}")
    if report["classes_absent_from_test"]:
        lines.append(f"in training but not here: {', '.join(report['classes_absent_from_test'])}")
    return lines
