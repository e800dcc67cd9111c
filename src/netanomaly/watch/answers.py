"""Where answers go: JSON lines on standard output, or whatever else takes them."""

from __future__ import annotations

import json
import sys
from typing import Protocol

import pandas as pd


class Sink(Protocol):
    """Takes answers."""

    def take(self, answers: pd.DataFrame) -> None:
        """Deliver some, in order: when this returns they may be relied on to have been delivered."""


class JsonLines:
    """One JSON object for each row on standard output."""

    def take(self, answers: pd.DataFrame) -> None:
        """Print them and flush."""
        names = [json.dumps(str(name), ensure_ascii=False) for name in answers.columns]
        columns = [_values(answers[name]) for name in answers.columns]
        sys.stdout.write(
            "".join(
                "{" + ", ".join(f"{name}: {value}" for name, value in zip(names, row, strict=True)) + "}\n"
                for row in zip(*columns, strict=True)
            )
        )
        sys.stdout.flush()


def _values(column: pd.Series) -> list[str]:
    """As JSON writes them."""
    if pd.api.types.is_float_dtype(column):
        return [repr(value) for value in column.round(6).tolist()]
    return [json.dumps(value, ensure_ascii=False) for value in column.tolist()]
