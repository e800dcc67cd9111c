"""A survey as aligned text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from netanomaly.inspect.guesses import MetricGuess, Survey

NO_NAME = "(no name)"
"""What a column is called that has an empty header."""
_SHOWN = 8
"""Series, labels and the like that are named."""
_REASON = 80
"""Characters of a reason in a table."""


def survey_text(survey: Survey) -> str:
    """What was seen: the table, its columns, what is worth a look, what stands in the way."""
    parts = [_table(survey)]
    if survey.metrics:
        header = ("metric", "unit", "kind", "missing", "min", "median", "max", "why")
        parts.append(aligned([header, *map(_metric, survey.metrics)]))
    if survey.left_out:
        parts.append(
            ["no metrics:", *aligned([(f"  {c.column or NO_NAME}", _short(c.reason, 100)) for c in survey.left_out])]
        )
    if survey.missing:
        parts.append(["not measured, besides empty cells:"])
        parts[-1] += [f"  '{marker.text}' in {marker.cells} cells: {marker.reason}" for marker in survey.missing]
    if survey.findings:
        parts.append(["worth a look:", *(f"  - {finding}" for finding in survey.findings)])
    if survey.obstacles:
        parts.append(["cannot be used as it is:", *(f"  - {obstacle}" for obstacle in survey.obstacles)])
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts)


def _table(survey: Survey) -> list[str]:
    """A line for each thing that the config asks about the table."""
    first = survey.files[0] + (f" and {len(survey.files) - 1} more" if len(survey.files) > 1 else "")
    rows = [
        ("files", first),
        ("rows", f"{survey.rows:,}" + ("" if survey.is_whole else " read, not all: what follows is of these alone")),
        ("written", _dialect(survey)),
        ("columns", str(len(survey.columns))),
    ]
    time, series, label, rhythm = survey.time, survey.series, survey.label, survey.rhythm
    if time is not None:
        rows.append(("time", f"{' + '.join(name or NO_NAME for name in time.columns)}: {time.format} ({time.reason})"))
    if series is not None:
        named = ", ".join(f"{name} ({rows})" for name, rows in list(series.rows.items())[:_SHOWN])
        more = ", ..." if len(series.rows) > _SHOWN else ""
        columns = " + ".join(series.columns) or "none"
        rows.append(("series", f"{columns}: {len(series.rows)} in all ({series.reason})"))
        rows.append(("", f"{named}{more}"))
    if label is not None:
        rows.append(("label", f"{label.column or label.incidents} ({label.reason})"))
        if label.rows:
            counts = [f"{name or 'none'} {count}" for name, count in label.rows.items()]
            rows.append(("", ", ".join(counts[: 2 * _SHOWN]) + (", ..." if len(counts) > 2 * _SHOWN else "")))
    elif not survey.obstacles:
        rows.append(("label", "none: training needs a column of labels, or --incidents FILE"))
    if rhythm is not None:
        rows.append(("from, to", f"{rhythm.start}, {rhythm.end}"))
        rows.append(("interval", f"{rhythm.interval}: the usual step, {rhythm.regular:.0%} are within a tenth of it"))
        gaps = f"{rhythm.gaps} longer than {rhythm.max_gap} rows, {rhythm.bridged} rows missing in shorter ones"
        rows.append(("gaps", f"{gaps}; longest step {rhythm.longest_gap}"))
        rows.append(("duplicates", f"{rhythm.shared} rows" if rhythm.shared else "none"))
    return aligned(rows)


def _dialect(survey: Survey) -> str:
    dialect = survey.dialect
    if not dialect.is_text:
        return "Parquet"
    separator = "tab" if dialect.separator == "\t" else f"'{dialect.separator}'"
    how = f"separator {separator}, decimal '{dialect.decimal}', {dialect.encoding}"
    return f"{how} ({'; '.join(dialect.notes)})" if dialect.notes else how


def _metric(metric: MetricGuess) -> tuple[str, ...]:
    numbers = (f"{value:.4g}" if value is not None else "-" for value in (metric.low, metric.middle, metric.high))
    why = metric.unit_reason + (f"; {metric.kind_reason}" if metric.kind == "counter" else "")
    return (metric.column, metric.unit, metric.kind, str(metric.missing), *numbers, _short(why, _REASON))


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns to the left, each as wide as its widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
