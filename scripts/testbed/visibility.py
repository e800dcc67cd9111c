"""Whether faults show in the metrics: each incident against the normal rows around it, by ranks."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

EXPECTED: dict[str, dict[str, int]] = {
    "bandwidth_drop": {"bandwidth_est_bps": -1},
    "bufferbloat": {"rtt_ms": +1},
    "congestion": {"queue_bytes": +1, "queue_drops_per_s": +1},
    "ddos_flood": {"packets_rx_per_s": +1},
    "latency_spike": {"rtt_ms": +1, "jitter_ms": +1},
    "link_flap": {"loss_ratio": +1},
    "packet_loss": {"loss_ratio": +1, "retransmits_per_s": +1},
    "port_scan": {"tcp_resets_per_s": +1, "udp_rx_per_s": +1},
}
"""Which metrics each fault moves, and whither. Where there are two, either will do: modes of a fault differ."""
VISIBLE = 0.33
"""Effects from here on are called medium (Romano et al. 2006, Appropriate statistics for ordinal level data)."""
SETTLE_S = 3.0
"""Seconds after a fault's start and end that count for neither side: probes answer late, queues drain."""
AROUND_S = 60.0


@dataclass(frozen=True)
class Effect:
    """What one incident did to the metric that moved most of those expected."""

    series: str
    label: str
    severity: float
    metric: str
    usual: float
    during: float
    """Medians."""
    size: float
    """Cliff's delta in the expected direction, -1 to 1; NaN where rows are missing on either side."""


def cliffs_delta(these: NDArray[np.float64], those: NDArray[np.float64]) -> float:
    """P(a > b) - P(a < b) for a of these and b of those (Cliff 1993): 0 if they are alike, 1 if all are larger."""
    if not len(these) or not len(those):
        return float("nan")
    ranks = rankdata(np.concatenate([these, those]))[: len(these)].sum()
    return float(2 * (ranks - len(these) * (len(these) + 1) / 2) / (len(these) * len(those)) - 1)


def effects(rows: pd.DataFrame, incidents: pd.DataFrame) -> list[Effect]:
    """One for each incident of a class in `EXPECTED`, in the order given.

    Args:
        rows: of `data.csv`.
        incidents: of `incidents.csv`.
    """
    times = pd.to_datetime(rows["timestamp"], utc=True)
    starts, ends = (pd.to_datetime(incidents[name], utc=True) for name in ("start", "end"))
    settle, around = pd.Timedelta(seconds=SETTLE_S), pd.Timedelta(seconds=AROUND_S)
    quiet = rows["label"] == "normal"
    for series, end in zip(incidents["series"], ends, strict=True):
        quiet &= ~((rows["series"] == series) & (times >= end) & (times < end + settle))
    found = []
    for (_, incident), start, end in zip(incidents.iterrows(), starts, ends, strict=True):
        if incident["label"] not in EXPECTED:
            continue
        here = rows["series"] == incident["series"]
        during = rows[here & (times >= start + settle) & (times <= end)]
        usual = rows[here & quiet & (times >= start - around) & (times <= end + around)]
        found.append(_largest(incident, during, usual))
    return found


def _largest(incident: pd.Series, during: pd.DataFrame, usual: pd.DataFrame) -> Effect:
    series, label = str(incident["series"]), str(incident["label"])
    tried = []
    for metric, sign in EXPECTED[label].items():
        these, those = (part[metric].dropna().to_numpy(np.float64) for part in (during, usual))
        size = sign * cliffs_delta(these, those)
        middles = _median(those), _median(these)
        tried.append(Effect(series, label, float(incident["severity"]), metric, *middles, size))
    return max(tried, key=lambda effect: -2.0 if np.isnan(effect.size) else effect.size)


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def hidden(found: list[Effect]) -> dict[str, str]:
    """Classes that do not show, and why: no incident, or a median effect below `VISIBLE`."""
    why = {}
    for label in EXPECTED:
        sizes = [effect.size for effect in found if effect.label == label]
        if not sizes:
            why[label] = "no incident"
        elif not (middle := statistics.median(-1.0 if np.isnan(size) else size for size in sizes)) >= VISIBLE:
            why[label] = f"median effect {middle:.2f} of {len(sizes)} incidents, {VISIBLE} is needed"
    return why
