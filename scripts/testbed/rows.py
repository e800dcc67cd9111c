"""What is measured of a link in half a second."""

from __future__ import annotations

from dataclasses import dataclass

INTERVAL_S = 0.5


@dataclass(frozen=True)
class Row:
    """What was measured of a link in one interval."""

    series: str
    due_s: float
    """The interval's planned end, Unix time: the row's timestamp."""
    taken_s: float
    """When the totals were read."""
    metrics: dict[str, float | None]
    collector_lag_ms: float
    """How late the collector's beat came at most."""
    forwarder_late_ms: float | None
    """How late a packet left the user-space wire at most."""
    cpu_busy: float
    """Share of the machine's processors that were busy, whoever kept them so."""
