"""A training that was cut short goes on bit for bit as if it had not been."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recipes import recipe
from torch import nn

from classifiers import classifier
from netanomaly.data.batches import ChannelSegment
from netanomaly.errors import BundleError
from netanomaly.interrupts import Terminated
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.training import progress, trainer
from netanomaly.training.checkpoint import load_checkpoint, save_checkpoint
from netanomaly.training.engine import segment_logits
from netanomaly.training.metric_dropout import MetricDropout
from netanomaly.training.recipe import EpochRecord
from netanomaly.training.trainer import Outcome, fit

CHANNELS, CLASSES, EPOCHS = 3, 2, 3
CPU = torch.device("cpu")


class _Cut(KeyboardInterrupt):
    """The training ends here."""


def _segments() -> list[ChannelSegment]:
    result = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        channels = rng.standard_normal((40, CHANNELS)).astype(np.float32)
        result.append(ChannelSegment(channels, np.full(40, True), (channels[:, 0] > 0).astype(np.int64)))
    return result


def _model(seed: int, **changes: Any) -> NetworkAnomalyClassifier:
    return classifier(
        channels=CHANNELS, classes=CLASSES, seed=seed, **{"window": 4, "width": 8, "stem": 1, "dropout": 0.2, **changes}
    )


def _fit(
    directory: Path, *, model: nn.Module | None = None, checkpoint: Path | None = None, **changes: Any
) -> tuple[nn.Module, Outcome]:
    """Three epochs with dropout, jitter and metrics that are hidden: all that draws random numbers."""
    if model is None:
        torch.manual_seed(0)
        model = _model(0)
    segments = _segments()
    truth = np.concatenate([segment.targets for segment in segments])

    def score() -> float:
        logits = np.concatenate(segment_logits(model, segments, CLASSES, 3, CPU))
        return float((logits.argmax(axis=1) == truth).mean())

    chosen = recipe(**{"epochs": EPOCHS, "patience": 2, "metric_dropout": 0.3, **changes})
    outcome = fit(
        model,
        segments,
        score,
        torch.tensor([80.0, 70.0], dtype=torch.float64),
        3,
        chosen,
        seed=5,
        device=CPU,
        log_path=directory / "log",
        hide=MetricDropout(0.3, CHANNELS, None),
        checkpoint=checkpoint,
    )
    return model, outcome


def _cut_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The training ends with the checkpoint of a step. (A step is saved; the end of an epoch is one more.)"""
    saved = 0
    save = progress.save_progress

    def save_and_stop(*arguments: Any) -> None:
        nonlocal saved
        save(*arguments)
        saved += 1
        if saved == steps:
            raise _Cut

    monkeypatch.setattr(trainer, "save_progress", save_and_stop)


def _timeless(records: tuple[EpochRecord, ...]) -> list[EpochRecord]:
    return [replace(record, seconds=0.0) for record in records]


def _same(model: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True))


def _saves(directory: Path) -> int:
    """How many checkpoints the whole training writes, one after each step and each epoch."""
    count = 0

    def note(*_: Any) -> None:
        nonlocal count
        count += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "save_progress", note)
        _fit(directory, checkpoint=directory / "count", save_steps=1)
    return count


def _cut_and_go_on(directory: Path, after: int, **changes: Any) -> tuple[nn.Module, Outcome]:
    """A training that is cut after a checkpoint, and one with other random numbers that goes on from there."""
    part = directory / "member.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        _cut_after(after, patch)
        try:
            _, stopped = _fit(directory, checkpoint=part, save_steps=1, **changes)
            assert isinstance(stopped.stopped_by, _Cut)
        except _Cut:  # before there was an epoch to keep
            pass
    torch.manual_seed(1234)
    (directory / "log").unlink(missing_ok=True)
    return _fit(directory, model=_model(99), checkpoint=part, save_steps=1, **changes)


def test_cut_after_any_step_it_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    whole, expected = _fit(tmp_path)
    log = (tmp_path / "log").read_text().count("\n")
    total = _saves(tmp_path)
    assert total > 3 * EPOCHS
    for after in range(1, total + 1):
        directory = tmp_path / str(after)
        directory.mkdir()
        model, outcome = _cut_and_go_on(directory, after)
        assert _same(model, whole), after
        assert _timeless(outcome.records) == _timeless(expected.records), after
        assert replace(outcome, seconds=0, records=()) == replace(expected, seconds=0, records=()), after
        assert (directory / "log").read_text().count("\n") == log, after


def test_it_goes_on_to_the_last_bit_where_the_last_epoch_is_kept(tmp_path: Path) -> None:
    whole, expected = _fit(tmp_path, patience=None)
    model, outcome = _cut_and_go_on(tmp_path, 6, patience=None)
    assert _same(model, whole)
    assert outcome.kept_epoch == expected.kept_epoch == EPOCHS


