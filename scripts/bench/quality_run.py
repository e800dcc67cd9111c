"""One method on one data set with one seed: in a process of its own, ended when its time is up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scripts.bench.quality_data import ROOT, class_names, folds, make_problem
from scripts.bench.quality_scores import Judged, judge, pooled, scores

from netanomaly.config import Config
from netanomaly.data.splits import TEST
from netanomaly.evaluation.baselines import majority, random_answers
from netanomaly.prepare import Prepared, prepare

OURS: dict[str, tuple[str, ...]] = {
    "ours": (),
    "ours_levels": ('channels.kinds=["level", "missing"]', "channels.levels=seen"),
    "ours_one": ("model.members=1", "channels.levels=hidden"),
}
"""Our configurations: what differs from the package's defaults; the others show what levels and members bring."""
SIMPLE = ("majority", "random")
PEERS = (
    "logistic",
    "lightgbm",
    "lightgbm_relative",
    "lightgbm_both",
    "lightgbm_row",
    "minirocket",
    "minirocket_relative",
    "multirocket_hydra",
    "inception",
    "transformer_encoder",
)
"""Methods of scripts/bench/peers_quality.py, which the project's own environment cannot import."""
METHODS = (*OURS, *SIMPLE, *PEERS)


class Skipped(Exception):
    """A method gave no answer; the message says why."""


@dataclass(frozen=True)
class Machine:
    """Where and how methods run.

    Attributes:
        peers: Python of the peers' environment; None leaves peers out.
        work: directory for what is passed between processes.
        budget: seconds for each training: search, training and scoring together.
    """

    peers: Path | None
    work: Path
    budget: float
    threads: int
    device: str


@dataclass
class Fold:
    """One training's rows, read once for all methods."""

    name: str
    config: Config
    work: Path

    @cached_property
    def prepared(self) -> Prepared:
        """The labelled, split rows."""
        return prepare(self.config)

    @cached_property
    def problem(self) -> Path:
        """The file that peers read: without labels of test rows."""
        path = self.work / "problems" / f"{self.name}.npz"
        make_problem(self.prepared).save(path)
        return path


def open_dataset(name: str, data_root: Path | None, work: Path) -> list[Fold]:
    """The folds of a data set. Raises ValueError if it needs `data_root`."""
    configs = folds(name, data_root, work)
    return [Fold(f"{name}-{number}", config, work) for number, config in enumerate(configs)]


def run(dataset: str, parts: Sequence[Fold], method: str, seed: int, machine: Machine) -> dict[str, Any]:
    """Scores and facts of a method, or why there are none: {"skipped": ...}."""
    answers, facts = [], []
    try:
        for fold in parts:
            judged, said = _answer(fold, method, seed, machine)
            answers.append(judged)
            facts.append(said)
    except Skipped as reason:
        return {"skipped": str(reason), "budget": machine.budget}
    totals = {
        key: sum(said.get(key, 0.0) for said in facts)
        for key in ("search_seconds", "training_seconds", "scoring_seconds", "whole_seconds")
    }
    return {**scores(dataset, pooled(answers)), **totals, "facts": facts, "budget": machine.budget}


def _answer(fold: Fold, method: str, seed: int, machine: Machine) -> tuple[Judged, dict[str, Any]]:
    prepared = fold.prepared
    if method in SIMPLE:
        return judge(prepared, class_names(prepared), _simple(prepared, method, seed)), {}
    request: dict[str, Any]
    directory = machine.work / "runs" / f"{fold.name}-{method}-{seed}"
    if method in OURS:
        command = [sys.executable, "-m", "scripts.bench.quality_ours"]
        changes = [f"seed={seed}", f"threads={machine.threads}", f"device={machine.device}"]
        request = {"config": fold.config.to_dict(), "overrides": [*OURS[method], *changes]}
    else:
        if machine.peers is None:
            raise Skipped("no peers' environment (--no-peers)")
        command = [str(machine.peers), "-m", "scripts.bench.peers_quality"]
        request = {"problem": str(fold.problem), "method": method, "seed": seed, "budget": machine.budget}
        request |= {"threads": machine.threads, "device": machine.device}
    probabilities, facts = ask(command, request, directory, machine)
    classes = facts.pop("classes", None) or class_names(prepared)
    return judge(prepared, classes, probabilities), facts


def ask(
    command: Sequence[str], request: Mapping[str, Any], directory: Path, machine: Machine
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """The answer of a process to a request: probabilities (N, K) and facts.

    Raises:
        Skipped: its time is up, or it failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    asked, out, log = (directory / name for name in ("request.json", "answer.npz", "log.txt"))
    out.unlink(missing_ok=True)
    asked.write_text(json.dumps({**request, "out": str(out.resolve())}), encoding="utf-8")
    threads = {f"{library}_NUM_THREADS": str(machine.threads) for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    started = time.perf_counter()
    try:
        with log.open("w", encoding="utf-8") as said:
            done = subprocess.run(  # noqa: S603
                [*command, str(asked.resolve())],
                stdout=said,
                stderr=said,
                cwd=ROOT,
                env=os.environ | threads,
                timeout=machine.budget,
            )
    except subprocess.TimeoutExpired:
        raise Skipped(f"not done in {machine.budget:.0f} s") from None
    if done.returncode or not out.exists():
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no word"]
        raise Skipped(f"failed with {done.returncode}: {lines[-1][:300]} (see {log})")
    with np.load(out, allow_pickle=False) as stored:
        facts: dict[str, Any] = json.loads(str(stored["facts"]))
        probabilities = stored["probabilities"].astype(np.float64)
    facts.setdefault("whole_seconds", time.perf_counter() - started)
    return probabilities, facts


def _simple(prepared: Prepared, method: str, seed: int) -> NDArray[np.float64]:
    """Probabilities by the project's baselines that look at nothing, (N, K)."""
    names = class_names(prepared)
    counts = prepared.report["train"]["classes"]
    labels = np.repeat(np.array(list(counts), dtype=object), list(counts.values()))
    asked = sum(int(mask.sum()) for mask in prepared.labelled(TEST))
    if method == "majority":
        return np.tile(np.array(names) == majority(labels), (asked, 1)).astype(np.float64)
    drawn = random_answers(labels, asked, seed)
    found = np.zeros((asked, len(names)))
    found[:, [names.index(name) for name in drawn.classes]] = drawn.probabilities
    return found
