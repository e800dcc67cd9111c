"""YAML as people expect it: `1e-3` is a number, `no` and `12:30` are words, a key given twice is an error."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from netanomaly.errors import ConfigError
from netanomaly.files import other_kind

MOST_BYTES = 2**22
"""Of a config."""
MOST_VALUES = 100_000
"""Of a config, with its aliases written out."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalar rules of YAML 1.2 and no repeated keys."""


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes every text which YAML 1.1 or 1.2 would read as something else."""


# Fresh resolver tables. The loader's starts empty: inheriting PyYAML's would keep `no`, `010` and dates as YAML 1.1
# reads them. The dumper keeps those and gets the rules of 1.2 as well.
_Loader.yaml_implicit_resolvers = {}
_Dumper.yaml_implicit_resolvers = copy.deepcopy(yaml.SafeDumper.yaml_implicit_resolvers)
for _tag, _pattern, _first in [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
]:
    for _table in (_Loader, _Dumper):
        _table.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _construct_int(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    return int(loader.construct_scalar(node))  # type: ignore[arg-type]  # decimal: 010 is ten, not eight


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                problem=f"the key '{key}' is given twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for, with every alias written out: a few lines may stand for billions."""
    if id(node) not in known:
        known[id(node)] = 0  # a node within itself is refused later
        children = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for child in children for part in (child if isinstance(child, tuple) else (child,)))
        known[id(node)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(node)]


def parse_yaml(text: str, name: str) -> Any:
    """The plain Python value of a YAML text.

    Raises:
        ConfigError: the text is not YAML, or gives a key twice; names `name`, line and column.
    """
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > MOST_VALUES:
            raise ConfigError(f"{name}: aliases (*) make more than {MOST_VALUES:,} values of it; write less of them")
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{name}{where}: {error.problem or 'not valid YAML'}") from error
    except (yaml.YAMLError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error
    finally:
        if loader is not None:
            loader.dispose()


def read_yaml(path: Path) -> Any:
    """The value of a YAML file. Raises ConfigError if it cannot be read or parsed."""
    try:
        if (kind := other_kind(path)) not in (None, "a directory"):  # the system says what is wrong with that
            raise ConfigError(f"{path}: is {kind}, not a regular file; save the config to one first")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise ConfigError(f"{path}: {size:,} bytes, a config has {MOST_BYTES:,} at most; is it another file?")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the config: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the config is not UTF-8 text (byte {error.start})") from error
    return parse_yaml(text, str(path))


def dump_yaml(tree: dict[str, Any]) -> str:
    """Plain values as YAML text; `parse_yaml` of it gives them back."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def dump_flow(value: Any) -> str:
    """A plain value as YAML on one line."""
    text = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf")
    )
    return text.strip().removesuffix("\n...")  # which ends a document that is a scalar


def apply_overrides(tree: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A copy of `tree` with each `a.b=value` put in place; values are read as YAML.

    Raises:
        ConfigError: an override is not `key=value`, or its path runs through something that is not a section.
    """
    result = copy.deepcopy(tree)
    for override in overrides:
        path, equals, value = override.partition("=")
        if not equals or not all(path.split(".")):
            raise ConfigError(f"--set {override}: write it as section.key=value")
        *sections, key = path.split(".")
        place: Any = result
        for section in sections:
            if place.get(section) is None:
                place[section] = {}
            place = place[section]
            if not isinstance(place, dict):
                raise ConfigError(f"--set {override}: '{section}' is not a section")
        place[key] = parse_yaml(value, f"--set {override}")
    return result
