"""What was owed and what was given: every row that is taken is answered, once in a run, alike in all runs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from scripts.bench.soak_network import Network, second_of

from netanomaly import DataError, Predictor

TOLERANCE = 1e-5
"""Of probabilities against those of a batch; `watch` prints six digits."""


@dataclass
class Ledger:
    """Reads the answers of run after run.

    Attributes:
        times: how often each row was answered, by series and second.
        broken: promises that were broken, in words.
        again: rows that were answered in more than one run.
    """

    network: Network
    times: dict[str, Counter[int]] = field(default_factory=dict)
    answers: dict[tuple[str, int], dict[str, object]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    rows: int = 0
    again: int = 0
    most_again: int = 0
    _run: Counter[tuple[str, int]] = field(default_factory=Counter)
    _again_in_run: int = 0

    def read(self, lines: list[str]) -> None:
        """Answers of the run at hand."""
        for line in lines:
            answer = json.loads(line)
            series, second = answer["series"], second_of(answer["timestamp"])
            counts = self.times.setdefault(series, Counter())
            counts[second] += 1
            self.rows += 1
            self._run[series, second] += 1
            if counts[second] > 1:
                self._again_in_run += 1
            if series in self.network.sampled:
                before = self.answers.setdefault((series, second), answer)
                if not _same(before, answer):
                    self._break(f"{series} {second}: answered differently in two runs")

    def end_run(self) -> None:
        """A process has ended."""
        for (series, second), count in self._run.items():
            if count > 1:
                self._break(f"{series} {second}: answered {count} times in a run")
        self.again, self.most_again = self.again + self._again_in_run, max(self.most_again, self._again_in_run)
        self._run.clear()
        self._again_in_run = 0

    def _break(self, what: str) -> None:
        self.broken.append(what)

    def settle(self, predictor: Predictor) -> int:
        """Compare with what was owed, and the samples with a batch; how many rows were compared."""
        for series, owed in self.network.owed.items():
            given = set(self.times.get(series, ()))
            for second in set(owed) - given:
                self._break(f"{series} {second}: never answered")
            for second in given - set(owed):
                self._break(f"{series} {second}: answered, but no row")
        for series in set(self.times) - set(self.network.owed):
            self._break(f"{series}: answered, but no series")
        compared = 0
        for series, lines in self.network.sampled.items():
            for stretch in _stretches(lines):
                compared += self._compare(predictor, series, stretch)
        return compared

    def _compare(self, predictor: Predictor, series: str, lines: list[str]) -> int:
        """The answers of a sampled series against those of all its rows at once."""
        cells = [line.rstrip("\n").split(",") for line in lines]
        frame = pd.DataFrame(cells, columns=self.network.header.rstrip("\n").split(","))
        frame = frame.astype({name: float for name in frame if str(name).startswith("metric_")})
        try:
            wanted = predictor.predict(frame)
        except DataError:  # a batch refuses series that are shorter than a window
            return 0
        numbers = [name for name in wanted if name == "confidence" or str(name).startswith("p_")]
        for row, values in zip(wanted.to_dict("records"), wanted[numbers].to_numpy(), strict=True):
            found = self.answers.get((series, second_of(str(row["timestamp"]))))
            if found is None:
                continue  # told already
            apart = float(np.abs(np.array([found[str(name)] for name in numbers], dtype=np.float64) - values).max())
            if apart > TOLERANCE:
                self._break(f"{series} {row['timestamp']}: {apart:.1e} from the answer of a batch")
        return len(wanted)


def _same(first: dict[str, object], second: dict[str, object]) -> bool:
    return all(
        abs(value - other) <= TOLERANCE if isinstance(value, float) and isinstance(other, float) else value == other
        for value, other in zip(first.values(), second.values(), strict=True)
    )


def _stretches(lines: list[str]) -> list[list[str]]:
    """The rows of a series, cut where it begins again: a batch would sort what comes after a jump before it."""
    parts: list[list[str]] = []
    for line in lines:
        if not parts or line[:20] <= parts[-1][-1][:20]:
            parts.append([])
        parts[-1].append(line)
    return parts


class AnswerFile:
    """The answers of one process; a killed one may leave half a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self._stream = path.open("rb")
        self._half = b""

    def new_lines(self) -> list[str]:
        """What has come since."""
        *lines, self._half = (self._half + self._stream.read()).split(b"\n")
        return [line.decode() for line in lines]
