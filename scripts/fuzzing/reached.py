"""Which lines of the package an input reaches: what is new there is worth going on from."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import netanomaly

_HERE = str(Path(netanomaly.__file__).parent)


class Reached:
    """The steps from line to line that inputs have taken so far, in the package."""

    def __init__(self) -> None:
        self.steps: set[tuple[str, int, int]] = set()
        self._names: dict[str, str | None] = {}

    def __enter__(self) -> Reached:
        sys.settrace(self._call)
        threading.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if path not in self._names:
            self._names[path] = path if path.startswith(_HERE) else None
        if self._names[path] is None:
            return None
        last = frame.f_lineno

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                self.steps.add((path, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line
