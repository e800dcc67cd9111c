"""A few small processes that train or score together, with the environment that torchrun gives."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from recipes import recipe

from classifiers import classifier
from netanomaly.data.batches import IGNORED, ChannelSegment
from netanomaly.errors import ProcessLost
from netanomaly.interrupts import Terminated
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.training import trainer
from netanomaly.training.engine import SCORING_STRETCH, segment_logits
from netanomaly.training.world import World, joined

CHANNELS, CLASSES = 3, 3


def segments() -> list[ChannelSegment]:
    """Five of different lengths, so that no number of processes divides the batches; some rows are not to be learnt."""
    result = []
    for seed, rows in enumerate((40, 33, 57, 20, 9)):
        rng = np.random.default_rng(seed)
        channels = rng.standard_normal((rows, CHANNELS)).astype(np.float32)
        targets = 1 + np.sign(channels[:, 0]).astype(np.int64)
        targets[np.abs(channels[:, 0]) < 0.3] = 1
        targets[rng.random(rows) < 0.2] = IGNORED
        result.append(ChannelSegment(channels, np.full(rows, True), targets))
    return result


def counts() -> torch.Tensor:
    targets = np.concatenate([segment.targets for segment in segments()])
    return torch.from_numpy(np.bincount(targets[targets != IGNORED], minlength=CLASSES)).double()


def model(**choices: Any) -> NetworkAnomalyClassifier:
    return classifier(
        channels=CHANNELS, classes=CLASSES, seed=0, **{"window": 4, "width": 8, "stem": 1, "dropout": 0.0, **choices}
    )


def train(
    out: Path,
    *,
    dropout: float = 0.0,
    stop_at: int | None = None,
    die: tuple[int, int] | None = None,
    **changes: Any,
) -> None:
    """Train ten steps and write what became of it.

    Args:
        stop_at: the last process hears SIGTERM in that step.
        die: process and step in which it gets SIGKILL.
    """
    with joined() as world:
        one = model(dropout=dropout)
        given = segments()

        def score() -> float:
            logits = segment_logits(one, given, CLASSES, one.history_rows, torch.device("cpu"), world)
            hits = [
                (rows.argmax(1) == segment.targets)[segment.targets != IGNORED]
                for rows, segment in zip(logits, given, strict=True)
            ]
            return float(np.concatenate(hits).mean())

        if stop_at is not None:
            signal.signal(signal.SIGTERM, _terminate)
            if world.rank == world.size - 1:
                _at_step(one, stop_at, lambda: signal.raise_signal(signal.SIGTERM))
        if die is not None and world.rank == die[0]:
            _at_step(one, die[1], lambda: os.kill(os.getpid(), signal.SIGKILL))
        standard = {"patience": None, "jitter": 0.0, "class_weights": "balanced", "epochs": 2, "batch_size": 3}
        stopped = ""
        try:
            trainer.fit(
                one,
                given,
                score,
                counts(),
                one.history_rows,
                recipe(**{**standard, **changes}),
                seed=5,
                device=torch.device("cpu"),
                log_path=out / "log",
                checkpoint=out / "part",
                world=world,
            )
        except Terminated:
            stopped = "terminated"
        except ProcessLost as lost:
            sys.exit(lost.exit_code)
        found = {"weights": one.state_dict(), "stopped": stopped}
        torch.save(found, out / f"found-{world.rank}")


def _terminate(*_: Any) -> None:
    raise Terminated


def _at_step(one: torch.nn.Module, step: int, work: Callable[[], object]) -> None:
    """Do this in the middle of a step."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += one.training
        if one.training and calls == step:
            work()

    one.register_forward_pre_hook(count)


def score(out: Path) -> None:
    """Logits of many short segments and a long one, each stretch computed by one process."""
    with joined() as world:
        logits = logits_of_many(world)
        torch.save({"logits": logits}, out / f"found-{world.rank}")


def logits_of_many(world: World) -> NDArray[np.float32]:
    """Of 7 stretches, which neither two nor three processes divide, the last one of a single row. (rows, K)"""
    one, given = model(), many()
    found = segment_logits(one, given, CLASSES, one.history_rows, torch.device("cpu"), world)
    return np.concatenate([rows[segment.targets != IGNORED] for rows, segment in zip(found, given, strict=True)])


def many() -> list[ChannelSegment]:
    """Five short segments, and one of a stretch and a row."""
    rng = np.random.default_rng(9)
    channels = rng.standard_normal((SCORING_STRETCH + 1, CHANNELS)).astype(np.float32)
    long = ChannelSegment(channels, np.full(len(channels), True), np.zeros(len(channels), dtype=np.int64))
    return [*segments(), long]


def free_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _begin(rank: int, size: int, port: int, work: Callable[..., object], out: Path, keys: dict[str, Any]) -> None:
    """A process, told what torchrun tells it."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    work(out, **keys)


def start(size: int, work: Callable[..., object], out: Path, **keys: Any) -> list[BaseProcess]:
    """So many processes that do the work. They are forked, where that exists, from one that has imported everything."""
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    context.set_forkserver_preload(["netanomaly.training.trainer", "netanomaly.build_model"])
    out.mkdir(exist_ok=True)
    port = free_port()
    processes: list[BaseProcess] = [
        context.Process(target=_begin, args=(rank, size, port, work, out, keys))
        for rank in range(size)  # type: ignore[attr-defined]
    ]
    for process in processes:
        process.start()
    return processes


def run(size: int, work: Callable[..., object], out: Path, **keys: Any) -> list[dict[str, Any]]:
    """What each of the processes has found."""
    for process in start(size, work, out, **keys):
        process.join(240)
        assert process.exitcode == 0
    return [torch.load(out / f"found-{rank}", weights_only=False) for rank in range(size)]
