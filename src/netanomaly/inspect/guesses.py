"""What is seen in files and what is guessed from it, as plain values; every guess has its reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netanomaly.data.schema import Kind


@dataclass(frozen=True)
class Dialect:
    """How the text of a file is written.

    Attributes:
        notes: how each of them was found, where it is not the usual one.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    is_text: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BadLines:
    """Lines with another number of fields than the header.

    Attributes:
        first: place, number of fields and beginning of the first one.
    """

    count: int = 0
    first: str = ""


@dataclass(frozen=True)
class TimeGuess:
    """The columns of the time and how it is written, as `data.timestamp` of the config has it."""

    columns: tuple[str, ...]
    format: str
    reason: str
    unit: str | None = None
    timezone: str | None = None
    mixed_offsets: bool = False


@dataclass(frozen=True)
class SeriesGuess:
    """The columns that name the series, and the rows of each series."""

    columns: tuple[str, ...]
    reason: str
    rows: dict[str, int]


@dataclass(frozen=True)
class LabelGuess:
    """Where labels are.

    Attributes:
        column: None if the labels come from a file of incidents.
        rows: of each label; an empty one is unlabelled.
        normal: the label of the state without an incident.
    """

    column: str | None
    incidents: Path | None
    reason: str
    rows: dict[str, int]
    normal: str


@dataclass(frozen=True)
class MetricGuess:
    """A column of numbers.

    Attributes:
        missing: cells that are empty or hold a missing marker.
        low, middle, high: smallest value, median and largest, as written; None without any.
        resets: falls of a counter.
    """

    name: str
    column: str
    unit: str
    kind: Kind
    unit_reason: str
    kind_reason: str
    missing: int
    low: float | None
    middle: float | None
    high: float | None
    resets: int = 0


@dataclass(frozen=True)
class LeftOut:
    """A column that is no metric, and why."""

    column: str
    reason: str


@dataclass(frozen=True)
class Marker:
    """A cell that means "not measured"."""

    text: str
    cells: int
    reason: str


@dataclass(frozen=True)
class Rhythm:
    """How rows follow each other.

    Attributes:
        interval: the usual step, as a duration.
        regular: share of the steps within a tenth of it.
        steps: durations between which nine steps of ten lie.
        shared: rows that share a step of the grid with another of their series.
        repeated: of them, rows with the very time of another.
        bridged: missing rows in gaps of at most `max_gap` rows.
        gaps: longer ones; each starts a new segment.
        longest_gap: as a duration.
        backwards: rows earlier than the row before of their series.
    """

    interval: str
    regular: float
    steps: tuple[str, str]
    shared: int
    repeated: int
    bridged: int
    gaps: int
    longest_gap: str
    backwards: int
    max_gap: int
    start: str
    end: str


@dataclass(frozen=True)
class Survey:
    """Everything that was seen in some files.

    Attributes:
        rows: that were read.
        is_whole: whether these are all rows of all files.
        findings: what is worth a look, a sentence each.
        obstacles: why the files cannot be read as they are, and what to do.
    """

    files: tuple[str, ...]
    rows: int
    is_whole: bool
    columns: tuple[str, ...]
    dialect: Dialect
    bad_lines: BadLines
    time: TimeGuess | None
    series: SeriesGuess | None
    label: LabelGuess | None
    metrics: tuple[MetricGuess, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[Marker, ...]
    rhythm: Rhythm | None
    findings: tuple[str, ...]
    obstacles: tuple[str, ...]
