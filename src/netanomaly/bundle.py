"""The bundle: the directory that a training run saves and `load` reads. Tensors and JSON only, so loading runs no code.

model.safetensors   weights
bundle.json         format version, config, metrics, channels, classes, decisions, how it was trained
manifest.json       size and SHA-256 of both; see `bundle_files`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save
from torch import Tensor

from netanomaly.bundle_files import (
    AGAIN,
    CONTENT,
    WEIGHTS,
    Manifest,
    check_format,
    check_keys,
    consistent,
    json_object,
    read_file,
    replace_files,
)
from netanomaly.bundle_fit import check_weights, expected_weights
from netanomaly.bundle_formats import FORMAT, up_to_date
from netanomaly.config import Config, parse_config
from netanomaly.data.channels import Channels
from netanomaly.decisions import Decisions
from netanomaly.durations import AUTO, parse_duration, span_rows
from netanomaly.errors import BundleError, ConfigError
from netanomaly.files import json_text

_WRONG = (
    ConfigError,
    SafetensorError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What reading values that are not as expected may raise, in this package, PyTorch or safetensors."""


@dataclass(frozen=True)
class Bundle:
    """Everything needed to predict.

    Attributes:
        config: resolved: every key, every metric by name.
        classes: class names in the order of the logits.
        weights: the model's parameters, on the CPU.
        decisions: how logits become probabilities, and rows become alarms.
        facts: how it came about (training, data, versions); for people, not needed to predict.
    """

    config: Config
    channels: Channels
    classes: tuple[str, ...]
    weights: dict[str, Tensor]
    decisions: Decisions
    facts: dict[str, Any]


def save_bundle(directory: Path, bundle: Bundle) -> None:
    """Write the bundle: all of it, or nothing and the one that is there stays.

    Raises:
        BundleError: it is larger than what `load_bundle` reads.
        OSError: it cannot be written.
    """
    content = {
        "format": FORMAT,
        "classes": list(bundle.classes),
        "config": bundle.config.to_dict(),
        "channels": bundle.channels.state(),
        "decisions": bundle.decisions.state(),
        "facts": bundle.facts,
    }
    text = json_text(content).encode("utf-8")
    weights = {name: weight.contiguous() for name, weight in bundle.weights.items()}
    replace_files(
        directory, {WEIGHTS: lambda path: _write(path, save(weights)), CONTENT: lambda path: _write(path, text)}
    )


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def load_bundle(directory: Path) -> Bundle:
    """Read a bundle and check it; nothing is written, and nothing of it is run.

    Raises:
        BundleError: the directory holds no bundle, or one that is damaged, contradicts itself or is of an unknown
            format.
    """
    return consistent(directory, _load)


def _load(directory: Path, manifest: Manifest) -> Bundle:
    """Content first: it says what the weights have to be, so that no more than that is read."""
    path, saved = directory / CONTENT, manifest.files
    written = json_object(read_file(directory, CONTENT, saved[CONTENT]), path)
    check_format(written.get("format"), path)
    with _told(path):
        content, _ = up_to_date(written["format"], written, {})
        check_keys(content, ("format", "classes", "config", "channels", "decisions", "facts"), path)
        config, classes = parse_config(content["config"], str(path)), _class_names(content["classes"])
        channels = Channels.from_state(content["channels"])
        decisions = Decisions.from_state(content["decisions"], classes, config.data.normal)
        _check_keys_within(content["channels"], channels.state(), "channels")
        _check_keys_within(content["decisions"], decisions.state(), "decisions")
        bundle = Bundle(config, channels, classes, {}, decisions, dict(content["facts"]))
        _check_whole(bundle)
        expected = expected_weights(config, channels.count, len(classes), saved[WEIGHTS].bytes)
    with _told(directory / WEIGHTS):
        _, weights = up_to_date(written["format"], written, load_tensors(read_file(directory, WEIGHTS, saved[WEIGHTS])))
        if expected is not None:
            check_weights(weights, expected)
        if not all(bool(weight.isfinite().all()) for weight in weights.values()):
            raise ValueError("some weights are not finite")
    return replace(bundle, weights=weights)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What goes wrong with what a file says, as an error of the bundle."""
    try:
        yield
    except BundleError:
        raise
    except (MemoryError, RecursionError) as error:
        raise BundleError(f"{path}: is too large for the memory there is") from error
    except _WRONG as error:
        raise BundleError(f"{path}: not as expected: {' '.join(str(error).split())}; {AGAIN}") from error


def _class_names(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise ValueError("the classes are no list of names")
    if len(set(found)) != len(found) or not found:
        raise ValueError("class names are missing or repeated")
    return tuple(found)


def _check_keys_within(found: object, known: object, place: str) -> None:
    """Raise a ValueError if a key is there that the part, once read, does not have."""
    if isinstance(found, dict) and isinstance(known, dict):
        if strange := sorted(found.keys() - known.keys()):
            raise ValueError(f"{place} has the unknown key {strange[0][:80]!r}")
        for key, value in found.items():
            _check_keys_within(value, known[key], f"{place}.{key}")


def _check_whole(bundle: Bundle) -> None:
    """Raise a ValueError if the parts do not fit each other."""
    if bundle.config.data.interval is None:
        raise ValueError("the config has no interval")
    chosen, interval = bundle.config.channels, parse_duration(bundle.config.data.interval)
    if AUTO in (chosen.levels, *chosen.baselines, bundle.config.model.window, bundle.config.model.stem):
        raise ValueError("the config leaves open (auto) what training has to settle")
    baselines = tuple(span_rows(span, interval) for span in chosen.baselines)
    if set(bundle.channels.kinds) != set(chosen.kinds) or bundle.channels.baselines != baselines:
        raise ValueError("the channels are not those of the config")
    known = bundle.decisions.known
    if known is not None and (
        known.chosen.max() >= bundle.channels.count or known.rows > int(bundle.config.model.stem)
    ):
        raise ValueError("the known rows have channels or rows that there are none of")
    if len(bundle.channels.centre) != len(bundle.config.data.metrics):
        raise ValueError(
            f"{len(bundle.channels.centre)} channels' metrics, {len(bundle.config.data.metrics)} in the config"
        )
