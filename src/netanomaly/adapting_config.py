"""The config of a training that starts from a bundle: what shapes the weights is the bundle's to say.

A key that the user left out, or left `auto`, is taken from the bundle. One that was given has to be equal: weights
that were made for another value would mean something else under the new one. Of members of both kinds, those that do
not see the levels may be taken alone.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from netanomaly.config import Config, parse_config
from netanomaly.durations import AUTO, Span, parse_duration, span_rows
from netanomaly.errors import ConfigError

FREE = ("model.dropout", "model.sequence_model.execution")
"""Keys that shape no weight and no answer: how the weights are trained, how answers are computed."""
_SPANS = ("model.window", "model.short_windows", "channels.baselines")


def with_shape_of(config: Config, trained: Config, path: str) -> Config:
    """The config with the `model` and `channels` of a bundle.

    Args:
        config: as the user gave it: which keys are set counts.
        trained: of the bundle.
        path: of the bundle, for errors.

    Raises:
        ConfigError: a key was given that differs from the bundle's, or interval or normal state do.
    """
    _check_rows(config, trained, path)
    interval = parse_duration(str(trained.data.interval))
    differing = [
        found
        for name in ("model", "channels")
        if name in config.model_fields_set
        for found in _differences(getattr(config, name), getattr(trained, name), name, interval)
        if not (found[0] == "channels.levels" and _leaves_out_levels(config, trained))
    ]
    if differing:
        key, given, wanted = differing[0]
        others = f"; so differ {', '.join(name for name, _, _ in differing[1:])}" if differing[1:] else ""
        raise ConfigError(
            f"{key}: {given} is given, but the bundle that training starts from ({path}) has {wanted}, for which its "
            f"weights were made; leave the key out, set it to {wanted}, or train without training.init_from{others}"
        )
    tree = {**config.to_dict(), "model": trained.to_dict()["model"], "channels": trained.to_dict()["channels"]}
    for key in FREE:
        _keep(config, tree, key)
    if _leaves_out_levels(config, trained):
        tree["channels"]["levels"] = "hidden"
    return parse_config(tree)


def _leaves_out_levels(config: Config, trained: Config) -> bool:
    """Whether only those of the bundle's members are wanted that do not see the levels."""
    return (config.channels.levels, trained.channels.levels) == ("hidden", "both")


def _check_rows(config: Config, trained: Config, path: str) -> None:
    """Raise a ConfigError unless rows are as far apart as in the bundle, and calm has the same name."""
    given, wanted = config.data.interval, str(trained.data.interval)
    if given is None:
        raise ConfigError(f"data.interval: this key is required; that of {path} (training.init_from) is {wanted}")
    if parse_duration(given) != parse_duration(wanted):
        raise ConfigError(
            f"data.interval: {given} is given, but the bundle that training starts from ({path}) has {wanted}; its "
            "window, convolution, positions and baselines count rows, which would stand for other spans of time; bring "
            f"data with a row every {wanted}, or train without training.init_from"
        )
    if config.data.normal != trained.data.normal:
        raise ConfigError(
            f"data.normal: '{config.data.normal}' is given, but the bundle that training starts from ({path}) has "
            f"'{trained.data.normal}'; classes go by name: set it to '{trained.data.normal}', and call that state so "
            "in a label column"
        )


def _differences(given: BaseModel, wanted: BaseModel, path: str, interval: int) -> list[tuple[str, Any, Any]]:
    """(key, given, wanted) of the keys that were given and are not those of the bundle."""
    if type(given) is not type(wanted):
        return [(f"{path}.kind", getattr(given, "kind", None), getattr(wanted, "kind", None))]
    found = []
    for name in (name for name in type(given).model_fields if name in given.model_fields_set):
        key, one, other = f"{path}.{name}", getattr(given, name), getattr(wanted, name)
        if isinstance(one, BaseModel) and isinstance(other, BaseModel):
            found += _differences(one, other, key, interval)
        elif key not in FREE and not _is_same(key, one, other, interval):
            found.append((key, _shown(one), _shown(other)))
    return found


def _is_same(key: str, given: Any, wanted: Any, interval: int) -> bool:
    """Whether a given value leaves the bundle's as it is: `auto` does, and a span of as many rows."""
    if key in _SPANS:
        spans, others = ((value if isinstance(value, tuple) else (value,)) for value in (given, wanted))
        if spans == (AUTO,):
            return True
        return len(spans) == len(others) and all(map(_as_long, spans, others, [interval] * len(spans)))
    if key == "channels.kinds":
        return set(given) == set(wanted)  # they have an order of their own
    return bool(given in (AUTO, wanted))


def _as_long(given: Span, wanted: Span, interval: int) -> bool:
    return given == AUTO or span_rows(given, interval) == span_rows(wanted, interval)


def _shown(value: Any) -> Any:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else "null" if value is None else value


def _keep(config: Config, tree: dict[str, Any], key: str) -> None:
    """Put a key that the user gave into the tree; of another kind of sequence model there is none."""
    *sections, name = key.split(".")
    section: Any = config
    place = tree
    for part in sections:
        section, place = getattr(section, part), place[part]
    if name in section.model_fields_set and name in place:
        place[name] = getattr(section, name)
