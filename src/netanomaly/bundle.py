"""The bundle: the directory that a training run saves and `load` reads. Tensors and JSON only, so loading runs no code.

model.safetensors   weights
bundle.json         format version, config, metrics, channels, classes, decisions, how it was trained
manifest.json       size and SHA-256 of both; written last, so a directory without it is no bundle yet
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from netanomaly.bundle_formats import FORMAT, MIGRATIONS, up_to_date
from netanomaly.config import Config, parse_config
from netanomaly.data.channels import Channels
from netanomaly.decisions import Decisions
from netanomaly.durations import AUTO, parse_duration, span_rows
from netanomaly.errors import BundleError, ConfigError
from netanomaly.files import atomic, sha256, write_json

WEIGHTS, CONTENT, MANIFEST = "model.safetensors", "bundle.json", "manifest.json"


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
    """Write the bundle; each file appears whole, the manifest last."""
    (directory / MANIFEST).unlink(missing_ok=True)
    with atomic(directory / WEIGHTS) as temporary:
        save_file({name: weight.contiguous() for name, weight in bundle.weights.items()}, temporary)
    save_content(directory, bundle)


def save_content(directory: Path, bundle: Bundle) -> None:
    """Write all but the weights, which are there already and stay, and the manifest."""
    content = {
        "format": FORMAT,
        "classes": list(bundle.classes),
        "config": bundle.config.to_dict(),
        "channels": bundle.channels.state(),
        "decisions": bundle.decisions.state(),
        "facts": bundle.facts,
    }
    write_json(directory / CONTENT, content)
    files = {
        name: {"bytes": (directory / name).stat().st_size, "sha256": sha256(directory / name)}
        for name in (WEIGHTS, CONTENT)
    }
    write_json(directory / MANIFEST, {"format": FORMAT, "files": files})


def load_bundle(directory: Path) -> Bundle:
    """Read a bundle and check it.

    Raises:
        BundleError: the directory holds no bundle, or one that is damaged or of an unknown format.
    """
    if not (directory / MANIFEST).is_file():
        raise BundleError(f"{directory}: no bundle here (no {MANIFEST}); train one, or name the run's directory")
    manifest = _read_json(directory / MANIFEST)
    _check_format(manifest.get("format"), directory / MANIFEST)
    _check_files(directory, manifest)
    content = _read_json(directory / CONTENT)
    _check_format(content.get("format"), directory / CONTENT)
    try:
        content, weights = up_to_date(content["format"], content, load_file(directory / WEIGHTS))
        config = parse_config(content["config"], str(directory / CONTENT))
        classes = tuple(str(name) for name in content["classes"])
        bundle = Bundle(
            config=config,
            channels=Channels.from_state(content["channels"]),
            classes=classes,
            weights=weights,
            decisions=Decisions.from_state(content["decisions"], classes, config.data.normal),
            facts=dict(content["facts"]),
        )
        _check_whole(bundle)
        return bundle
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ConfigError, SafetensorError) as error:
        raise BundleError(f"{directory}: the bundle's content is not as expected: {error}") from error


def _check_whole(bundle: Bundle) -> None:
    """Raise a ValueError if the parts do not fit each other."""
    if len(set(bundle.classes)) != len(bundle.classes) or not bundle.classes:
        raise ValueError("class names are missing or repeated")
    if bundle.config.data.interval is None:
        raise ValueError("the config has no interval")
    if not all(bool(weight.isfinite().all()) for weight in bundle.weights.values()):
        raise ValueError("some weights are not finite")
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


def _check_files(directory: Path, manifest: dict[str, Any]) -> None:
    files = manifest.get("files")
    for name in (WEIGHTS, CONTENT):
        entry = files.get(name) if isinstance(files, dict) else None
        if not isinstance(entry, dict):
            raise BundleError(f"{directory / MANIFEST}: says nothing of {name}")
        path = directory / name
        if not path.is_file():
            raise BundleError(f"{path}: missing from the bundle")
        if path.stat().st_size != entry.get("bytes") or sha256(path) != entry.get("sha256"):
            raise BundleError(f"{path}: is not the file that was saved (size or SHA-256 differ from {MANIFEST})")


def _check_format(found: object, path: Path) -> None:
    if type(found) is int and (found == FORMAT or found in MIGRATIONS):
        return
    if isinstance(found, int) and found > FORMAT:
        raise BundleError(
            f"{path}: bundle format {found} is newer than this version reads ({FORMAT}); upgrade netanomaly"
        )
    raise BundleError(f"{path}: unknown bundle format {found!r}")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(value, dict):
        raise BundleError(f"{path}: expected a JSON object")
    return value
