"""JSON from strangers: what it says has one meaning, or it is refused, and small text does not become huge values."""

from __future__ import annotations

import json
import math
from typing import Any

MOST_DEPTH = 100
"""Objects and lists within each other."""
MOST_CONTAINERS = 2_000_000
"""Objects and lists: an empty one takes two bytes of text and more than sixty of memory."""


class TooManyParts(ValueError):
    """It holds more than `MOST_CONTAINERS` lists and objects."""


def parse_json(data: bytes) -> dict[str, Any]:
    """The object that JSON in UTF-8 holds.

    Raises:
        TooManyParts: it holds too many lists and objects.
        ValueError: it is no JSON object; a key is there twice; a number is no finite float or does not fit into 64
            bits; a text has half of a pair of surrogates; it is nested too deeply.
    """
    if data.count(b"[") + data.count(b"{") > MOST_CONTAINERS:
        raise TooManyParts(f"more than {MOST_CONTAINERS} lists and objects")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=_float,
            parse_int=_integer,
            parse_constant=_constant,
        )
    except RecursionError as error:
        raise ValueError(f"nested more than {MOST_DEPTH} deep") from error
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    _check_depth(value)
    if b"\\u" in data:
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # an error that is a ValueError
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"the number {text[:20]}... is too large" if len(text) > 20 else f"{text} is too large")
    return int(text)


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [child for node in level for child in _children(node) if isinstance(child, (dict, list))]
        if not level:
            return
    raise ValueError(f"nested more than {MOST_DEPTH} deep")


def _children(node: dict[str, Any] | list[Any]) -> Any:
    return node.values() if isinstance(node, dict) else node
