"""The directory of a run: what lies in it, what may be replaced, and what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path

from netanomaly.bundle import Bundle
from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.checkpoints import DIRECTORY as CHECKPOINT
from netanomaly.checkpoints import Checkpoints
from netanomaly.errors import ConfigError
from netanomaly.files import TEMPORARY, write_text
from netanomaly.locks import LOCK
from netanomaly.members import Outcome

EVALUATION, LOG, SPLIT, RESOLVED, EXPLANATION = "evaluation.json", "log.jsonl", "split.json", "config.yaml", "RUN.md"
REPORT = "report.html"
_FILES = (MANIFEST, CONTENT, WEIGHTS, EVALUATION, REPORT, LOG, RESOLVED, EXPLANATION, SPLIT)

_TITLE = "# A netanomaly run"


def refuse_to_replace(directory: Path, asked: bool) -> None:
    """Raise a ConfigError if training would replace a run without being asked to, or files that are not of a run."""
    checkpoints = Checkpoints(directory / CHECKPOINT)
    if checkpoints.is_cut_short and not asked:
        raise ConfigError(
            f"run_dir: a training was cut short in {directory}; --resume goes on with it, --overwrite starts afresh"
        )
    if (directory / MANIFEST).exists() and not asked:
        raise ConfigError(f"run_dir: {directory} holds a run already; use --overwrite, or --set run_dir=another")
    present = [name for name in _FILES if (directory / name).exists()]
    if present and not _is_run(directory):
        raise ConfigError(
            f"run_dir: {directory / present[0]} is not of a run and would be replaced; name another run_dir"
        )


def _is_run(directory: Path) -> bool:
    """Whether a training made this directory, finished or not."""
    try:
        return (directory / EXPLANATION).read_text(encoding="utf-8").startswith(_TITLE)
    except (OSError, UnicodeDecodeError):
        return False


def make_ready(directory: Path) -> None:
    """Start a log; remove what a killed process left half-written. An earlier bundle stays until there is a new one."""
    try:
        if not _is_run(directory):
            write_text(
                directory / EXPLANATION,
                f"{_TITLE}\n\nNo bundle yet: a training goes on here, or was cut short; `--resume` goes on with it.\n",
            )
        (directory / LOG).write_text("", encoding="utf-8")
        for name in _FILES:  # others may be at work on files of their own here
            for leftover in directory.glob(TEMPORARY.replace("*", f"{name}.*", 1)):
                leftover.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"run_dir: cannot write to {directory}: {error.strerror or error}") from error


def make_directory(directory: Path) -> None:
    """Make it, if it is not there. Raises ConfigError if it cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"run_dir: cannot write to {directory}: {error.strerror or error}") from error


def explanation(bundle: Bundle, outcome: Outcome) -> str:
    """What a person finds in the directory."""
    return f"""{_TITLE}

| file | what it is |
| --- | --- |
| {RESOLVED} | the configuration, every key |
| {SPLIT} | which series and rows trained, validated and tested, and what they share |
| {LOG} | one JSON line per epoch of each member: loss, gradient norm, learning rate, validation macro-F1 |
| {WEIGHTS}, {CONTENT}, {MANIFEST} | the bundle: weights, everything else needed to predict, sizes and SHA-256 |
| {EVALUATION} | scores on the test part beside the baselines, if there is one |
| {REPORT} | what happened in the test part, as a page for a browser, if what it needs is installed |
| {CHECKPOINT}/ | which training this is; while it is not complete, all that it takes to go on with `--resume` |
| {LOCK} | empty; it keeps a second process from writing here at the same time |

{len(outcome.members)} members, validation macro-F1 {outcome.validation_macro_f1:.3f}.
{_start(bundle)}.
Classes: {json.dumps(list(bundle.classes), ensure_ascii=False)}.
A decision depends on {bundle.facts["history_rows"]} earlier rows.

    netanomaly eval DIRECTORY                      # score the test part again
    netanomaly predict DIRECTORY FILE.csv          # label rows
    netanomaly.load("DIRECTORY").predict(frame)    # the same in Python
"""


def _start(bundle: Bundle) -> str:
    found = bundle.facts["init_from"]
    if found is None:
        return "Training started from random weights"
    return f"Training started from the bundle {found['path']} (SHA-256 of its weights: {found['sha256']})"
