"""Configs as plain values, changed at one place, and what is said about those that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from netanomaly.config import parse_config
from netanomaly.errors import ConfigError


def tree(path: str = "", value: Any = None) -> dict[str, Any]:
    """The smallest config, with the value at the path."""
    result: dict[str, Any] = {"data": {"metrics": ["rtt"]}}
    place: Any = result
    *sections, key = path.split(".")
    for section in sections:
        place = place.setdefault(section, {})
    if path:
        place[key] = value
    return result


def refuse(given_tree: dict[str, Any]) -> str:
    """The message, one line."""
    with pytest.raises(ConfigError) as caught:
        parse_config(given_tree, "c.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)
