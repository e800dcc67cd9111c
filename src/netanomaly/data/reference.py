"""What the metrics of training rows were like, in few enough numbers for a bundle; how far other rows are from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 100
"""Between the smallest and the largest value: a share is known to one in a hundred."""
DIGITS = 9
"""Of a quantile."""


def reference(names: Sequence[str], values: NDArray[np.float64]) -> dict[str, Any]:
    """The metrics of training rows as plain values.

    Args:
        names: of the M metrics.
        values: in base units, counters as rates, NaN where missing. (rows, M)

    Returns:
        rows: how many; metrics: by name the share of rows in which it is `missing`, and 101 `quantiles` from the
        smallest value to the largest; none where nothing was measured.
    """
    metrics = {name: _metric(column) for name, column in zip(names, values.T, strict=True)}
    return {"rows": len(values), "metrics": metrics}


def _metric(column: NDArray[np.float64]) -> dict[str, Any]:
    known = column[~np.isnan(column)]
    if not len(known):
        return {"missing": 1.0, "quantiles": []}
    # each of them is a value that occurs: between the values of a metric that has few there is nothing
    quantiles = np.quantile(known, np.linspace(0, 1, STEPS + 1), method="inverted_cdf")
    return {
        "missing": round(1 - len(known) / len(column), DIGITS),
        "quantiles": [float(f"{value:.{DIGITS}g}") for value in quantiles],
    }


def is_reference(found: object) -> bool:
    """Whether plain values are what `reference` makes: they come from a file that anybody may have written."""
    metrics = found.get("metrics") if isinstance(found, Mapping) else None
    return isinstance(metrics, Mapping) and all(_is_metric(one) for one in metrics.values())


def _is_metric(found: object) -> bool:
    if not isinstance(found, Mapping) or not isinstance(found.get("missing"), (int, float)):
        return False
    quantiles = found.get("quantiles")
    if not isinstance(quantiles, list) or len(quantiles) not in (0, STEPS + 1):
        return False
    if not all(isinstance(value, (int, float)) and np.isfinite(value) for value in quantiles):
        return False
    return all(one <= other for one, other in pairwise(quantiles))


def drift(column: NDArray[np.float64], quantiles: Sequence[float]) -> Mapping[str, float] | None:
    """How far the values of a metric are from those of training, None where either has none. (rows,)

    Returns:
        ks: the two-sample statistic of Kolmogorov and Smirnov: the largest difference between the shares of either's
            values that lie below some value. 0: alike, 1: apart. The training rows are known by their quantiles, so
            it may be up to 0.02 less than from all rows.
        outside: share of the values below the smallest or above the largest one of training.
    """
    known = np.sort(column[~np.isnan(column)])
    if not len(known) or not len(quantiles):
        return None
    given = np.asarray(quantiles, dtype=np.float64)
    steps, values = len(given) - 1, np.unique(given)
    first, last = np.searchsorted(given, values), np.searchsorted(given, values, side="right") - 1
    # of the training rows, a share in [(first - 1) / steps, first / steps] lies below a value, in
    # [last / steps, (last + 1) / steps] at it or below: only what is beyond that is a difference
    rounding = np.abs(values) * 10.0 ** (1 - DIGITS)
    below = np.searchsorted(known, values - rounding) / len(known)
    upto = np.searchsorted(known, values + rounding, side="right") / len(known)
    differences = (
        _beyond(below, np.maximum(first - 1, 0) / steps, first / steps),
        _beyond(upto, last / steps, np.minimum(last + 1, steps) / steps),
    )
    return {"ks": float(np.max(differences)), "outside": float(below[0] + 1 - upto[-1])}


def _beyond(shares: NDArray[np.float64], least: NDArray[np.float64], most: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far shares lie outside their bounds. (n,) each"""
    return np.asarray(np.maximum(np.maximum(least - shares, shares - most), 0))
