"""One peer on one data set: python -m scripts.bench.peers_quality REQUEST.json; see scripts/bench_quality.py.

Runs in the peers' environment. The request names the problem, the method, seed, budget, threads, and where the answer
goes: an .npz with class probabilities of the rows to score, (N, K), and facts as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scripts.bench.quality_problem import Problem
from scripts.bench.quality_rockets import ROCKETS
from scripts.bench.quality_search import search
from scripts.bench.quality_tables import TABLES
from scripts.bench.quality_training import NETWORKS

PEERS = {**TABLES, **ROCKETS, **NETWORKS}


def answer(request: dict[str, Any]) -> None:
    """Search, train, score, and write."""
    problem = Problem.load(Path(request["problem"]))
    chosen = search(
        PEERS[request["method"]],
        problem,
        request["seed"],
        request["budget"],
        request["threads"],
        request.get("device", "cpu"),
    )
    wanted = problem.wanted()
    chosen.scorer(wanted[:1])  # what is loaded or compiled at the first use is no part of scoring
    started = time.perf_counter()
    probabilities = chosen.scorer(wanted)
    made_before = chosen.facts.get("feature_seconds_per_row", 0.0) * len(wanted)
    facts = {**chosen.facts, "scoring_seconds": time.perf_counter() - started + made_before}
    np.savez(request["out"], probabilities=probabilities, facts=np.array(json.dumps(facts)))


if __name__ == "__main__":
    answer(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
