"""Rows of Prometheus as time goes on: asked for again and again, each step once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Self

from netanomaly.errors import DataError
from netanomaly.prometheus.client import MOST_POINTS
from netanomaly.prometheus.table import PrometheusTables
from netanomaly.watch.source import Delivery

log = logging.getLogger(__name__)

LAG = 1
"""Steps that a row is asked for after its moment: by then what it holds has been scraped."""
LOOK_SECONDS = 1.0
"""How often it is looked whether a step has passed, at least."""
AGAIN_SECONDS = 10.0
"""How long to wait after Prometheus did not answer, or refused to."""


class PolledRows:
    """Rows from now on, or from where a saved state stood; see `Source`.

    What Prometheus did not answer, or refused, is asked again later: no step is passed over.

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
        self._told: str | None = None  # why there is no answer
        for _ in tables.tables(self._newest(), self._newest(), refused=lambda said: None):
            pass  # a query that is wrong, or a wrong URL, is better told before anything else

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def place(self) -> None:
        """None: the state itself knows the time of the last row."""

    def deliveries(self) -> Iterator[Delivery]:
        """Rows, a step or a piece of what has piled up at a time."""
        while True:
            newest = min(self._newest(), self._next + (MOST_POINTS - 1) * self._tables.step)
            if newest < self._next:
                left = (self._next - self._newest()) / 1e9
                self._sleep(min(LOOK_SECONDS, left, self._tables.step / 1e9))
                yield Delivery(0, ())
                continue
            try:
                for table in self._tables.tables(self._next, newest, refused=self._refuse):
                    self._answered(int(table.times.max()))
                    yield Delivery(len(table), [table])
            except DataError as error:
                self._not_answered(str(error))
                yield Delivery(0, ())
                continue
            self._answered(newest)

    def _answered(self, last: int) -> None:
        """Go on after this step."""
        if self._told is not None:
            log.warning("Prometheus answers again")
        self._told, self._next = None, last + self._tables.step

    def _not_answered(self, why: str) -> None:
        """Tell it, once, and wait."""
        if why != self._told:
            log.warning("%s; asked again every %g s", why, AGAIN_SECONDS)
        self._told = why
        self._sleep(AGAIN_SECONDS)

    def _newest(self) -> int:
        """The latest step to ask for."""
        step = self._tables.step
        return self._clock() // step * step - LAG * step

    def _refuse(self, said: str) -> None:
        """A value that is none: its row is answered without it."""
        log.warning("taken as missing: %s", said)
