"""A run: from a config to a directory with a bundle, its log and its evaluation."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from netanomaly import __version__
from netanomaly.adapting import Start, adapt, read_start
from netanomaly.adapting_config import with_shape_of
from netanomaly.build import (
    build_device,
    build_input_format,
    build_spans,
    resolve_model,
    threads,
    warn_of_weights,
)
from netanomaly.build_tracking import build_trackers
from netanomaly.bundle import Bundle, save_bundle
from netanomaly.checkpoints import DIRECTORY as CHECKPOINT
from netanomaly.checkpoints import Checkpoints, check_alike, identity
from netanomaly.config import Config, load_config, parse_config
from netanomaly.data.channels import Channels
from netanomaly.data.splits import TRAIN
from netanomaly.data_quality import fill_gaps_of_labels, tell_useless_metrics, training_reference
from netanomaly.deciding import settle
from netanomaly.decisions import Decisions
from netanomaly.errors import TrainingError
from netanomaly.files import write_json, write_text
from netanomaly.locks import locked
from netanomaly.members import Outcome, fit_members
from netanomaly.predictor import Predictor
from netanomaly.prepare import Frames, Prepared, prepare
from netanomaly.run_directory import (
    EVALUATION,
    EXPLANATION,
    LOG,
    REPORT,
    RESOLVED,
    SPLIT,
    explanation,
    make_directory,
    make_ready,
    refuse_to_replace,
)
from netanomaly.scoring import Scored, score
from netanomaly.sharing import shared_predictor
from netanomaly.split_words import tell_split
from netanomaly.tracking.tracker import Trackers
from netanomaly.training.recipe import OnEpoch
from netanomaly.training.world import ALONE, World, joined

log = logging.getLogger(__name__)


def train(
    config: str | PathLike[str] | Mapping[str, Any] | Config,
    frames: Frames | None = None,
    *,
    overrides: Iterable[str] = (),
    overwrite: bool = False,
    resume: bool = False,
    evaluated: Callable[[Predictor, Scored], None] | None = None,
) -> Predictor:
    """Train, save the bundle in the config's `run_dir`, evaluate on the test part, and return the predictor.

    Started by torchrun, all of its processes train one bundle together, and it comes back in each of them; the first
    writes and evaluates.

    Args:
        config: path of a YAML file, a dict, or a config.
        frames: rows in memory instead of the config's files: one frame, or frames by part (train, validation, test).
        overrides: `a.b=value` changes to the config.
        overwrite: replace a run that is in `run_dir`.
        resume: go on with a training that was cut short there, if there is one: on a CPU, bit for bit as if it had
            not been. One that came to its end is loaded.
        evaluated: called with the predictor and its scored test part, if there is one.

    Raises:
        ConfigError: the config is wrong; or `run_dir` holds a run and neither `overwrite` nor `resume` is set, or
            another training than this one to go on with; or another process is writing there.
        DataError: the data are wrong.
        BundleError: there is no bundle at `training.init_from`, or it is damaged.
        TrainingError: the loss is not a finite number any more.
        ProcessLost: another process of the training has ended; `resume` goes on, with as many processes or others.
        KeyboardInterrupt: Ctrl-C. It and TrainingError after saving what was learnt so far, if an epoch was finished.
            `Terminated`, for SIGTERM, after saving no more than what `resume` needs.
    """
    with joined() as world, ExitStack() as held:
        with world.alike():
            checked = _resolved(load_config(Path(config) if isinstance(config, PathLike) else config, overrides))
            warn_of_weights(checked)
            directory = Path(checked.run_dir)
            device = world.device(build_device(checked.device))
            if world.is_first:
                refuse_to_replace(directory, overwrite or resume)
            prepared = prepare(checked, frames)
            tell_split(prepared.report)
            start, told = read_start(checked), build_trackers(checked if world.is_first else None)
            training = identity(prepared, None if start is None else start.facts())
        check_alike({**training, "the kind of device": device.type}, world)
        checkpoints, is_complete = Checkpoints(directory / CHECKPOINT), False
        held.enter_context(threads(checked))
        with world.alike():
            if world.is_first:
                make_directory(directory)
                held.enter_context(locked(directory))
                is_complete = _is_complete(checkpoints, training, overwrite=overwrite, resume=resume)
                if not is_complete:
                    held.push(told.end)
                    told.log_config(checked.to_dict())
        if world.first_says(is_complete):
            log.info("%s: the training came to its end already", directory)
            return shared_predictor(directory, checked.device, world)
        return _train(prepared, device, directory, checkpoints, told, evaluated, world)


def _is_complete(checkpoints: Checkpoints, training: Mapping[str, Any], *, overwrite: bool, resume: bool) -> bool:
    """Whether nothing is left to train; if not, the run's directory is ready for it."""
    directory = checkpoints.directory.parent
    if resume and (checkpoints.is_cut_short or checkpoints.complete):
        checkpoints.check(training)
        checkpoints.tidy()
        if checkpoints.complete:
            return True
    else:
        refuse_to_replace(directory, overwrite or resume)  # by now another process may have made a run
        if resume:
            log.info("nothing to go on with: training starts")
        checkpoints.begin(training)
    make_ready(directory)
    return False


