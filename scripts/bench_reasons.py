"""Whether reasons are faithful: what happens to the class's probability without what a reason names.

    netanomaly train configs/quickstart.yaml
    python scripts/bench_reasons.py --bundle runs/quickstart --out runs/bench_reasons.json

For every incident of the test part in which the bundle gives a row the right class, the most certain of these rows
is explained. Then some of what the model sees is set to how it usually is, and the class's probability is taken again:
with what the reason names, and with as much drawn at random (mean over the draws). A cell is a metric of one of the
rows that the answer depends on.

    cells             the fewest cells that carry 90 % of what speaks for the class; draws from all measured rows
    cells, same rows  the same; draws take as many cells of each row as the reason does
    metrics           the metrics that the reason names, in all rows; draws of as many metrics
    looked up         all metrics of the fewest rows that have half of the attention; draws of as many measured rows
    kept              all but the named metrics; draws keep as many

A reason is faithful if the probability falls further with what it names than with draws (random - named is positive),
and less far if only that is kept (it is negative). Each incident counts once; the error is that of the mean over
incidents.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly import Predictor, load
from netanomaly.build import threads
from netanomaly.data.splits import TEST
from netanomaly.evaluation.events import find_incidents
from netanomaly.evaluation.tables import table
from netanomaly.files import write_json
from netanomaly.model.attribution import NODES
from netanomaly.prepare import Prepared, prepare
from netanomaly.reason import Reason
from netanomaly.reason_metrics import carrying
from netanomaly.reasons import AskedIncident
from netanomaly.scoring import scored_rows

FIXED_NODES = (4, 8, 16, 32, 64, 128)
"""Nodes for all incidents alike, to see how many it takes."""
Cells = NDArray[np.bool_]
"""Which cells are meant, (S, M)."""
LOOKED_UP = 0.5
"""Share of the attention that the rows have which are set as usual."""


@dataclass(frozen=True)
class Case:
    """An explained incident and what the model sees of it.

    Attributes:
        actual, usual: channels of the rows. (S, C)
        valid: rows in which something was measured. (S,)
        column: of the class among the probabilities.
    """

    reason: Reason
    actual: torch.Tensor
    usual: torch.Tensor
    valid: torch.Tensor
    column: int


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True, help="directory of a run whose data can be read")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON to write")
    parser.add_argument("--draws", type=int, default=50, help="random choices per incident (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    predictor = load(options.bundle)
    prepared = prepare(predictor.config)
    asked = found_incidents(predictor, prepared)
    if not asked:
        sys.exit("the bundle finds no incident of its test part")
    explain = partial(explained, predictor, prepared, asked)
    reasons, seconds = explain(NODES)
    report: dict[str, Any] = {"incidents": len(asked), "seconds": seconds, "draws": options.draws}
    report["usual_probability"] = float(np.mean([one.usual_probability for one in reasons]))
    report["residual"] = {"as needed": residuals(reasons)} | {n: residuals(explain((n,))[0]) for n in FIXED_NODES}
    cases = cases_of(predictor, prepared, asked, reasons)
    rng = np.random.default_rng(options.seed)
    tests = {
        name: test for name, test in TESTS.items() if test is not rows_looked_up or reasons[0].looked_up is not None
    }
    report["tests"] = {name: compare(predictor, cases, test, options.draws, rng) for name, test in tests.items()}
    print("\n".join(report_lines(report)))
    if options.out is not None:
        write_json(options.out, report)


def explained(
    predictor: Predictor, prepared: Prepared, asked: Sequence[AskedIncident], nodes: tuple[int, ...]
) -> tuple[list[Reason], float]:
    """The reasons and the seconds that they took."""
    explainer = replace(predictor.explainer, nodes=nodes)
    started = time.perf_counter()
    with threads(predictor.config):
        reasons = explainer.reasons(prepared.grid.segments, prepared.table, asked)
    return reasons, time.perf_counter() - started


def found_incidents(predictor: Predictor, prepared: Prepared) -> list[AskedIncident]:
    """The true incidents of the test part with a row of the right class, each with the most certain such row."""
    grid, wanted = prepared.grid, prepared.labelled(TEST)
    mask = grid.to_rows(wanted)
    rows, counted = scored_rows(predictor.config, prepared.table, mask), np.flatnonzero(mask)
    probabilities = grid.to_rows(predictor.probabilities(grid.segments, wanted))[counted]  # (rows, K)
    incidents = find_incidents(rows, rows.truth)
    right = predictor.name(probabilities) == rows.truth
    found = []
    for number, label in enumerate(incidents.labels):
        own = incidents.rows[incidents.number == number]
        hits = own[right[own]]
        if len(hits):
            peak = hits[probabilities[hits, predictor.classes.index(label)].argmax()]
            first, row = counted[own[0]], counted[peak]
            found.append(
                AskedIncident(int(grid.row_segment[row]), int(grid.row_step[first]), int(grid.row_step[row]), label)
            )
    return found


def residuals(reasons: Sequence[Reason]) -> dict[str, float]:
    """How far attributions are from complete, as a share of what they are to sum to, and nodes per incident."""
    wanted = np.array([one.log_odds - one.usual_log_odds for one in reasons])
    off = np.abs([one.residual for one in reasons]) / np.maximum(np.abs(wanted), 1)
    nodes = float(np.mean([one.nodes for one in reasons]))
    median, high = np.quantile(off, [0.5, 0.9])
    return {"nodes": nodes, "median": float(median), "p90": float(high), "largest": float(off.max())}


def cases_of(
    predictor: Predictor, prepared: Prepared, asked: Sequence[AskedIncident], reasons: Sequence[Reason]
) -> list[Case]:
    """The reasons with what the model sees."""
    explainer, segments = predictor.explainer, prepared.grid.segments
    pairs = explainer.inputs(segments, explainer.usual(segments, asked), asked)
    seen = [row for here, there in pairs for row in zip(here.channels, there.channels, here.valid, strict=True)]
    return [
        Case(reason, actual, usual, valid, predictor.classes.index(reason.label))
        for reason, (actual, usual, valid) in zip(reasons, seen, strict=True)
    ]


def cells_named(case: Case, draw: np.random.Generator | None) -> Cells:
    """The cells that carry most, or as many of the measured rows."""
    parts, valid = _parts(case), case.valid.numpy()
    chosen = np.zeros(parts.shape, dtype=bool)
    named = carrying(parts.ravel())
    places = named if draw is None else draw.choice(np.flatnonzero(np.repeat(valid, parts.shape[1])), len(named), False)
    chosen.ravel()[places] = True
    return chosen


def cells_of_rows(case: Case, draw: np.random.Generator | None) -> Cells:
    """The cells that carry most, or as many of the same rows."""
    named = cells_named(case, None)
    return named if draw is None else draw.permuted(named, axis=1)


def metrics_named(case: Case, draw: np.random.Generator | None) -> Cells:
    """The named metrics, or as many others or the same."""
    names = [one.metric for one in case.reason.metrics]
    chosen = np.isin(case.reason.metric_names, names)
    return np.tile(chosen if draw is None else draw.permutation(chosen), (len(case.valid), 1))


def metrics_kept(case: Case, draw: np.random.Generator | None) -> Cells:
    """All but the named metrics, or all but as many."""
    return ~metrics_named(case, draw)


def rows_looked_up(case: Case, draw: np.random.Generator | None) -> Cells:
    """The fewest rows that have half of the attention, or as many of the measured ones."""
    if case.reason.looked_up is None:
        raise ValueError("the model shows no look-up")
    shares = _behind(case.reason.looked_up, len(case.valid))
    order = np.argsort(-shares)
    named = order[: int(np.searchsorted(np.cumsum(shares[order]), LOOKED_UP * shares.sum())) + 1]
    places = named if draw is None else draw.choice(np.flatnonzero(case.valid.numpy()), len(named), False)
    return np.isin(np.arange(len(shares)), places)[:, None] & np.ones(len(case.reason.metric_names), dtype=bool)


def _parts(case: Case) -> NDArray[np.float64]:
    """The attribution of all rows, zero before the segment. (S, M)"""
    return _behind(case.reason.attribution, len(case.valid))


def _behind(values: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Values of the last rows, zeros for those before. (n, ...) to (rows, ...)"""
    result = np.zeros((rows, *values.shape[1:]))
    result[rows - len(values) :] = values
    return result


