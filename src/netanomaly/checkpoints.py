"""The checkpoints of a run: what it takes to go on with a training that was cut short.

run.json                   which training they are of, and whether it came to its end
member-1.safetensors       a member that is trained: its weights and what became of it
member-2.part.safetensors  one that is being trained: weights, the best so far, optimiser, random numbers, position

The bundle needs none of it; at the end only run.json stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from netanomaly import __version__
from netanomaly.errors import BundleError, ConfigError
from netanomaly.files import TEMPORARY, write_json
from netanomaly.flat_keys import flat
from netanomaly.prepare import Prepared
from netanomaly.training.checkpoint import check_weights, load_checkpoint, save_checkpoint
from netanomaly.training.recipe import EpochRecord, Outcome
from netanomaly.training.world import ALONE, World

log = logging.getLogger(__name__)

DIRECTORY, ABOUT = "checkpoint", "run.json"
_FREE = {"run_dir", "device", "threads", "alarms", "tracking", "data.root", "training.save_steps", "training.compile"}
"""Keys that may change between one start of a training and the next, as the number of processes may; with another
device or number, other threads or compiled code sums are rounded otherwise, and weights differ in their last bits."""


class Checkpoints:
    """Those in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def exist(self) -> bool:
        """Whether a training has been begun here, and with a version that keeps checkpoints."""
        return (self.directory / ABOUT).exists()

    @property
    def is_cut_short(self) -> bool:
        """Whether a training has been begun here that has something to go on with."""
        return self.exist and not self.complete and any(self.directory.glob("*.safetensors"))

    @property
    def complete(self) -> bool:
        """Whether that training came to its end."""
        return self.exist and bool(self._about().get("complete"))

    def begin(self, training: Mapping[str, Any]) -> None:
        """Forget an earlier training and start with this one, which `identity` describes."""
        self.clear()
        write_json(self.directory / ABOUT, {"training": training, "complete": False})

    def check(self, training: Mapping[str, Any]) -> None:
        """Raise a ConfigError if the checkpoints are of another training than this one."""
        training = json.loads(json.dumps(training))
        before = self._about().get("training", {})
        if not isinstance(before, dict):
            raise BundleError(f"{self.directory / ABOUT}: not of a training; --overwrite starts afresh")
        if (key := difference(before, training)) is not None:
            raise ConfigError(
                f"--resume: {key} is {_short(training.get(key))}, and was {_short(before.get(key))} when the "
                f"training in {self.directory.parent} began; set it back, or start afresh with --overwrite"
            )

    def finish(self) -> None:
        """The training came to its end: nobody will go on with it."""
        if self.exist:
            write_json(self.directory / ABOUT, {**self._about(), "complete": True})
            for path in self.directory.glob("*.safetensors"):
                path.unlink()

    def clear(self) -> None:
        """Remove all of it."""
        (self.directory / ABOUT).unlink(missing_ok=True)  # first: without it the rest is nothing
        self.tidy()
        for path in self.directory.glob("*.safetensors"):
            path.unlink()
        with contextlib.suppress(OSError):  # not there, or it holds what is not ours
            self.directory.rmdir()

    def tidy(self) -> None:
        """Remove what a killed process left half-written."""
        for leftover in self.directory.glob(TEMPORARY):
            leftover.unlink(missing_ok=True)

    def part(self, member: int) -> Path:
        """The file of a member that is being trained."""
        return self.directory / f"member-{member}.part.safetensors"

    def keep(self, member: int, model: nn.Module, outcome: Outcome) -> None:
        """A member is done; a full disk does not end the training, but what follows cannot go on from here."""
        facts = {key: value for key, value in asdict(outcome).items() if key != "stopped_by"}
        path = self._done(member)
        try:
            save_checkpoint(path, model.state_dict(), facts)
        except OSError as error:
            log.warning("%s: cannot be saved: %s; training goes on", path, error.strerror or error)
            return
        self.part(member).unlink(missing_ok=True)

    def kept(self, member: int, model: nn.Module, world: World = ALONE) -> Outcome | None:
        """What became of a member that is done, its weights put into the model; None: it is not.

        Args:
            world: the first process reads the file for all.

        Raises:
            BundleError: the file is damaged, or of another model.
        """
        path = self._done(member)
        if not world.first_says(path.exists()):
            return None
        saved = load_checkpoint(path, world)
        try:
            facts = dict(saved.facts)
            records = tuple(EpochRecord(**record) for record in facts.pop("records"))
            outcome = Outcome(**facts, records=records)
            check_weights(saved.tensors, model.state_dict())
            model.load_state_dict(saved.tensors)
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"{path}: not of this training ({error}); --overwrite starts afresh") from error
        return outcome

    def _done(self, member: int) -> Path:
        return self.directory / f"member-{member}.safetensors"

    def _about(self) -> dict[str, Any]:
        path = self.directory / ABOUT
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise BundleError(f"{path}: not readable as JSON ({error}); --overwrite starts afresh") from error
        if not isinstance(about, dict):
            raise BundleError(f"{path}: expected a JSON object; --overwrite starts afresh")
        return about


def identity(prepared: Prepared, start: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the weights of a training depend on: keys of the config, the rows, the version of PyTorch.

    Args:
        start: facts of the bundle that it starts from.
    """
    return {
        **{key: value for key, value in flat(prepared.config.to_dict()).items() if not _is_free(key)},
        "the rows (SHA-256)": _rows_digest(prepared),
        "the bundle to start from": start,
        "the version of netanomaly": __version__,
        "the version of PyTorch": torch.__version__,
    }


def check_alike(training: Mapping[str, Any], world: World) -> None:
    """Raise a ConfigError, in all processes, if one of them is about another training than the first."""
    mine = json.loads(json.dumps(training))
    of_first = json.loads(world.broadcast_bytes(json.dumps(training).encode()))
    with world.alike():
        if (key := difference(of_first, mine)) is not None:
            raise ConfigError(
                f"{key} is {_short(mine.get(key))}, and {_short(of_first.get(key))} in the first process; all need "
                "the same config, data and version of PyTorch"
            )


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first key, by the alphabet, that has not the same value in both."""
    return next((key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)), None)


def _rows_digest(prepared: Prepared) -> str:
    """SHA-256 of the values, labels and parts of all segments."""
    digest = hashlib.sha256()
    for segment, parts in zip(prepared.grid.segments, prepared.split.parts, strict=True):
        about = [segment.series, list(segment.values.shape), segment.labels.tolist()]
        digest.update(json.dumps(about, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        digest.update(segment.values.tobytes())
        digest.update(parts.tobytes())
    return digest.hexdigest()


def _is_free(key: str) -> bool:
    return any(key == free or key.startswith(f"{free}.") for free in _FREE)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
