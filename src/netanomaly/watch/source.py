"""Where rows come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self

from netanomaly.data.ingest import Table
from netanomaly.watch.counts import LeftOut
from netanomaly.watch.place import Place


@dataclass(frozen=True)
class Delivery:
    """What has come since the one before; now and then nothing.

    Attributes:
        rows: how many lines or rows, those that cannot be used too.
        tables: the rows; read one after the other, and all before the next delivery.
    """

    rows: int
    tables: Iterable[Table]


class Source(Protocol):
    """Rows as they come."""

    def __enter__(self) -> Self:
        """Ready."""

    def __exit__(self, *error: object) -> None:
        """Done."""

    @property
    def goes_on(self) -> bool:
        """Whether no row from before the saved state comes again."""

    def place(self) -> Place | None:
        """Up to where the input has been taken; None: it has no places."""

    def deliveries(self) -> Iterator[Delivery]:
        """Rows as they come, until there will be no more."""


OpenSource = Callable[[Place | None, LeftOut], Source]
"""Opens a source, at the place of a saved state if there is one; tells what it leaves out."""
