"""A network that misbehaves: lines of thousands of series that come and go, and what has to become of each line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

SECOND = 10**9
START = pd.Timestamp("2020-01-01", tz="UTC").value // SECOND
FAR = 3 * 365 * 86_400
"""Seconds by which a clock jumps to a time that is wrong but not in the future."""
COUNTED = 10
"""Rows far behind after which a series begins again."""
GARBAGE = (
    "\x00\x01\x02",
    "==> links.csv <==",
    "a,b",
    "2020-01-01T00:00:00Z",
    '"unclosed,1,2',
    "?" * 500,
)


@dataclass
class Rates:
    """How often something goes wrong, per row."""

    late: float = 0.002
    twice: float = 0.002
    ahead: float = 0.0002
    jump: float = 0.00005
    garbage: float = 0.002
    header: float = 0.0001


@dataclass
class Link:
    """A series: where it stands, and how long it will live."""

    name: str
    ends: int
    last: int = -1
    jumped: int = 0
    """Rows that are still left out after a jump of its clock."""
    gone_until: int = 0


@dataclass
class Network:
    """Gives the lines of one second after the other.

    Attributes:
        owed: for each series the seconds, since the start, that are owed an answer; jumps lie at their wrong times.
        left_out: lines that have to be left out, by kind.
        sampled: the rows of some series, to be compared with a batch.
    """

    series: int
    metrics: int
    rng: np.random.Generator
    rates: Rates = field(default_factory=Rates)
    sample_every: int = 50
    second: int = 0
    lines: int = 0
    owed_rows: int = 0
    owed: dict[str, list[int]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    sampled: dict[str, list[str]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    born: int = 0

    def __post_init__(self) -> None:
        self.links = [self._new() for _ in range(self.series)]

    @property
    def header(self) -> str:
        """The first line."""
        return "timestamp,series," + ",".join(f"metric_{number}" for number in range(self.metrics)) + "\n"

    def _new(self) -> Link:
        self.born += 1
        name = f"link{self.born:06d}"
        self.owed[name] = []
        if self.born % self.sample_every == 0:
            self.sampled[name] = []
        return Link(name, self.second + int(self.rng.integers(60, 1200)))

    def next_lines(self) -> str:
        """The lines of the next second: a row of nearly every series, and what goes wrong."""
        self.second += 1
        cells = self.rng.lognormal(0, 1, (len(self.links), self.metrics)).round(3)
        chance = self.rng.random((len(self.links), 8))
        lines: list[str] = []
        for place, link in enumerate(self.links):
            if self.second >= link.ends:
                self.links[place] = link = self._returning(link) if chance[place, 7] < 0.1 else self._new()
            if chance[place, 0] < 0.03 or self.second < link.gone_until:  # a gap
                continue
            self._row(link, ",".join(map(str, cells[place].tolist())), chance[place], lines)
        self.lines += len(lines)
        return "".join(lines)

    def _returning(self, link: Link) -> Link:
        """The same series again after half an hour: it has been forgotten meanwhile."""
        away = self.second + 1800
        return Link(link.name, away + int(self.rng.integers(60, 1200)), link.last, link.jumped, away)

    def _row(self, link: Link, cells: str, chance: np.ndarray, lines: list[str]) -> None:
        rates = self.rates
        if chance[1] < rates.garbage:
            lines.append(GARBAGE[len(lines) % len(GARBAGE)] + "\n")
            self.left_out["broken"] += 1
        if chance[2] < rates.header:
            lines.append(self.header)
            self.left_out["header again"] += 1
        if chance[3] < rates.ahead:
            lines.append(f"2099-01-01T00:00:00Z,{link.name},{cells}\n")
            self.left_out["ahead of the clock"] += 1
        if chance[4] < rates.jump and not link.jumped and link.last >= 0:
            self._owe(link, self.second + FAR, cells, lines)
            link.jumped = COUNTED - 1
            return
        if link.jumped:
            link.jumped -= 1
            lines.append(self._line(link, self.second, cells))
            self.left_out["late"] += 1
            return
        late_by = int(chance[5] / rates.late * 5) if chance[5] < rates.late and link.last > 10 else 0
        self._owe(link, self.second, cells, lines)
        if late_by:
            lines.append(self._line(link, self.second - 1 - late_by, cells))
            self.left_out["late"] += 1
        if chance[6] < rates.twice:
            lines.append(self._line(link, self.second, cells))
            self.left_out["twice"] += 1

    def _owe(self, link: Link, second: int, cells: str, lines: list[str]) -> None:
        line = self._line(link, second, cells)
        lines.append(line)
        self.owed[link.name].append(second)
        self.owed_rows += 1
        link.last = second
        if link.name in self.sampled:
            self.sampled[link.name].append(line)

    @staticmethod
    def _line(link: Link, second: int, cells: str) -> str:
        return f"{text_of(second)},{link.name},{cells}\n"


def text_of(second: int) -> str:
    """A moment, seconds since the start."""
    return f"{np.datetime64(START + second, 's')}Z"


def second_of(text: str) -> int:
    """Seconds since the start."""
    return int(np.datetime64(text.removesuffix("Z"), "s").astype(np.int64)) - START
