"""Several processes that train one model together come to what one comes to."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import torch
from processes import CLASSES, logits_of_many, many, run, segments, start, train

from netanomaly.data.batches import IGNORED, batches, stretches
from netanomaly.interrupts import PatientSignals
from netanomaly.training.sharding import own_batches
from netanomaly.training.stops import Stops
from netanomaly.training.world import ALONE, World, is_first_process, joined

STEPS = 10
RANDOM = {"dropout": 0.3, "jitter": 0.2}
Weights = dict[str, torch.Tensor]


def _distance(one: Weights, other: Weights) -> float:
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def _log(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten steps of one process, with class weights."""
    out = tmp_path_factory.mktemp("alone")
    train(out)
    return out


def _same_training(size: int, alone: Path, out: Path) -> None:
    expected = torch.load(alone / "found-0", weights_only=False)
    found = run(size, train, out)
    assert all(_distance(one["weights"], found[0]["weights"]) == 0 for one in found)
    assert _distance(found[0]["weights"], expected["weights"]) <= 1e-6
    for ours, theirs in zip(_log(out), _log(alone), strict=True):  # of the first process alone
        assert ours["steps"] == theirs["steps"] <= STEPS
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-6)
        assert ours["gradient_norm"] == pytest.approx(theirs["gradient_norm"], abs=1e-5)
        assert ours["validation_macro_f1"] == theirs["validation_macro_f1"]
    assert _log(out)[-1]["steps"] == STEPS


def test_two_processes_come_to_the_weights_of_one(alone: Path, tmp_path: Path) -> None:
    _same_training(2, alone, tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 4])
def test_more_processes_come_to_the_weights_of_one(alone: Path, tmp_path: Path, size: int) -> None:
    """Of four, one has no stretch in a batch of three."""
    _same_training(size, alone, tmp_path / str(size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_every_stretch_of_a_batch_falls_to_one_process(size: int) -> None:
    given = segments()
    pieces = stretches(given, 16, np.random.default_rng(0))
    wholes = list(batches(given, pieces, 16, 3, 3))
    shares = [list(own_batches(given, pieces, 16, 3, 3, World(rank, size))) for rank in range(size)]
    for number, whole in enumerate(wholes):
        parts = [share[number] for share in shares]
        held = [part.targets for part in parts if (part.targets != IGNORED).any()]
        found = torch.cat(held)
        assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, whole.targets.tolist()))
        assert all(len(part.channels) for part in parts)  # each takes part in every step


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_every_item_falls_to_one_process(size: int) -> None:
    items = list(range(10))
    assert sorted(item for rank in range(size) for item in World(rank, size).share(items)) == items


def _same_logits(size: int, out: Path) -> None:
    expected = logits_of_many(ALONE)
    for found in run(size, processes.score, out):
        np.testing.assert_allclose(found["logits"], expected, rtol=0, atol=1e-6)
        assert len(found["logits"]) == sum((segment.targets != IGNORED).sum() for segment in many())
        counted = [np.bincount(logits.argmax(1), minlength=CLASSES).tolist() for logits in (found["logits"], expected)]
        assert counted[0] == counted[1]


def test_two_processes_score_every_row_once(tmp_path: Path) -> None:
    _same_logits(2, tmp_path / "two")


@pytest.mark.slow
def test_three_processes_score_every_row_once(tmp_path: Path) -> None:
    _same_logits(3, tmp_path / "three")


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_a_signal_of_one_process_ends_all_after_one_step_and_they_go_on(tmp_path: Path, size: int) -> None:
    whole = run(size, train, tmp_path / "whole", **RANDOM)
    cut = tmp_path / "cut"
    found = run(size, train, cut, stop_at=7, **RANDOM)
    assert [one["stopped"] for one in found] == ["terminated"] * size
    again = run(size, train, cut, **RANDOM)
    assert _distance(again[0]["weights"], whole[0]["weights"]) <= (0 if size == 2 else 1e-6)
    assert [line["steps"] for line in _log(tmp_path / "whole")] == [line["steps"] for line in _log(cut)[-2:]]


@pytest.mark.slow
def test_one_process_goes_on_where_two_were_and_the_other_way_round(alone: Path, tmp_path: Path) -> None:
    expected = torch.load(alone / "found-0", weights_only=False)["weights"]
    for first, second in ((2, 1), (1, 2)):
        out = tmp_path / f"{first}-{second}"
        assert run(first, train, out, stop_at=7)[0]["stopped"]
        assert _distance(run(second, train, out)[0]["weights"], expected) <= 1e-6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills processes")
@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_is_killed_ends_the_other_with_a_word_and_nothing_is_lost(
    alone: Path, tmp_path: Path, victim: int
) -> None:
    work = start(2, train, tmp_path, save_steps=1, die=(victim, 7))
    for process in work:
        process.join(120)
    assert work[victim].exitcode == -signal.SIGKILL
    assert work[1 - victim].exitcode == 5
    expected = torch.load(alone / "found-0", weights_only=False)["weights"]
    assert _distance(run(1, train, tmp_path)[0]["weights"], expected) <= 1e-6


def test_alone_nothing_is_said_and_nothing_changes() -> None:
    with joined() as world:
        assert world == ALONE and world.is_first and world.is_alone
        values = torch.tensor([1.0, 2.0])
        assert world.sum(values) is values and world.of_first(lambda: b"x") == b"x" and world.first_says(True)
        assert Stops(world, PatientSignals()).add_up(values) is values
        state = torch.get_rng_state()
        world.draw_anew(0, 0)
        assert torch.equal(torch.get_rng_state(), state)
        with pytest.raises(ZeroDivisionError), world.alike():
            raise ZeroDivisionError


def test_random_numbers_of_a_step_are_those_of_seed_step_and_rank() -> None:
    drawn = set()
    with torch.random.fork_rng(devices=[]):
        for seed in range(3):
            for step in range(3):
                for rank in range(3):
                    for _ in range(2):
                        World(rank, 3).draw_anew(seed, step)
                        drawn.add(float(torch.rand(())))
    assert len(drawn) == 27


@pytest.mark.parametrize(
    ("environment", "first"),
    [({}, True), ({"RANK": "0", "WORLD_SIZE": "2"}, True), ({"RANK": "1", "WORLD_SIZE": "2"}, False)],
)
def test_who_is_first_follows_from_the_environment(environment: dict[str, str], first: bool) -> None:
    assert is_first_process(environment) is first
