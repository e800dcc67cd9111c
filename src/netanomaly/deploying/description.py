"""What a program has to know of a file to use it: kept in the file and beside it."""

from __future__ import annotations

from typing import Any

import netanomaly
from netanomaly.build import build_grid_spans
from netanomaly.data.schema import quantity
from netanomaly.deploying.parity import labels
from netanomaly.deploying.window_model import WindowModel
from netanomaly.predictor import Predictor

VERSION = 1
"""Of the input and the outputs as they are described here."""
INSIDE = (
    "the channels of all rows (baselines, deviations, ratios, missing ones), as in training",
    "every member of the model, and the mean of their probabilities",
    "calibration: the weights of the classes divided out, the temperature",
    "no_data: label and zeros where no metric of the newest row is measured",
)
UNKNOWN_INSIDE = "unknown: the distance from all training rows, and the label where it is above 1"
OUTSIDE = (
    "reading files, converting units, and placing rows on the grid",
    "counters: they go in as rates per second",
    "alarms: which rows become an incident (thresholds, hysteresis, rows in a row) is in `alarms`, and not applied",
    "reasons: why a row gets its label",
)


def description(predictor: Predictor, model: WindowModel, rows: int, weights: str) -> dict[str, Any]:
    """Input, outputs and decisions of a window model as plain values.

    Args:
        predictor: of the bundle.
        rows: R, of each window.
        weights: SHA-256 of the bundle's.
    """
    config, spans = predictor.config, build_grid_spans(predictor.config)
    metrics = [
        {"name": one.name, "unit": quantity(one.unit, one.kind), "kind": one.kind, "measured": one.measured}
        for one in config.data.metrics
    ]
    classes = list(predictor.classes)
    return {
        "version": VERSION,
        "made_by": f"netanomaly {netanomaly.__version__}",
        "weights_sha256": weights,
        "rows": rows,
        "interval_seconds": spans.interval_ns / 1e9,
        "max_gap_rows": spans.max_gap,
        "metrics": metrics,
        "classes": classes,
        "normal": config.data.normal,
        "labels": labels(classes),
        "input": {
            "rows": f"float64 (batch, {rows}, {len(metrics)}): the newest row last, one row every interval, metrics in "
            "base units and in this order, counters as rates per second; NaN where missing, in all metrics of a row "
            "that is absent, and in all rows before a gap of more than max_gap_rows absent ones or before the first "
            "row of the series"
        },
        "outputs": {
            "label": "int64 (batch,): a place in labels, what netanomaly predict calls the newest row: the class with "
            "the largest logit (no threshold), unknown if novelty is above 1, no_data if nothing was measured in it",
            "probabilities": f"float32 (batch, {len(classes)}): of classes, calibrated; zeros for no_data",
            "novelty": "float32 (batch,): how unlike training the row is, at most 9; 0 where nothing is ever unknown",
        },
        "inside": [*INSIDE, *([] if model.novelty is None else [UNKNOWN_INSIDE])],
        "outside": [*OUTSIDE, *([] if model.novelty is not None else ["unknown: this bundle calls no row so"])],
        "calibration": predictor.decisions.calibration.state(),
        "alarms": predictor.decisions.alarms.state(),
    }
