"""Modules without their numbers: names, shapes and types of weights, however many, take next to no memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_FRESH = (torch.empty, torch.randn, torch.zeros, torch.ones)
_FILLED = ("mul", "mul_", "__mul__", "__imul__", "normal_", "uniform_", "zero_", "fill_", "copy_", "detach_")


class Outline(TorchFunctionMode):
    """Within the block, weights are made on the device `meta`, and filling and scaling them does nothing.

    Tables that are computed, such as those of positions, are computed as ever. PyTorch's own way, the block
    `with torch.device("meta")`, gives the same shapes, but imports a compiler for the first product: seconds.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """What every function of PyTorch goes through."""
        kwargs = kwargs or {}
        if func in _FRESH and kwargs.get("device") is None:
            return torch.empty(*args, **{**kwargs, "device": "meta"})
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        if args and isinstance(args[0], torch.Tensor) and args[0].is_meta and func.__name__ in _FILLED:
            return args[0]
        return func(*args, **kwargs)
