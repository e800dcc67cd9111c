"""Look-ups that are written out step by step stay in float32 where autocast makes products of matrices less exact."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor

Given = ParamSpec("Given")
_LOOKUPS: list[Callable[..., Tensor]] = []
_OUTSIDE: dict[Callable[..., Tensor], Callable[..., Tensor]] = {}
"""The same look-ups as what torch.compile does not look into; empty until something is to be compiled."""


def in_float32(lookup: Callable[Given, Tensor]) -> Callable[Given, Tensor]:
    """The look-up, without autocast and with float32 for what autocast has made of its arguments.

    Their forward and backward passes add into memory of their own, whose type autocast does not follow, and their
    weights are exponentials.
    """
    _LOOKUPS.append(lookup)

    @wraps(lookup)
    def exact(*given: Given.args, **named: Given.kwargs) -> Tensor:
        device = next(one for one in (*given, *named.values()) if isinstance(one, Tensor)).device.type
        found = _OUTSIDE.get(lookup, lookup)
        if not torch.is_autocast_enabled(device):
            return found(*given, **named)
        with torch.autocast(device, enabled=False):
            return found(*map(_exact, given), **{name: _exact(one) for name, one in named.items()})

    return exact


def leave_out_of_compiled() -> None:
    """From here on torch.compile calls these look-ups as they are: their loops would take minutes to compile."""
    for lookup in _LOOKUPS:
        _OUTSIDE.setdefault(lookup, torch.compiler.disable(lookup))


def _exact(one: Any) -> Any:
    half = isinstance(one, Tensor) and one.is_floating_point() and one.dtype.itemsize < 4
    return one.float() if half else one
