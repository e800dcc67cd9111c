"""Ours on one data set: python -m scripts.bench.quality_ours REQUEST.json; see scripts/bench_quality.py.

A process of its own, as the peers are, so that it has the same budget. The request holds the config and its overrides;
the answer is as theirs: class probabilities of the test rows, in the order of the segments, and facts as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from netanomaly import train
from netanomaly.config import parse_config
from netanomaly.data.splits import TEST
from netanomaly.prepare import prepare


def answer(request: dict[str, Any]) -> None:
    """Train as anybody would, score the test rows, and write."""
    config = parse_config(request["config"])
    started = time.perf_counter()
    predictor = train(config, overrides=request["overrides"], overwrite=True)
    whole = time.perf_counter() - started
    prepared = prepare(predictor.config)
    wanted = prepared.labelled(TEST)
    started = time.perf_counter()
    per_step = predictor.probabilities(prepared.grid.segments, wanted)
    scoring = time.perf_counter() - started
    facts = {
        "classes": list(predictor.classes),
        "chosen": {key: predictor.config.to_dict()[key] for key in ("channels", "model", "training")},
        "training_seconds": predictor.facts["training"]["seconds"],
        "search_seconds": 0.0,
        "whole_seconds": whole,
        "scoring_seconds": scoring,
        "training_windows": prepared.report["train"]["rows"],
        "members": predictor.facts["training"]["members"],
        "levels": predictor.facts["training"]["levels"],
        "validation_macro_f1": predictor.facts["training"]["validation_macro_f1"],
    }
    found = np.concatenate([rows[mask] for rows, mask in zip(per_step, wanted, strict=True)])
    np.savez(request["out"], probabilities=found, facts=np.array(json.dumps(facts)))


if __name__ == "__main__":
    answer(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