TESTS: dict[str, Callable[[Case, np.random.Generator | None], Cells]] = {
    "cells": cells_named,
    "cells, same rows": cells_of_rows,
    "metrics": metrics_named,
    "looked up": rows_looked_up,
    "kept": metrics_kept,
}
"""What is set as usual in each test: what the reason names, or with a generator a draw."""


@torch.inference_mode()
def compare(
    predictor: Predictor,
    cases: Sequence[Case],
    test: Callable[[Case, np.random.Generator | None], Cells],
    draws: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Means over incidents of the class's probability, as it is, without what is named and without draws."""
    before, named, drawn, counts = [], [], [], []
    for case in cases:
        chosen = [test(case, None), *(test(case, rng) for _ in range(draws))]
        usual = torch.from_numpy(np.stack([np.zeros_like(chosen[0]), *chosen]))  # (2 + draws, S, M)
        groups = case.actual.shape[1] // usual.shape[2]
        inputs = torch.where(usual.repeat(1, 1, groups), case.usual, case.actual).to(predictor.device)
        valid = case.valid.expand(len(inputs), -1).to(predictor.device)
        probability = predictor.explainer.read(inputs, valid).softmax(-1)[:, case.column].double().cpu().numpy()
        before.append(probability[0])
        named.append(probability[1])
        drawn.append(probability[2:].mean())
        counts.append(chosen[0].sum())
    differences = np.array(drawn) - np.array(named)
    return {
        "cells": float(np.mean(counts)),
        "before": float(np.mean(before)),
        "named": float(np.mean(named)),
        "random": float(np.mean(drawn)),
        "difference": float(differences.mean()),
        "standard_error": float(differences.std(ddof=1) / len(cases) ** 0.5) if len(cases) > 1 else 0.0,
        "named_is_lower": float((differences > 0).mean()),
    }


def report_lines(report: dict[str, Any]) -> list[str]:
    """The report as a table."""
    lines = [
        f"{report['incidents']} incidents explained in {report['seconds']:.1f} s; mean probability of the class with "
        f"everything as usual {report['usual_probability']:.3f}",
        "",
        "what the parts do not sum to, as a share of the difference of log odds:",
        "",
        *table(
            ("nodes", "mean", "median", "p90", "largest"),
            [
                (str(name), f"{one['nodes']:.0f}", *(f"{one[key]:.5f}" for key in ("median", "p90", "largest")))
                for name, one in report["residual"].items()
            ],
        ),
        "",
        "mean probability of the class with this as usual:",
        "",
    ]
    header = ("", "cells", "nothing", "named", "random", "random - named", "named is lower")
    rows = [
        (
            name,
            f"{found['cells']:.0f}",
            f"{found['before']:.3f}",
            f"{found['named']:.3f}",
            f"{found['random']:.3f}",
            f"{found['difference']:+.3f} ± {found['standard_error']:.3f}",
            f"{100 * found['named_is_lower']:.0f} %",
        )
        for name, found in report["tests"].items()
    ]
    return [*lines, *table(header, rows)]


if __name__ == "__main__":
    main()
