"""A tree of plain values by dotted keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}"""
    result: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{above}{key}"
        result |= flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value}
    return result
