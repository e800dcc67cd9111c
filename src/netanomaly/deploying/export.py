"""From a bundle to a file for other programs, if and only if the file answers as the bundle does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from netanomaly.bundle import Bundle
from netanomaly.bundle_files import WEIGHTS, packed
from netanomaly.config_model import AttentionConfig
from netanomaly.deploying.channels import WindowChannels
from netanomaly.deploying.description import description
from netanomaly.deploying.formats import FORMATS
from netanomaly.deploying.novelty import WindowNovelty
from netanomaly.deploying.parity import BATCHES, TOLERANCE, Parity, hard_windows, measured
from netanomaly.deploying.window_model import WindowModel
from netanomaly.errors import BundleError, ConfigError
from netanomaly.files import atomic, sha256, write_json
from netanomaly.packing import load_packed
from netanomaly.predictor import MOST_NOVEL, Predictor
from netanomaly.rows_written import with_rows_written

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
    files = packed(directory)  # read once: all that follows is of one bundle, whoever replaces it meanwhile
    predictor = load_packed(files, "cpu", overrides)
    model, rows = window_model(predictor)
    windows = hard_windows(predictor.channels, rows, sum(BATCHES))
    facts = description(predictor, model, rows, hashlib.sha256(files[WEIGHTS]).hexdigest())
    with _refused(predictor, form):
        written = chosen.packed(model, windows[:2], facts)
    with atomic(out) as temporary:
        temporary.write_bytes(written)
        with _refused(predictor, form):
            parity = measured(chosen.opened(temporary), predictor, windows)
        if not parity.holds:
            raise BundleError(_no_parity(parity, out))
        file = {"bytes": len(written), "sha256": sha256(temporary)}
        write_json(description_of(out), {**facts, "file": file, "parity": parity.facts()})  # a file always has one
    return parity


def description_of(out: Path) -> Path:
    """Where the description of a file lies."""
    return out.with_name(f"{out.name}.json")


def window_model(predictor: Predictor) -> tuple[WindowModel, int]:
    """A predictor's model for windows of rows, and how many rows a window has."""
    if isinstance(predictor.config.model.sequence_model, AttentionConfig):  # the others look at their numbers
        predictor = _by_reference(predictor)
    return build_window_model(predictor)


def _by_reference(predictor: Predictor) -> Predictor:
    """The same predictor, whose look-ups are computed by the reference."""
    weights = predictor.model.state_dict()
    bundle = Bundle(
        predictor.config, predictor.channels, predictor.classes, weights, predictor.decisions, predictor.facts
    )
    return Predictor(bundle, predictor.device, with_rows_written(bundle.config, [f"{EXECUTION}=reference"]))


def build_window_model(predictor: Predictor) -> tuple[WindowModel, int]:
    """The same from a predictor whose look-ups are computed by the reference."""
    seen = predictor.model.history_rows + 1
    known = predictor.known
    novelty = None if known is None else WindowNovelty(known, MOST_NOVEL)
    channels = WindowChannels(predictor.channels, seen)
    model = WindowModel(channels, predictor.model, predictor.decisions.calibration, novelty).eval()
    return model.requires_grad_(False), seen + predictor.channels.history_rows


@contextmanager
def _refused(predictor: Predictor, form: str) -> Iterator[None]:
    """Whatever torch, or what opens the file, raises on its way says that the format cannot hold the model."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise ConfigError(_refusal(predictor, form, error)) from error


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
