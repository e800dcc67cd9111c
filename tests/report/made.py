"""Reports of small made-up networks, without a model: answers are the truth with some rows changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from netanomaly.alarms.matching import alarm_scores
from netanomaly.alarms.raising import AlarmCollector
from netanomaly.alarms.rule import AlarmRule
from netanomaly.data.ingest import NO_DATA
from netanomaly.data.reference import reference
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat
from netanomaly.evaluation.baselines import random_answers
from netanomaly.evaluation.reliability import reliability
from netanomaly.evaluation.report import evaluation_report
from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.report.clock import Clock
from netanomaly.report.content import Content, SeriesRows
from networks import CLASSES, METRICS, link

SECOND = 10**9
START = 1_772_361_600 * SECOND


def content(
    *links: str, rows: int = 200, labelled: bool = True, names: dict[str, str] | None = None, **changes: Any
) -> Content:
    """A report of links.

    Args:
        names: other names of classes and metrics.
        changes: to the content.
    """
    called = {name: name for name in (*CLASSES, *METRICS)} | (names or {})
    classes = tuple(called[name] for name in CLASSES)
    units = ("ms", "bit/s", "ratio")
    metrics = tuple(Metric(called[name], name, unit) for name, unit in zip(METRICS, units, strict=True))
    rule, series = AlarmRule.plain(classes, classes[0]), []
    collector = AlarmCollector(rule, classes, SECOND)
    probabilities = []
    for number, name in enumerate(links):
        frame = link(name, rows)
        truth = np.array([called[label] for label in frame["label"]], dtype=object)
        values = frame[list(METRICS)].to_numpy() * [metric.factor for metric in metrics]
        given = _probabilities(truth, classes, number)
        given[np.isnan(values).all(axis=1)] = 0
        named = np.array(classes, dtype=object)[given.argmax(axis=1)]
        named[~given.any(axis=1)] = NO_DATA
        times = START + np.arange(rows) * SECOND
        shown = truth if labelled else np.full(rows, "", dtype=object)
        series.append(SeriesRows(name, times, values, shown, named))
        collector.add(np.full(rows, name, dtype=object), times, given)
        probabilities.append(given)
    found = Content(
        bundle="runs/made",
        scope="made up",
        metrics=metrics,
        classes=classes,
        normal=classes[0],
        clock=Clock(TimeFormat(), SECOND),
        series=tuple(series),
        alarms=collector.alarms(),
        thresholds=rule.thresholds,
        trained="never trained",
        reference=reference([metric.name for metric in metrics], series[0].values),
    )
    scores = _scored(found, np.concatenate(probabilities)) if labelled else {}
    return Content(**{**found.__dict__, **scores, **changes})


def _probabilities(truth: np.ndarray, classes: tuple[str, ...], seed: int) -> np.ndarray:
    """Sure of the truth, but for a fault in ten rows of another name, and eight rows of a fault where there is none."""
    number = np.array([classes.index(label) for label in truth])
    number[182:190] = 2
    wrong = np.flatnonzero(number == 1)[:10]
    number[wrong] = 2
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0, 0.2, (len(truth), len(classes)))
    raw[np.arange(len(truth)), number] += rng.uniform(0.5, 2, len(truth))
    return raw / raw.sum(axis=1, keepdims=True)


def _scored(found: Content, probabilities: np.ndarray) -> dict[str, Any]:
    rows = ScoredRows(
        series=np.concatenate([np.full(len(one), one.name, dtype=object) for one in found.series]),
        times=np.concatenate([one.times for one in found.series]),
        truth=np.concatenate([one.truth for one in found.series]),
        interval_ns=SECOND,
        max_gap_ns=3 * SECOND,
        normal=found.normal,
        no_data=NO_DATA,
    )
    model = Answers(np.concatenate([one.named for one in found.series]), found.classes, probabilities)
    evaluation = evaluation_report(rows, model, {"random": random_answers(rows.truth, len(rows), 0)})
    evaluation["alarms"] = alarm_scores(rows, found.alarms)
    calibrated = reliability(rows.truth, model)
    evaluation["calibration"] = {"temperature": 1.0, "before": calibrated, "after": calibrated}
    return {"evaluation": evaluation, "scored": (rows, model)}


def reason(of: Content, number: int) -> dict[str, Any]:
    """A reason as `Reason.to_dict` has it, of six rows."""
    names = [metric.name for metric in of.metrics]
    part = {"unit": "ms", "attribution": 2.0, "before": 10.0, "value": 30.0, "since": "x"}
    return {
        "label": str(of.alarms.labels[number]),
        "against": of.normal,
        "probability": 0.93,
        "usual_probability": 0.02,
        "metrics": [{"metric": names[1], "share": 0.7, "sentence": f"{names[1]} 10 -> 30 (+200 %) from 10:41", **part}],
        "other_share": 0.3,
        "times": [None, *(f"10:4{n}" for n in range(5))],
        "attribution": np.linspace(-1, 1, 18).reshape(6, 3).tolist(),
        "metric_names": names,
        "looked_up": [0.0, 0.0, 0.1, 0.2, 0.3, 0.4],
    }
