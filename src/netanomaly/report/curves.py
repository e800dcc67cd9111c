"""Precision over recall for each class, and how often rows named with some confidence are right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.report.colours import INK, NORMAL
from netanomaly.report.figure_text import plain

POINTS = 200
"""Of a curve, at most."""
HEIGHT = 380


def precision_recall(rows: ScoredRows, model: Answers, colours: Mapping[str, str]) -> dict[str, Any]:
    """A curve for each class that the truth has and the model can name."""
    from sklearn.metrics import precision_recall_curve

    traces = []
    for number, name in enumerate(model.classes):
        is_true = rows.truth == name
        if not is_true.any():
            continue
        precision, recall, _ = precision_recall_curve(is_true, model.known_probabilities[:, number])
        kept = _spread(recall)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": plain(name),
                "x": recall[kept].round(4).tolist(),
                "y": precision[kept].round(4).tolist(),
                "line": {"color": colours[name], "width": 2, "shape": "hv"},
                "hovertemplate": f"{plain(name)}<br>recall %{{x:.2f}}, precision %{{y:.2f}}<extra></extra>",
            }
        )
    return _figure(traces, "recall", "precision")


def _spread(recall: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which points of a curve to keep: evenly in recall, with both ends; recall falls from 1 to 0. (n,) to (kept,)"""
    wanted = np.linspace(0, 1, POINTS - 1)
    rising = recall[::-1]
    found = np.minimum(np.searchsorted(rising, wanted), len(recall) - 1)
    return np.unique(np.r_[0, len(recall) - 1 - found, len(recall) - 1])


def reliability_diagram(calibration: Mapping[str, Any]) -> dict[str, Any]:
    """Share of rows that are right over the confidence that they are named with, before and after calibration."""
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "as it should be",
            "x": [0, 1],
            "y": [0, 1],
            "line": {"color": NORMAL, "dash": "dot", "width": 1},
            "hoverinfo": "skip",
        }
    ]
    for name, colour, symbol in (("before", NORMAL, "circle-open"), ("after", INK, "circle")):
        bins = calibration[name]["bins"]
        most = max((one["rows"] for one in bins), default=1)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": f"{name} calibration (ECE {calibration[name]['ece']:.3f})",
                "x": [round(one["confidence"], 4) for one in bins],
                "y": [round(one["right"], 4) for one in bins],
                "text": [f"{one['rows']:,} rows" for one in bins],
                "line": {"color": colour, "width": 2},
                "marker": {"symbol": symbol, "size": [6 + 10 * (one["rows"] / most) ** 0.5 for one in bins]},
                "hovertemplate": "confidence %{x:.2f}, right %{y:.2f}, %{text}<extra></extra>",
            }
        )
    return _figure(traces, "confidence", "share that is right")


def _figure(traces: list[dict[str, Any]], x: str, y: str) -> dict[str, Any]:
    import plotly.graph_objects as go

    layout = {
        "height": HEIGHT,
        "margin": {"l": 52, "r": 8, "t": 8, "b": 40},
        "xaxis": {"title": {"text": x, "standoff": 4}, "range": [0, 1.005], "fixedrange": True},
        "yaxis": {"title": {"text": y, "standoff": 4}, "range": [0, 1.02], "fixedrange": True},
        "legend": {"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0, "font": {"size": 11}},
    }
    figure: dict[str, Any] = json.loads(go.Figure(data=traces, layout=layout).to_json())
    return figure
