"""A commented configuration from what was seen; it is tried before it is written, and says what it cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netanomaly.errors import DataError
from netanomaly.inspect.guesses import MetricGuess, Rhythm, Survey, TimeGuess
from netanomaly.inspect.missing import USUAL
from netanomaly.inspect.trial import Split, choose_split, rows_read
from netanomaly.yaml_reader import dump_flow

_WIDTH = 160
"""Characters of a comment."""


@dataclass(frozen=True)
class Starter:
    """A configuration as YAML.

    Attributes:
        rows: that the reader took with it.
        problem: why training is not possible with it; None if it is.
    """

    text: str
    rows: int
    problem: str | None


def starter_config(survey: Survey, files: Sequence[str], run_dir: str, name: str) -> Starter:
    """The configuration for some files.

    Args:
        files: as the config names them: paths or patterns, seen from the current directory.
        name: of the file that the text is for.

    Raises:
        DataError: the files cannot be read with any configuration, or not with this one; says why.
    """
    if survey.obstacles:
        raise DataError(survey.obstacles[0])
    if survey.time is None or survey.series is None or survey.rhythm is None:
        raise DataError(
            f"{survey.files[0]}: no series has rows of two different times; nothing can be learnt from that"
        )
    lines = data_lines(survey, survey.time, survey.rhythm, files)
    tree: dict[str, Any] = {"data": {key: value for key, value, _ in lines}, "run_dir": run_dir}
    rows = rows_read({**tree, "data": {k: v for k, v in tree["data"].items() if k not in ("label", "incidents")}})
    split = None
    problem: str | None = "there are no labels"
    if survey.label is not None:
        split = choose_split(tree, len(survey.series.rows))
        problem = split.problem
    return Starter(_text(survey, lines, split, problem, run_dir, name), rows, problem)


Line = tuple[str, Any, str]
"""Key, value and comment."""


def data_lines(survey: Survey, time: TimeGuess, rhythm: Rhythm, files: Sequence[str]) -> list[Line]:
    """Keys, values and comments of the section `data`, but for the split; only what differs from the defaults."""
    dialect, label, series = survey.dialect, survey.label, survey.series
    notes = "; ".join(dialect.notes)
    lines: list[Line] = [("files", list(files) if len(files) > 1 else files[0], "seen from the current directory")]
    for key, value, usual in (
        ("separator", dialect.separator, ","),
        ("decimal", dialect.decimal, "."),
        ("encoding", dialect.encoding, "utf-8"),
    ):
        if value != usual:
            lines.append((key, value, notes))
            notes = "see above"
    if survey.missing:
        seen = "; ".join(f"'{m.text}': {m.cells} cells {m.reason}" for m in survey.missing)
        lines.append(("missing", [*USUAL, *(marker.text for marker in survey.missing)], seen))
    if survey.bad_lines.count:
        bad = survey.bad_lines
        lines.append(("bad_lines", "skip", f"{bad.count} lines have another number of fields; {bad.first}"))
    lines.append(("timestamp", _timestamp(time), time.reason))
    if series is not None and series.columns:
        lines.append(("series", _one_or_list(series.columns), f"{len(series.rows)} in all; {series.reason}"))
    if label is not None:
        source = ("incidents", str(label.incidents)) if label.incidents else ("label", label.column)
        lines.append((*source, label.reason))
        lines.append(("normal", label.normal, "the state without an incident"))
    lines.append(("interval", rhythm.interval, f"the usual step; {rhythm.regular:.0%} of the steps are within a tenth"))
    lines.append(("max_gap", rhythm.max_gap, _gaps(rhythm)))
    if rhythm.shared:
        lines.append(("duplicates", "mean", f"{rhythm.shared} rows share a step with another of their series; or last"))
    lines.append(("metrics", [_metric(metric) for metric in survey.metrics], ""))
    return lines


def _one_or_list(names: Sequence[str]) -> str | list[str]:
    return list(names) if len(names) > 1 else names[0]


def _timestamp(time: TimeGuess) -> dict[str, Any]:
    keys: dict[str, Any] = {"column": _one_or_list(time.columns), "format": time.format}
    keys |= {"unit": time.unit} if time.unit else {}
    keys |= {"timezone": time.timezone} if time.timezone else {}
    return keys | ({"mixed_offsets": "utc"} if time.mixed_offsets else {})


def _gaps(rhythm: Rhythm) -> str:
    return (
        f"missing rows that are bridged ({rhythm.bridged} here); {rhythm.gaps} gaps are longer, the longest step is "
        f"{rhythm.longest_gap}"
    )


def _metric(metric: MetricGuess) -> dict[str, str]:
    column = {"column": metric.column} if metric.column != metric.name or set(metric.name) & set("*?") else {}
    kind = {"kind": metric.kind} if metric.kind != "gauge" else {}
    return {"name": metric.name, **column, "unit": metric.unit, **kind}


def _text(
    survey: Survey, lines: Sequence[Line], split: Split | None, problem: str | None, run_dir: str, name: str
) -> str:
    rows = f"{'all' if survey.is_whole else 'the first'} {survey.rows:,} rows"
    text = [
        f"# A start, written by netanomaly inspect from {rows}. Each guess has its reason behind it: look it through.",
        *_ready(survey, problem, name),
        "",
        f"run_dir: {dump_flow(run_dir)} # what training writes",
        "",
        "data:",
    ]
    for key, value, why in lines:
        text += key_lines(key, value, why) if key != "metrics" else _metrics(survey)
    if split is not None:
        keys = [f"    {key}: {dump_flow(value)}" for key, value in split.keys.items()]
        text += [f"  split: # {comment(split.reason)}", *keys]
    return "\n".join(text) + "\n"


def _ready(survey: Survey, problem: str | None, name: str) -> list[str]:
    """What to do next, as comments."""
    if problem is None:
        return [f"# Ready to train: netanomaly train {name}"]
    if survey.label is not None:
        return ["# NOT READY TO TRAIN:", f"# {comment(problem)}"]
    series = ",".join((*survey.series.columns, "")) if survey.series else ""
    return [
        "# NOT READY TO TRAIN: no labels. A classifier learns from rows whose state is known; add to data:",
        "#   label: COLUMN          a column with the state of each row (normal, congestion ...; empty: unknown)",
        f"#   incidents: FILE.csv    or a list of incidents: a CSV with {series}start,end,label, times as here",
        f"# or do this again: netanomaly inspect ... --incidents FILE.csv --write-config {name} --overwrite",
    ]


def key_lines(key: str, value: Any, why: str) -> list[str]:
    """A key of `data` with its value, and why it has it as a comment."""
    behind = f" # {comment(why)}" if why else ""
    if isinstance(value, dict):
        return [f"  {key}:{behind}", *(f"    {inner}: {dump_flow(item)}" for inner, item in value.items())]
    return [f"  {key}: {dump_flow(value)}{behind}"]


def _metrics(survey: Survey) -> list[str]:
    """A line for each metric, and as comments the columns that are none."""
    text = ["  metrics:"]
    for metric in survey.metrics:
        why = metric.unit_reason + (f"; counter: {metric.kind_reason}" if metric.kind == "counter" else "")
        text.append(f"    - {dump_flow(_metric(metric))} # {comment(why)}")
    text += [f"    # left out: {comment(f'{column.column}: {column.reason}')}" for column in survey.left_out]
    return text


def comment(text: str) -> str:
    """A text that stays on its line, and is not too long for it."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= _WIDTH else plain[: _WIDTH - 3] + "..."


def default_run_dir(path: Path) -> str:
    """Where a configuration of this name trains."""
    return f"runs/{path.stem}"
