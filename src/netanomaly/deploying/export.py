"""From a bundle to a file for other programs, if and only if the file answers as the bundle does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netanomaly.bundle_files import WEIGHTS, read_manifest
from netanomaly.config_model import AttentionConfig
from netanomaly.deploying.channels import WindowChannels
from netanomaly.deploying.description import description
from netanomaly.deploying.formats import FORMATS
from netanomaly.deploying.novelty import WindowNovelty
from netanomaly.deploying.parity import BATCHES, TOLERANCE, Parity, hard_windows, measured
from netanomaly.deploying.window_model import WindowModel
from netanomaly.errors import BundleError, ConfigError
from netanomaly.files import atomic, sha256, write_json
from netanomaly.predictor import MOST_NOVEL, Predictor, load

EXECUTION = "model.sequence_model.execution"


def export(directory: Path, form: str, out: Path, overrides: Sequence[str] = ()) -> Parity:
    """Write a bundle's window model and, beside it, its description as JSON.

    Args:
        directory: of the bundle.
        form: of `FORMATS`.
        out: with the format's suffix; the description gets `.json` after it.
        overrides: as of `load`: metrics that are not measured.

    Returns:
        How far its answers are from the bundle's.

    Raises:
        ConfigError: libraries are missing, or the format cannot hold the model.
        BundleError: the bundle is damaged, or the file's answers are not the bundle's; nothing is written then.
    """
    chosen = FORMATS[form]
    missing = chosen.missing()
    if missing is not None:
        raise ConfigError(missing)
    predictor = load(directory, "cpu", overrides)
    model, rows = window_model(directory, overrides)
    windows = hard_windows(predictor.channels, rows, sum(BATCHES))
    facts = description(predictor, model, rows, read_manifest(directory).files[WEIGHTS].sha256)
    try:
        packed = chosen.packed(model, windows[:2], facts)
    except Exception as error:  # whatever torch raises on its way
        raise ConfigError(_refusal(predictor, form, error)) from error
    with atomic(out) as temporary:
        temporary.write_bytes(packed)
        parity = measured(chosen.opened(temporary), predictor, windows)
        if not parity.holds:
            raise BundleError(_no_parity(parity, out))
        file = {"bytes": len(packed), "sha256": sha256(temporary)}
    write_json(description_of(out), {**facts, "file": file, "parity": parity.facts()})
    return parity


def description_of(out: Path) -> Path:
    """Where the description of a file lies."""
    return out.with_name(f"{out.name}.json")


def window_model(directory: Path, overrides: Sequence[str] = ()) -> tuple[WindowModel, int]:
    """The model of a bundle for windows of rows, and how many rows a window has."""
    predictor = load(directory, "cpu", overrides)
    if isinstance(predictor.config.model.sequence_model, AttentionConfig):  # the others look at their numbers
        predictor = load(directory, "cpu", [*overrides, f"{EXECUTION}=reference"])
    return build_window_model(predictor)


def build_window_model(predictor: Predictor) -> tuple[WindowModel, int]:
    """The same from a predictor whose look-ups are computed by the reference."""
    seen = predictor.model.history_rows + 1
    known = predictor.known
    novelty = None if known is None else WindowNovelty(known, MOST_NOVEL)
    channels = WindowChannels(predictor.channels, seen)
    model = WindowModel(channels, predictor.model, predictor.decisions.calibration, novelty).eval()
    return model.requires_grad_(False), seen + predictor.channels.history_rows


def _refusal(predictor: Predictor, form: str, error: Exception) -> str:
    """Why a format cannot hold a model, and what can: torch's own words go on for pages, so their last cause alone."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0][:200]
    choice = predictor.config.model.sequence_model
    key = "model.sequence_model"
    if not isinstance(choice, AttentionConfig) and choice.architecture is not None:
        key = f"{key}.architecture: model_type {choice.architecture.get('model_type')}"
    others = " or ".join(f"--format {name}" for name in FORMATS if name != form)
    return f"{key} cannot be written as {form} ({reason}); try {others}"


def _no_parity(parity: Parity, out: Path) -> str:
    return (
        f"{out}: not written: the file does not answer as the bundle does ({parity.other_labels} of {parity.windows} "
        f"windows get another label, the largest difference is {parity.difference:.3g}, allowed are {TOLERANCE:g})"
    )
