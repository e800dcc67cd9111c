"""What a metric is: a name, the column it comes from, its unit and its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter"]

# unit as written -> (base unit, factor to it). Rates of bytes become bit/s, so that an octet counter
# and a throughput gauge of the same link carry the same numbers.
UNITS: dict[str, tuple[str, float]] = {
    "1": ("1", 1.0),
    "ratio": ("ratio", 1.0),
    "%": ("ratio", 0.01),
    "bit": ("bit", 1.0),
    "byte": ("bit", 8.0),
    "B": ("bit", 8.0),
    "KiB": ("bit", 8.0 * 2**10),
    "MiB": ("bit", 8.0 * 2**20),
    "kB": ("bit", 8e3),
    "MB": ("bit", 8e6),
    "bit/s": ("bit/s", 1.0),
    "bps": ("bit/s", 1.0),
    "kbit/s": ("bit/s", 1e3),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "kbps": ("bit/s", 1e3),
    "Mbps": ("bit/s", 1e6),
    "Gbps": ("bit/s", 1e9),
    "byte/s": ("bit/s", 8.0),
    "B/s": ("bit/s", 8.0),
    "kB/s": ("bit/s", 8e3),
    "MB/s": ("bit/s", 8e6),
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "1/s": ("1/s", 1.0),
    "packet": ("packet", 1.0),
    "packet/s": ("packet/s", 1.0),
    "pps": ("packet/s", 1.0),
    "dB": ("dB", 1.0),
    "dBm": ("dBm", 1.0),
    "celsius": ("celsius", 1.0),
    "volt": ("volt", 1.0),
    "watt": ("watt", 1.0),
    "hertz": ("hertz", 1.0),
}


def quantity(unit: str, kind: Kind) -> str:
    """The base unit of what a model sees: of a counter the rate, so octets counted are bit/s, as a throughput is."""
    base = UNITS[unit][0]
    return f"{base}/s" if kind == "counter" else base


@dataclass(frozen=True)
class Metric:
    """One measured column.

    Attributes:
        name: the name used in outputs.
        column: the header of the column it is read from.
        unit: a key of `UNITS`; values are converted to its base unit.
        kind: `gauge`, or `counter` for a running total, which becomes a rate per second.
        is_measured: whether there is such a column; else the metric is missing in every row.
    """

    name: str
    column: str
    unit: str = "1"
    kind: Kind = "gauge"
    is_measured: bool = True

    @property
    def factor(self) -> float:
        """What a value as written is multiplied by to be in the base unit."""
        return UNITS[self.unit][1]

    @property
    def is_percent(self) -> bool:
        """Whether cells may end in a percent sign."""
        return self.unit == "%"
