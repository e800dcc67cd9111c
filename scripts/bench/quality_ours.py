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
import torch

from netanomaly.build import build_device
from netanomaly.config import load_config, parse_config
from netanomaly.data.splits import TEST
from netanomaly.predictor import Predictor
from netanomaly.prepare import prepare
from netanomaly.run import fit_bundle


def answer(request: dict[str, Any]) -> None:
    """Train as `netanomaly.train` does, score the test rows, write. Training is timed from the files to the bundle."""
    started = time.perf_counter()
    config = load_config(parse_config(request["config"]), request["overrides"])
    device, log = build_device(config.device), Path(request["out"]).with_name("log.jsonl")
    log.unlink(missing_ok=True)
    prepared = prepare(config)
    torch.set_num_threads(config.threads or torch.get_num_threads())
    bundle, outcome = fit_bundle(prepared, device, log)
    training = time.perf_counter() - started
    predictor = Predictor(bundle, device)
    wanted = prepared.labelled(TEST)
    started = time.perf_counter()
    # as the model says them: the class that is named is the most probable one then, whatever calibration makes of it
    own = predictor.decisions.calibration.undone
    per_step = [own(rows) for rows in predictor.probabilities(prepared.grid.segments, wanted)]
    scoring = time.perf_counter() - started
    facts = {
        "classes": list(predictor.classes),
        "chosen": {key: predictor.config.to_dict()[key] for key in ("channels", "model", "training")},
        "training_seconds": training,
        "search_seconds": 0.0,
        "scoring_seconds": scoring,
        "training_windows": prepared.report["train"]["rows"],
        **{key: outcome.facts()[key] for key in ("members", "levels", "validation_macro_f1")},
    }
    found = np.concatenate([rows[mask] for rows, mask in zip(per_step, wanted, strict=True)])
    np.savez(request["out"], probabilities=found, facts=np.array(json.dumps(facts)))


if __name__ == "__main__":
    answer(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
