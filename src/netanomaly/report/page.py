"""The report as one HTML file: everything it needs is in it, and nothing in it was not escaped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netanomaly.data.ingest import UNLABELLED
from netanomaly.errors import ConfigError
from netanomaly.report import cards as card_parts
from netanomaly.report import quality, score_tables, words
from netanomaly.report.cards import cards
from netanomaly.report.colours import class_colours
from netanomaly.report.content import Content
from netanomaly.report.curves import precision_recall, reliability_diagram
from netanomaly.report.incidents import Incident, incidents
from netanomaly.report.numbers import counted, number, percent
from netanomaly.report.overview import WIDTH, overview
from netanomaly.report.timeline import Timeline, timelines

MOST_ROWS = 1000
"""Of the table of incidents: those of the largest peak confidence, and the longest of those missed."""
MOST_SENTENCES = 40
ADVICE = "pip install 'netanomaly[report]'"


def missing_libraries() -> str | None:
    """What a report needs and is not installed, in words; None if everything is there."""
    from importlib.util import find_spec

    missing = [name for name in ("plotly", "jinja2") if find_spec(name) is None]
    return f"a report needs {' and '.join(missing)}: {ADVICE}" if missing else None


def page(content: Content) -> str:
    """The HTML of a report.

    Raises:
        ConfigError: plotly or Jinja2 is not installed.
    """
    missing = missing_libraries()
    if missing is not None:
        raise ConfigError(missing)
    from plotly.offline import get_plotlyjs

    found = incidents(content)
    drawn, others = timelines(content, found, _colours(content))
    rendered: str = _template().render(
        **_summary(content, found),
        **_tables(content, found),
        **_scores(content),
        **_quality(content),
        timelines=drawn,
        other_series=others,
        timeline_of={one.series: f"timeline-{i}" for i, one in enumerate(drawn)},
        payload=_payload(content, drawn),
        decimated=_decimated(drawn),
        css=_text("report.css"),
        js=_text("report.js"),
        plotly=get_plotlyjs(),
    )
    return rendered


def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("netanomaly.report"),
        autoescape=True,  # whatever comes from data is text, in a page and in its scripts
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters.update(number=number, percent=percent, counted=counted)
    return environment.get_template("report.html")


def _text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _colours(content: Content) -> dict[str, str]:
    labels = {str(label) for one in content.series for label in set(one.truth)} - {UNLABELLED}
    return class_colours(content.classes, content.normal, sorted(labels - set(content.classes)))


def _summary(content: Content, found: list[Incident]) -> dict[str, Any]:
    told = words.sentences(content, found)
    return {
        "content": content,
        "clock": content.clock,
        "colours": _colours(content),
        "when": words.when(content),
        "figures": words.figures(content, found),
        "sentences": told[:MOST_SENTENCES],
        "sentences_left_out": len(told) - MOST_SENTENCES,
        "missed_note": words.verdict_note(found),
        "overview": overview(content, found),
        "overview_width": WIDTH,
    }


def _tables(content: Content, found: list[Incident]) -> dict[str, Any]:
    weight = sorted(found, key=lambda one: (-(one.confidence or 0.0), -one.span))
    kept = {id(one) for one in weight[:MOST_ROWS]}
    made = cards(content, found)
    return {
        "incidents": [one for one in found if id(one) in kept],
        "incident_count": len(found),
        "first": min(int(one.times[0]) for one in content.series),
        "has_verdicts": any(one.verdict is not None for one in found),
        "incident_series": sorted({one.series for one in found}),
        "incident_labels": sorted({one.label for one in found}),
        "incident_verdicts": sorted({one.verdict for one in found if one.verdict is not None}),
        "cards": made,
        "card_numbers": {one.incident.number for one in made},
        "alarm_count": len(content.alarms),
        "spark": card_parts,
    }


def _scores(content: Content) -> dict[str, Any]:
    scores = content.evaluation
    if scores is None:
        return {"scores": None}
    return {
        "scores": {
            "rows": scores["rows"],
            "classifiers": score_tables.classifiers(scores),
            "verdict": score_tables.verdict(scores),
            "classes": score_tables.classes(scores),
            "alarms": score_tables.alarms(scores["alarms"]),
            "intervals": score_tables.intervals(scores["alarms"]),
            "series": score_tables.series(scores),
            "confusion": score_tables.confusion(scores),
            "calibration": scores["calibration"],
        }
    }


def _quality(content: Content) -> dict[str, Any]:
    metrics, series = quality.metric_quality(content), quality.series_quality(content)
    return {
        "metric_quality": metrics,
        "series_quality": series,
        "quality_remarks": quality.remarks(content, metrics, series),
    }


def _payload(content: Content, drawn: list[Timeline]) -> Mapping[str, Any]:
    """The figures by name, as plotly.js takes them."""
    found: dict[str, Any] = {f"timeline-{i}": one.figure for i, one in enumerate(drawn)}
    if content.scored is not None and content.evaluation is not None:
        found["precision-recall"] = precision_recall(*content.scored, _colours(content))
        found["reliability"] = reliability_diagram(content.evaluation["calibration"])
    return found


def _decimated(drawn: list[Timeline]) -> str:
    """How many rows a point stands for, in words; empty where every row is one."""
    most = max((one.rows_per_point for one in drawn), default=1)
    if most == 1:
        return ""
    return (
        f"There are more rows than a picture can show: of every {most} rows in a row (fewer in shorter series) each "
        "line keeps the smallest and the largest value, so no spike is lost; bands keep what is not normal."
    )
