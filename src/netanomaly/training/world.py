"""The processes that train one model together: who they are, and what they say to each other.

`torchrun` starts them and tells each its number by its environment; without it there is one, which talks to nobody.
Numbers and bytes go by gloo, gradients on CUDA by NCCL.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from netanomaly.errors import BundleError, ConfigError, DataError, NetanomalyError, ProcessLost, TrainingError

PATIENCE = timedelta(hours=1)
"""How long a process waits for another one that lives: longer than it takes to settle what a bundle decides."""
_SHARED = {kind.__name__: kind for kind in (NetanomalyError, ConfigError, DataError, BundleError, TrainingError)}
_OF_LOST_PROCESSES = ("gloo", "nccl", "connection", "connectionreset", "socket", "timed out", "broken pipe")
"""What the messages of collectives hold if a process that takes part in them is gone."""
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class World:
    """This process among those that train together.

    Attributes:
        rank: its number, from 0.
        size: of how many.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it is the one that writes files and tells people."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other."""
        return self.size == 1

    def share(self, items: Sequence[_Item]) -> Sequence[_Item]:
        """Those that fall to this process: every item falls to exactly one."""
        return items[self.rank :: self.size]

    def sum(self, values: Tensor) -> Tensor:
        """The sum over the processes, on the CPU in the type of `values`; the same bits in every process."""
        if self.is_alone:
            return values
        total = values.detach().cpu().contiguous()
        with self.watched():
            dist.all_reduce(total)
        return total

    def broadcast_bytes(self, content: bytes | None, source: int = 0) -> bytes:
        """What the process `source` has, in every process."""
        if self.is_alone:
            return content or b""
        with self.watched():
            length = torch.tensor([len(content or b"")])
            dist.broadcast(length, source)
            sent = torch.zeros(int(length), dtype=torch.uint8)
            if content and self.rank == source:
                sent = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            dist.broadcast(sent, source)
        return sent.numpy().tobytes()

    def of_first(self, work: Callable[[], bytes]) -> bytes:
        """What the work gives in the first process, in every process; its errors too."""
        content = None
        with self.alike():
            if self.is_first:
                content = work()
        return self.broadcast_bytes(content)

    def first_says(self, what: bool) -> bool:
        """Whether the first process says so."""
        return what if self.is_alone else self.broadcast_bytes(b"yes" if what else b"no") == b"yes"

    @contextmanager
    def alike(self) -> Iterator[None]:
        """The block ends well in every process, or in every one with the error of the first that had one.

        It is about errors that are for people; they are told once, by the first process. Nothing in the block may wait
        for other processes.
        """
        if self.is_alone:
            yield
            return
        error: NetanomalyError | None = None
        try:
            yield
        except NetanomalyError as found:
            error = found
        failed = torch.zeros(self.size)
        failed[self.rank] = error is not None
        places = self.sum(failed).nonzero().flatten().tolist()
        if not places:
            return
        about = None if error is None else json.dumps([type(error).__name__, str(error)]).encode()
        kind, message = json.loads(self.broadcast_bytes(about, places[0]))
        where = f"process {places[0]} of {self.size}: " if places[0] else ""
        raised = _SHARED.get(kind, NetanomalyError)(f"{where}{message}")
        raised.is_told = not self.is_first
        raise raised from error

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A process that ends while the block waits for it is a `ProcessLost`."""
        try:
            yield
        except RuntimeError as error:
            if self.is_alone or not _is_of_lost_process(error):
                raise
            lost = ProcessLost("a process of the training has ended; what was saved goes on with --resume")
            lost.is_told = self.rank > 1  # the first may be the one that is gone: two tell it, not all
            raise lost from error

    def draw_anew(self, seed: int, step: int) -> None:
        """Let the random numbers of a step follow from seed, step and rank, so that no process has a state to save.

        Alone it does nothing: there they go on from where they were.
        """
        if not self.is_alone:
            torch.manual_seed(int(np.random.SeedSequence([seed, step, self.rank]).generate_state(1)[0]))

    def device(self, device: torch.device) -> torch.device:
        """The device of this process: of several CUDA devices its own.

        Raises:
            ConfigError: there are fewer devices than processes on this machine.
        """
        if self.is_alone or device.type != "cuda":
            return device
        place, there = int(os.environ.get("LOCAL_RANK", self.rank)), torch.cuda.device_count()
        if place >= there:
            raise ConfigError(
                f"device: this machine has {there} CUDA devices and more processes than that; start "
                f"torchrun with --nproc-per-node={there}"
            )
        torch.cuda.set_device(place)
        return torch.device("cuda", place)


ALONE = World()


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process tells people what comes of the work, by what torchrun says; also after the work."""
    return _wanted_size(environment) <= 1 or environment.get("RANK", "0") == "0"


@contextmanager
def joined() -> Iterator[World]:
    """The world of the processes that torchrun has started, for the block; of this one alone without torchrun.

    In all but the first nothing is logged but errors.

    Raises:
        ConfigError: the environment says that there are others, and not how to find them.
    """
    if _wanted_size(os.environ) <= 1:
        yield ALONE
        return
    try:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(
            f"the processes of the training do not find each other ({error}); the environment says WORLD_SIZE="
            f"{os.environ['WORLD_SIZE']}: start with torchrun, or unset it"
        ) from error
    world, logger = World(dist.get_rank(), dist.get_world_size()), logging.getLogger("netanomaly")
    level = logger.level
    if not world.is_first:
        logger.setLevel(logging.ERROR)
    try:
        yield world
    finally:
        logger.setLevel(level)
        with suppress(RuntimeError):  # others may be gone
            dist.destroy_process_group()


def _wanted_size(environment: Mapping[str, str]) -> int:
    size = environment.get("WORLD_SIZE", "1") if "RANK" in environment else "1"
    return int(size) if size.isdecimal() else 1


def _is_of_lost_process(error: RuntimeError) -> bool:
    said = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in said for word in _OF_LOST_PROCESSES)
