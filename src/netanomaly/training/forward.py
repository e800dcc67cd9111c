"""The model as a step of training calls it: in which precision, compiled or not, alone or with other processes.

Weights stay where they are and keep their names: whatever is wrapped around the model here is thrown away after
training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from netanomaly.errors import ConfigError
from netanomaly.model.exact import leave_out_of_compiled
from netanomaly.training.world import World

Precision = Literal["float32", "bfloat16"]
Forward = Callable[[Tensor, Tensor, int], Tensor]
"""Channels (B, S, C), valid rows (B, S) and stride to logits (B, T, K), float32."""


def training_forward(
    model: nn.Module, world: World, device: torch.device, precision: Precision = "float32", compiled: bool = False
) -> Forward:
    """The model's forward pass for training; a backward pass through it leaves gradients in the model's parameters.

    Args:
        world: with others, gradients are the mean over the processes.
        precision: bfloat16: products of matrices are of bfloat16, parameters and their gradients stay float32.
        compiled: by torch.compile, at the first call.
    """
    if compiled:
        leave_out_of_compiled()
    inner: nn.Module = torch.compile(model) if compiled else model  # type: ignore[assignment]
    if not world.is_alone:
        with world.watched():
            inner = DistributedDataParallel(inner)

    def forward(channels: Tensor, valid: Tensor, stride: int) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            logits: Tensor = inner(channels, valid, stride)
        return logits.float()

    if not (compiled or precision == "bfloat16" or not world.is_alone):
        return model  # as it is
    return forward


@contextmanager
def compiler_errors(compiled: bool) -> Iterator[None]:
    """What torch.compile cannot do in the block is told as an error of the config.

    Raises:
        ConfigError: it cannot compile the model, for example for want of a compiler.
    """
    if not compiled:
        yield
        return
    from torch._dynamo.exc import TorchDynamoException

    try:
        yield
    except TorchDynamoException as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"training.compile: torch.compile cannot compile the model here ({first}); on a CPU it needs a C++ "
            "compiler; set training.compile: false"
        ) from error