def _train(
    prepared: Prepared,
    device: torch.device,
    directory: Path,
    checkpoints: Checkpoints,
    told: Trackers,
    evaluated: Callable[[Predictor, Scored], None] | None,
    world: World,
) -> Predictor:
    """Learn, save, evaluate; in a directory that is ready for it. With others, only the first process saves."""
    try:
        bundle, outcome = learn(prepared, device, directory / LOG, checkpoints, told.log_epoch, world)
        with world.alike():
            if world.is_first:
                bundle = settle(bundle, prepared, device)
    except TrainingError:
        if world.is_first:
            checkpoints.clear()  # going on would come to the same
        raise
    except KeyboardInterrupt:
        log.warning("stopped; --resume goes on with it")
        raise
    if not world.is_first:
        if outcome.stopped_by is not None:
            raise outcome.stopped_by
        return shared_predictor(directory, device.type, world)
    save_bundle(directory, bundle)  # first: if it cannot be written, all is as it was
    for name in (EVALUATION, REPORT):
        (directory / name).unlink(missing_ok=True)
    write_text(directory / RESOLVED, bundle.config.to_yaml())
    write_json(directory / SPLIT, prepared.report)
    write_text(directory / EXPLANATION, explanation(bundle, outcome))
    log.info(
        "%d members, channels.levels: %s, validation macro-F1 %.3f, %.0f s",
        len(outcome.members),
        outcome.levels,
        outcome.validation_macro_f1,
        outcome.seconds,
    )
    if outcome.stopped_by is not None:
        goes_on = isinstance(outcome.stopped_by, KeyboardInterrupt)
        if not goes_on:
            checkpoints.clear()
        hint = "; --resume goes on with it" if goes_on else ""
        log.warning("stopped early; what was learnt so far is saved in %s%s", directory, hint)
        raise outcome.stopped_by
    if not world.is_alone:
        shared_predictor(directory, device.type, world)
    predictor = Predictor(bundle, device)
    if prepared.report["test"]["rows"]:
        scored = score(predictor, prepared)
        write_json(directory / EVALUATION, scored.report)
        told.log_evaluation(scored.report)
        if evaluated is not None:
            evaluated(predictor, scored)
    checkpoints.finish()
    return predictor


def _resolved(config: Config) -> Config:
    """The config with what a language model's directory, or the bundle to start from, says of the model's shape."""
    start = read_start(config)
    if start is None:
        return resolve_model(config)
    return with_shape_of(config, start.bundle.config, start.path)


def fit_bundle(
    prepared: Prepared,
    device: torch.device,
    log_path: Path,
    checkpoints: Checkpoints | None = None,
) -> tuple[Bundle, Outcome]:
    """Channels, classes and trained members from the training and validation parts.

    Where the config names a bundle to start from, its `model` and `channels` have to be that bundle's.
    """
    bundle, outcome = learn(prepared, device, log_path, checkpoints, None, ALONE)
    return settle(bundle, prepared, device), outcome


def learn(
    prepared: Prepared,
    device: torch.device,
    log_path: Path,
    checkpoints: Checkpoints | None,
    on_epoch: OnEpoch | None,
    world: World,
) -> tuple[Bundle, Outcome]:
    """The same bundle with nothing decided yet; every process of the world comes to it."""
    start = read_start(prepared.config)
    tell_useless_metrics(prepared)
    measured = training_reference(prepared)
    prepared = fill_gaps_of_labels(prepared)
    channels, classes, initial = _fit_channels(prepared), _classes(prepared), None
    if start is not None:
        every_key = parse_config(prepared.config.to_dict())  # as given: a default is no less a shape here
        with_shape_of(every_key, start.bundle.config, start.path)
        data, levels = prepared.config.data, prepared.config.channels.levels
        adapted = adapt(start, build_input_format(data).metrics, channels, classes, data.normal, levels)
        channels, classes, initial = adapted.channels, adapted.classes, adapted.fill
    learnt = fit_members(prepared, channels, classes, device, log_path, initial, checkpoints, on_epoch, world)
    weights = {name: weight.cpu() for name, weight in learnt.model.state_dict().items()}
    facts = {**_facts(prepared, learnt.outcome, start), "reference": measured}
    plain = Decisions.plain(classes, prepared.config.data.normal)
    bundle = Bundle(learnt.config, channels, classes, weights, plain, facts)
    return bundle, learnt.outcome


def _fit_channels(prepared: Prepared) -> Channels:
    segments = prepared.grid.segments
    return Channels.fit(
        [segment.values for segment in segments],
        [(parts == TRAIN) & segment.valid for segment, parts in zip(segments, prepared.split.parts, strict=True)],
        prepared.config.channels.kinds,
        build_spans(prepared.config).baselines,
    )


def _facts(prepared: Prepared, outcome: Outcome, start: Start | None) -> dict[str, Any]:
    """How the bundle came about, for people."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "netanomaly": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "pandas": pd.__version__,
            "python": platform.python_version(),
        },
        "history_rows": prepared.history_rows,
        "data": prepared.fingerprint,
        "split": prepared.report,
        "training": outcome.facts(),
        "init_from": None if start is None else start.facts(),
    }


def _classes(prepared: Prepared) -> tuple[str, ...]:
    """Class names in a fixed order: the normal state, then the alphabet."""
    normal = prepared.config.data.normal
    return tuple(sorted(prepared.report["train"]["classes"], key=lambda name: (name != normal, name)))
