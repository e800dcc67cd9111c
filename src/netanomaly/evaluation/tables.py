"""Numbers in aligned columns for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def score(value: float | None) -> str:
    """A score between 0 and 1; a dash where it cannot be told."""
    return "-" if value is None else f"{value:.3f}"


def amount(value: float | None) -> str:
    """Any other number that is not negative, with fewer digits behind the point the larger it is."""
    return "-" if value is None else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns under their headers, the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: tuple[str, ...]) -> str:
        first, *others = (
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others])

    return [line(header), "  ".join("-" * w for w in widths), *(line(row) for row in rows)]
