"""All scores that one classifier gets, the model and the baselines alike."""

from __future__ import annotations

from typing import Any

from netanomaly.evaluation.events import incident_scores
from netanomaly.evaluation.metrics import accuracy, macro_f1
from netanomaly.evaluation.probabilities import calibration_error, macro_average_precision
from netanomaly.evaluation.rows import Answers, ScoredRows


def classifier_scores(rows: ScoredRows, answers: Answers) -> dict[str, Any]:
    """Scores of rows, of incidents and of probabilities, as plain values; null where there are no probabilities."""
    return {
        "macro_f1": macro_f1(rows.truth, answers.labels),
        "accuracy": accuracy(rows.truth, answers.labels),
        **incident_scores(rows, answers.labels),
        **_probability_scores(rows, answers),
    }


def _probability_scores(rows: ScoredRows, answers: Answers) -> dict[str, float | None]:
    probabilities = answers.probabilities
    if probabilities is None:
        return {"pr_auc": None, "ece": None}
    return {
        "pr_auc": macro_average_precision(rows.truth, probabilities, answers.classes),
        "ece": calibration_error(answers.labels == rows.truth, answers.confidence),
    }
