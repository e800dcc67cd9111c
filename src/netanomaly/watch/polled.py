"""Rows of Prometheus as time goes on: asked for again and again, each step once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Self

from netanomaly.prometheus.client import MOST_POINTS, Unreachable
from netanomaly.prometheus.table import PrometheusTables
from netanomaly.watch.source import Delivery

log = logging.getLogger(__name__)

LAG = 1
"""Steps that a row is asked for after its moment: by then what it holds has been scraped."""
LOOK_SECONDS = 1.0
"""How often it is looked whether a step has passed, at least."""
AGAIN_SECONDS = 10.0
"""How long to wait after Prometheus did not answer."""


class PolledRows:
    """Rows from now on, or from where a saved state stood; see `Source`.

    What could not be asked while Prometheus did not answer is asked later: no step is passed over.

    Args:
        after: time of the last row that is known, in ns since 1970; None: begin now.
        clock, sleep: nanoseconds since 1970; waits so many seconds.

    Raises:
        DataError: the first question is refused, or not answered.
    """

    goes_on = True
    """No step is asked for twice."""

    def __init__(
        self,
        tables: PrometheusTables,
        after: int | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tables, self._clock, self._sleep = tables, clock, sleep
        self._next = self._newest() if after is None else after // tables.step * tables.step + tables.step
        self._is_down = False
        for _ in tables.tables(self._newest(), self._newest(), refused=lambda said: None):
            pass  # a query that is wrong, or a wrong URL, is better told before anything else

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def place(self) -> None:
        """None: the state itself knows the time of the last row."""

    def deliveries(self) -> Iterator[Delivery]:
        """Rows, a step or what has piled up at a time."""
        while True:
            newest = min(self._newest(), self._next + (MOST_POINTS - 1) * self._tables.step)
            if newest < self._next:
                left = (self._next - self._newest()) / 1e9
                self._sleep(min(LOOK_SECONDS, left, self._tables.step / 1e9))
                yield Delivery(0, ())
                continue
            try:
                found = list(self._tables.tables(self._next, newest, refused=self._refuse))
            except Unreachable as error:
                if not self._is_down:
                    log.warning("%s; asked again every %g s", error, AGAIN_SECONDS)
                self._is_down = True
                self._sleep(AGAIN_SECONDS)
                yield Delivery(0, ())
                continue
            if self._is_down:
                log.warning("Prometheus answers again")
            self._is_down, self._next = False, newest + self._tables.step
            yield Delivery(sum(map(len, found)), found)

    def _newest(self) -> int:
        """The latest step to ask for."""
        step = self._tables.step
        return self._clock() // step * step - LAG * step

    def _refuse(self, said: str) -> None:
        """A value that is none: its row is answered without it."""
        log.warning("taken as missing: %s", said)
