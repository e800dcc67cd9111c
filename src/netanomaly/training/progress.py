"""How far a training has come: all that it takes to go on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from netanomaly.errors import BundleError
from netanomaly.training.checkpoint import Checkpoint, check_weights, load_checkpoint, save_checkpoint
from netanomaly.training.engine import EpochSums
from netanomaly.training.recipe import EpochRecord
from netanomaly.training.world import ALONE, World


@dataclass
class Progress:
    """Where a training stands, between two steps.

    Attributes:
        step: batches done in all.
        epoch: epochs that are finished, validation included.
        batch: batches done of the epoch that has begun.
        sums: of that epoch.
        rate: learning rate of the last step.
        best_score, best_epoch: of the best epoch on validation; 0: none yet.
        last_score: of the last epoch.
        seconds: spent so far.
        records: a line of the log per finished epoch.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    sums: EpochSums = field(default_factory=EpochSums)
    rate: float = 0.0
    best_epoch: int = 0
    best_score: float = -1.0
    last_score: float = -1.0
    seconds: float = 0.0
    records: list[EpochRecord] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """As plain values; `from_facts` gives them back exactly."""
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Progress:
        """From what `facts` gave. Raises KeyError or TypeError for anything else."""
        plain = dict(facts)
        sums = EpochSums(**plain.pop("sums"))
        records = [EpochRecord(**record) for record in plain.pop("records")]
        return cls(**plain, sums=sums, records=records)


def save_progress(
    path: Path, progress: Progress, model: nn.Module, best: Mapping[str, Tensor], optimizer: torch.optim.Optimizer
) -> None:
    """Write everything that the next step depends on: weights, the optimiser's state, random numbers, the position."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": tensor for name, tensor in moments.items()}
    save_checkpoint(path, tensors | _random_states(model), progress.facts())


def load_progress(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, world: World = ALONE
) -> tuple[Progress, dict[str, Tensor]]:
    """Go on from a checkpoint: model, optimiser and random numbers are as they were; where it stood, the best weights.

    Raises:
        BundleError: the file is damaged, or of another model.
    """
    saved = load_checkpoint(path, world)
    try:
        progress = Progress.from_facts(saved.facts)
        weights, best = _group(saved, "model"), _group(saved, "best")
        for some in (weights, best):
            check_weights(some, model.state_dict())
        model.load_state_dict(weights)
        _load_optimizer(optimizer, _group(saved, "optimizer"))
        _load_random_states(_group(saved, "random"), model)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BundleError(f"{path}: not of this training ({error}); --overwrite starts afresh") from error
    return progress, best


def _group(saved: Checkpoint, group: str) -> dict[str, Tensor]:
    """The tensors whose names start with `group.`, without it."""
    start = f"{group}."
    return {name.removeprefix(start): tensor for name, tensor in saved.tensors.items() if name.startswith(start)}


def _load_optimizer(optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in moments.items():
        number, _, moment = name.partition(".")
        state.setdefault(int(number), {})[moment] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _random_states(model: nn.Module) -> dict[str, Tensor]:
    states = {"random.cpu": torch.get_rng_state()}
    device = next(model.parameters()).device
    if device.type == "cuda":
        states["random.cuda"] = torch.cuda.get_rng_state(device)
    return states


def _load_random_states(states: Mapping[str, Tensor], model: nn.Module) -> None:
    device = next(model.parameters()).device
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:  # else it was trained on a CPU so far
        torch.cuda.set_rng_state(states["cuda"], device)
