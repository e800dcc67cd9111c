"""What an audit found, as frames for files and as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from netanomaly.audit.cross_fit import CrossFitted
from netanomaly.audit.findings import LABEL, MISSING, ONSET, Finding
from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat
from netanomaly.evaluation.tables import table

_HEADINGS = {
    LABEL: "incidents that look like another class",
    MISSING: "normal rows that look like an incident",
    ONSET: "incidents that seem to begin earlier or later",
}


def finding_table(findings: Sequence[Finding], times: TimeFormat, interval_ns: int) -> pd.DataFrame:
    """A line per finding, the most suspicious first.

    Columns: `kind`, `series`, `start`, `end`, `label`, `p_label`, `suggested`, `p_suggested`, `onset_shift_s`,
    `suspicion`; see `Finding`.
    """
    starts, lasts = (np.array([getattr(one, key) for one in findings], dtype=np.int64) for key in ("start", "last"))
    return pd.DataFrame(
        {
            "kind": [one.kind for one in findings],
            "series": [one.series for one in findings],
            "start": format_times(starts, times),
            "end": format_times(lasts + interval_ns, times),
            "label": [one.label for one in findings],
            "p_label": [round(one.p_label, 6) for one in findings],
            "suggested": [one.suggested for one in findings],
            "p_suggested": [round(one.p_suggested, 6) for one in findings],
            "onset_shift_s": [one.shift_s for one in findings],
            "suspicion": [round(one.suspicion, 6) for one in findings],
        }
    )


def row_table(given: CrossFitted, times: TimeFormat) -> pd.DataFrame:
    """A line per judged row, the least likely label first.

    Columns: `series`, `timestamp`, `label`, `p_label`, `suggested` (the likeliest class), `p_suggested`.
    """
    number = {name: i for i, name in enumerate(given.classes)}
    own = np.array([number[str(label)] for label in given.rows.truth])
    at = np.arange(len(own))
    best = given.probabilities.argmax(axis=1)
    frame = pd.DataFrame(
        {
            "series": given.rows.series,
            "timestamp": format_times(given.rows.times, times),
            "label": given.rows.truth,
            "p_label": given.probabilities[at, own].round(6),
            "suggested": np.array(given.classes, dtype=object)[best],
            "p_suggested": given.probabilities[at, best].round(6),
        }
    )
    return frame.sort_values(["p_label", "series", "timestamp"], kind="stable", ignore_index=True)


def findings_text(found: pd.DataFrame, top: int) -> str:
    """The `top` most suspicious findings of each kind."""
    parts = []
    for kind, heading in _HEADINGS.items():
        some = found[found["kind"] == kind]
        shown = some.head(top)
        lines = [f"{len(some)} {heading}" + (f", the first {top}:" if len(some) > top else "")]
        if len(shown):
            lines += table(("series", "start", "label", "p", "suggested", "p", "onset, s"), _cells(shown))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cells(shown: pd.DataFrame) -> list[tuple[str, ...]]:
    columns = (
        shown["series"].astype(str),
        shown["start"].astype(str),
        shown["label"].astype(str),
        [f"{value:.2f}" for value in shown["p_label"]],
        shown["suggested"].astype(str),
        [f"{value:.2f}" for value in shown["p_suggested"]],
        [f"{value:+g}" if value else "" for value in shown["onset_shift_s"]],
    )
    return list(zip(*columns, strict=True))
