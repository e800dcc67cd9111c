"""pydantic's findings about a config, told as one line for people: path, what was found, what to do."""

from __future__ import annotations

import difflib
import re
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_OF_SEQUENCE_MODEL = (
    *("depth", "share_weights", "n_heads", "n_kv_heads", "score", "scale", "normalise", "positions", "mask", "prefix"),
    *("local", "memory", "feed_forward", "patch", "execution", "path", "architecture"),
)
ELSEWHERE = {
    **{f"model.{key}": f"model.sequence_model.{key}" for key in _OF_SEQUENCE_MODEL},
    **{f"model.sequence_model.{key}": f"model.{key}" for key in ("window", "width", "stem", "read_out", "dropout")},
    "model.position_base": "model.sequence_model.positions.base",
    "model.kind": "model.sequence_model.kind",
}
"""Keys that people look for in the wrong section, some of which stood there before bundle format 2."""


def explain(error: ValidationError, name: str, root: type[BaseModel]) -> str:
    """Every problem once, each as `name: path: message`."""
    told: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        path, message = _explain_one(dict(problem), root)
        if problem["type"] == "too_short" and any(known.startswith(path) for known in told):
            continue  # the list is only short because its items were wrong, and those are told already
        told.setdefault(path, f"{name}: {path}: {message}" if path else f"{name}: {message}")
    return "; ".join(told.values())


def _explain_one(problem: dict[str, Any], root: type[BaseModel]) -> tuple[str, str]:
    kind = problem["type"]
    location, section = _follow(problem["loc"], root, is_key=kind == "extra_forbidden")
    path = ".".join(str(part) for part in location)
    if kind == "extra_forbidden":
        if path in ELSEWHERE:
            return path, f"this key is {ELSEWHERE[path]}"
        known = list(section.model_fields)
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        return path, f"unknown key; {f'did you mean {close[0]!r}?' if close else 'known here: ' + ', '.join(known)}"
    if kind == "missing":
        return path, "this key is required"
    if kind == "union_tag_not_found":
        return path, "this section needs the key 'by'"
    if kind == "union_tag_invalid":
        key = problem["ctx"]["discriminator"].strip("'")
        return path, f"{key}: {problem['ctx']['tag']!r} is not one of {problem['ctx']['expected_tags']}"
    found = problem.get("input")
    message = problem["msg"].removeprefix("Value error, ")
    if kind == "tuple_type":
        message = "expected a list, like [a, b]"
    elif kind == "too_short":
        message = "give at least one"
    if isinstance(found, (str, int, float, bool)) and repr(found) not in message:
        message += f", found {found!r}"
    return path, message[:1].lower() + message[1:]


def _follow(location: tuple[Any, ...], root: type[BaseModel], is_key: bool) -> tuple[list[Any], type[BaseModel]]:
    """The keys of the YAML in pydantic's path, and the last section on the way.

    pydantic's path also names the branch of a union that it tried; such a part is no key of the YAML. With `is_key`
    the last part is one for certain, whatever it is called.
    """
    keys: list[Any] = []
    section = root
    branches: dict[str, type[BaseModel]] = {}
    last = len(location) - 1 if is_key else len(location)
    for index, part in enumerate(location):
        if part in branches:
            section, branches = branches[part], {}
            continue
        if isinstance(part, str) and part in section.model_fields:
            sections = _sections_in(section.model_fields[part].annotation)
            if len(sections) == 1:
                section = sections[0]
            else:
                branches = {tag: section for section in sections for tag in _tags(section)}
        elif (
            index < last
            and isinstance(part, str)
            and (not re.fullmatch(r"\w+", part) or part in ("int", "str", "float"))
        ):
            continue
        keys.append(part)
    return keys, section


def _tags(section: type[BaseModel]) -> tuple[str, ...]:
    """The words that choose a section among several."""
    field = section.model_fields.get("by") or section.model_fields["kind"]
    return get_args(field.annotation)


def _sections_in(annotation: Any) -> list[type[BaseModel]]:
    """The sections that a field's type speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for part in get_args(annotation) for section in _sections_in(part)]
