"""The lines of a CSV as a source of rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from netanomaly.data.ingest import InputFormat, Table
from netanomaly.watch.counts import LeftOut
from netanomaly.watch.lines import Batch, LineSource
from netanomaly.watch.place import Place
from netanomaly.watch.rows import RowReader
from netanomaly.watch.source import Delivery

log = logging.getLogger(__name__)


class CsvRows:
    """Rows of a CSV as its lines come; see `Source`.

    Args:
        path: None: standard input.
        follow: wait for more lines at the end of the file, through log rotation.
        start: where a saved state stood; None: there is none.

    Raises:
        DataError: there is no header, or a column is missing.
    """

    def __init__(
        self, path: Path | None, form: InputFormat, left_out: LeftOut, *, follow: bool, start: Place | None
    ) -> None:
        self._lines = LineSource(path, form.cells.encoding, follow=follow, start=start)
        if self._lines.news:
            log.warning("%s", self._lines.news)
        try:
            self._rows = RowReader(self._lines.name, self._lines.encoding, self._lines.header, form, left_out)
        except BaseException:
            self._lines.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.__exit__(*error)

    @property
    def goes_on(self) -> bool:
        """Whether no row from before the saved state comes again."""
        return self._lines.goes_on

    def place(self) -> Place | None:
        """Up to where the file has been taken."""
        return self._lines.place()

    def deliveries(self) -> Iterator[Delivery]:
        """Rows as they come."""
        for batch in self._lines.batches():
            if batch.turned:
                log.warning("%s", batch.turned)
            count = sum(1 for line in batch.lines if not line.isspace())
            yield Delivery(count, self._tables(batch) if batch.lines else ())

    def _tables(self, batch: Batch) -> Iterator[Table]:
        yield from self._rows.tables(batch.lines, batch.shift)
        self._lines.header = self._rows.header