@pytest.mark.parametrize("forgotten", ["random", "optimizer", "batch"])
def test_what_is_forgotten_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    whole, _ = _fit(tmp_path)
    load = progress.load_checkpoint

    def forget(*given: Any) -> Any:
        saved = load(*given)
        if forgotten == "optimizer":
            for name in [name for name in saved.tensors if name.startswith("optimizer.")]:
                del saved.tensors[name]
        elif forgotten == "batch":
            saved.facts["batch"] = 0
        return saved

    if forgotten == "random":
        monkeypatch.setattr(progress, "_load_random_states", lambda *_: None)
    monkeypatch.setattr(progress, "load_checkpoint", forget)
    model, _ = _cut_and_go_on(tmp_path, 2)
    assert not _same(model, whole)


@pytest.mark.parametrize("steps", [3, None])
def test_checkpoints_are_written_every_so_many_steps_and_after_each_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int | None
) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(trainer, "save_progress", lambda path, now, *_: seen.append((now.step, now.batch)))
    _, outcome = _fit(tmp_path, checkpoint=tmp_path / "x", save_steps=steps)
    ends = [record.steps for record in outcome.records]
    assert [step for step, batch in seen if batch == 0] == ends
    within = [step for step, batch in seen if batch != 0]
    assert within == ([] if steps is None else list(range(steps, ends[-1] + 1, steps)))


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_waits_for_the_step_and_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, raised: type[BaseException]
) -> None:
    seen: list[int] = []
    save = progress.save_progress

    def note(path: Path, now: Any, *rest: Any) -> None:
        signal.raise_signal(signal.SIGINT)  # a second and a third one do no harm
        save(path, now, *rest)
        seen.append(now.step)
        signal.raise_signal(signal.SIGTERM)

    class Interrupted(nn.Module):
        """Hears a signal in the middle of its third step."""

        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls = _model(0), 0

        def forward(self, *arguments: Any) -> torch.Tensor:
            self.calls += self.training
            if self.training and self.calls == 3:
                signal.raise_signal(number)
            result: torch.Tensor = self.inner(*arguments)
            return result

    monkeypatch.setattr(trainer, "save_progress", note)
    before = {signal.SIGINT: signal.getsignal(signal.SIGINT), signal.SIGTERM: signal.getsignal(signal.SIGTERM)}
    handlers: dict[int, Callable[..., None]] = {signal.SIGTERM: _terminate}
    old = signal.signal(signal.SIGTERM, handlers[signal.SIGTERM])
    try:
        with pytest.raises(raised) as stop:
            _fit(tmp_path, model=Interrupted(), checkpoint=tmp_path / "part", save_steps=None)
        assert type(stop.value) is raised
        assert seen == [3]
        assert signal.getsignal(signal.SIGTERM) is _terminate
    finally:
        signal.signal(signal.SIGTERM, old)
    assert {number: signal.getsignal(number) for number in before} == before


def _terminate(*_: Any) -> None:
    raise Terminated


def test_a_full_disk_does_not_end_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole, _ = _fit(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trainer, "save_progress", full)
    model, _ = _fit(tmp_path, checkpoint=tmp_path / "part")
    assert _same(model, whole)
    assert "cannot be saved: No space left on device; training goes on" in caplog.text


def _checkpoint(path: Path) -> None:
    save_checkpoint(path, {"a": torch.arange(5.0), "b": torch.tensor(3)}, {"step": 1, "x": [0.1, None]})


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    _checkpoint(tmp_path / "one")
    found = load_checkpoint(tmp_path / "one")
    assert found.facts == {"step": 1, "x": [0.1, None]}
    assert torch.equal(found.tensors["a"], torch.arange(5.0)) and found.tensors["b"].shape == ()


def test_no_bit_of_a_checkpoint_can_be_another(tmp_path: Path) -> None:
    path = tmp_path / "one"
    _checkpoint(path)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :])
        with pytest.raises(BundleError, match="not a whole checkpoint"):
            load_checkpoint(path)
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(BundleError, match="not a whole checkpoint"):
            load_checkpoint(path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"not of this training .*--overwrite starts afresh"):
        part = tmp_path / "part"
        _fit(tmp_path, checkpoint=part)
        _fit(tmp_path, model=_model(0, n_heads=1, width=4), checkpoint=part)


def test_a_file_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _checkpoint(tmp_path / "one")
    monkeypatch.setattr("netanomaly.training.checkpoint.MOST_BYTES", 100)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("it was read"))
    with pytest.raises(BundleError, match="larger than 100 bytes"):
        load_checkpoint(tmp_path / "one")
