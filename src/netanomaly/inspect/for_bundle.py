"""How the rows of some files are to be read for a bundle: a YAML for `predict --data`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from netanomaly.build import build_input_format
from netanomaly.config import Config
from netanomaly.data.ingest import find_files
from netanomaly.errors import DataError
from netanomaly.inspect.guesses import Survey
from netanomaly.inspect.matching import Match, match_metrics
from netanomaly.inspect.starter_config import Starter, comment, data_lines, key_lines
from netanomaly.inspect.trial import rows_of_config
from netanomaly.rows_written import WRITTEN, with_rows_written
from netanomaly.yaml_reader import dump_flow

USUAL: dict[str, Any] = {
    "separator": ",",
    "decimal": ".",
    "encoding": "utf-8",
    "missing": ["", "NaN", "nan"],
    "bad_lines": "error",
    "series": [],
    "duplicates": "error",
}
"""What a configuration need not say, but one that goes over a bundle's has to."""


def rows_for_bundle(survey: Survey, files: Sequence[str], name: str, bundle: str, config: Config) -> Starter:
    """The `data` section with which files are read for a bundle, each metric matched with a column or marked as absent.

    Args:
        files: as the YAML names them.
        name: of the file that the text is for.
        bundle: what it is called on the command line.
        config: of the bundle.

    Raises:
        DataError: the files cannot be read, or no column is a metric that the bundle knows.
    """
    if survey.obstacles:
        raise DataError(survey.obstacles[0])
    if survey.time is None or survey.rhythm is None:
        raise DataError(f"{survey.files[0]}: no series has rows of two different times")
    matches = match_metrics(build_input_format(config.data).metrics, survey.metrics)
    if not any(match.column for match in matches):
        known = ", ".join(metric.name for metric in config.data.metrics)
        raise DataError(f"{survey.files[0]}: no column is one of the metrics that {bundle} knows ({known})")
    lines = [line for line in data_lines(survey, survey.time, survey.rhythm, files) if line[0] != "metrics"]
    metrics = [_metric(match) for match in matches]
    given = {key: value for key, value, _ in lines if key not in ("files", "normal")}
    usual = [(key, value, "as usual; the bundle may say otherwise") for key, value in USUAL.items() if key not in given]
    lines += usual
    tree = {**USUAL, **given, "metrics": metrics, "label": None, "incidents": None}
    changes = [f"data.{key}={json.dumps(tree[key])}" for key in WRITTEN if key in tree]
    rows = rows_of_config(with_rows_written(config, changes), find_files(files, "."))
    text = [
        f"# How the rows of these files are written, for {bundle}: look each match through, mend what you know.",
        f"# netanomaly predict {bundle} {' '.join(files)} --data {name} --incidents incidents.csv",
        "",
        "data:",
    ]
    for key, value, why in lines:
        text += key_lines(key, value, why)
    text.append("  metrics:")
    text += [f"    - {dump_flow(_metric(match))} # {comment(match.reason)}" for match in matches]
    taken = {match.column.column for match in matches if match.column}
    text += [f"    # not taken: {comment(metric.column)}" for metric in survey.metrics if metric.column not in taken]
    return Starter("\n".join(text) + "\n", rows, None)


def _metric(match: Match) -> dict[str, Any]:
    guess = match.column
    if guess is None:
        return {"name": match.metric.name, "measured": False}
    return {"name": match.metric.name, "column": guess.column, "unit": guess.unit, "kind": guess.kind}
