"""The evaluation of predicted rows, as plain values for JSON and as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.evaluation.metrics import accuracy, confusion, macro_f1, per_class


def evaluation_report(
    series: NDArray[np.object_],
    truth: NDArray[np.object_],
    predicted: NDArray[np.object_],
    trained: Sequence[str],
    baselines: Mapping[str, NDArray[np.object_]],
) -> dict[str, Any]:
    """Scores of the rows given, all of them labelled, (rows,) each.

    Classes are the trained ones in their order, then labels of the truth that training never had, then
    `no_data` if rows without data were met. None of them is left out and none moves another.

    Args:
        trained: classes the model can name.
        baselines: labels by other classifiers for the same rows, by name.
    """
    unseen = sorted(set(truth) - set(trained))
    classes = [*trained, *unseen, *sorted(set(predicted) - set(trained) - set(unseen))]
    rows_of = pd.Series(series).groupby(series, sort=True).indices
    return {
        "macro_f1": macro_f1(truth, predicted),
        "accuracy": accuracy(truth, predicted),
        "rows": len(truth),
        "per_class": per_class(truth, predicted, classes),
        "per_series": {
            str(name): {
                "macro_f1": macro_f1(truth[rows], predicted[rows]),
                "accuracy": accuracy(truth[rows], predicted[rows]),
                "rows": len(rows),
            }
            for name, rows in rows_of.items()
        },
        "confusion": confusion(truth, predicted, classes),
        "baselines": {
            name: {"macro_f1": macro_f1(truth, labels), "accuracy": accuracy(truth, labels)}
            for name, labels in baselines.items()
        },
        "classes_absent_from_training": {name: int((truth == name).sum()) for name in unseen},
        "classes_absent_from_test": sorted(set(trained) - set(truth)),
    }


def report_text(report: Mapping[str, Any]) -> str:
    """The evaluation as tables for a terminal."""
    rows = [("netanomaly", report), *report["baselines"].items()]
    lines = [
        f"{report['rows']} labelled rows of {len(report['per_series'])} series",
        "",
        *_table(
            ("classifier", "macro-F1", "accuracy"),
            [(name, _score(entry["macro_f1"]), _score(entry["accuracy"])) for name, entry in rows],
        ),
        "",
        *_table(
            ("class", "precision", "recall", "F1", "rows"),
            [
                (name, _score(entry["precision"]), _score(entry["recall"]), _score(entry["f1"]), str(entry["support"]))
                for name, entry in report["per_class"].items()
            ],
        ),
        "",
        *_table(
            ("series", "macro-F1", "accuracy", "rows"),
            [
                (name, _score(entry["macro_f1"]), _score(entry["accuracy"]), str(entry["rows"]))
                for name, entry in report["per_series"].items()
            ],
        ),
    ]
    if report["classes_absent_from_training"]:
        counts = ", ".join(f"{name} ({count} rows)" for name, count in report["classes_absent_from_training"].items())
        lines += ["", f"never seen in training, counted as wrong: {counts}"]
    if report["classes_absent_from_test"]:
        lines += ["", f"in training but not here: {', '.join(report['classes_absent_from_test'])}"]
    return "\n".join(lines)


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns under their headers, the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: tuple[str, ...]) -> str:
        first, *others = (
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others])

    return [line(header), "  ".join("-" * w for w in widths), *(line(row) for row in rows)]
