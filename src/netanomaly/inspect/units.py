"""The unit of a column from its header, its cells and its values; never a guess without a reason."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.schema import UNITS

_WORDS = {
    **{unit.lower(): unit for unit in ("ms", "us", "ns", "dBm", "dB", "ratio")},
    **dict(zip(("bps", "kbps", "mbps", "gbps"), ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"), strict=True)),
    **dict.fromkeys(("msec", "msecs", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros", "microseconds", "µs", "μs"), "us"),
    **dict.fromkeys(("nsec", "nanoseconds"), "ns"),
    **dict.fromkeys(("s", "sec", "secs", "seconds"), "s"),
    **dict.fromkeys(("%", "pct", "percent", "percentage"), "%"),
    **dict.fromkeys(("bit/s", "bits/s", "b/s", "bits/sec"), "bit/s"),
    **dict.fromkeys(("kbit/s", "kb/s", "kbits/s", "kbit"), "kbit/s"),
    **dict.fromkeys(("mbit/s", "mb/s", "mbits/s", "mbit"), "Mbit/s"),
    **dict.fromkeys(("gbit/s", "gb/s", "gbits/s", "gbit"), "Gbit/s"),
    **dict.fromkeys(("byte", "bytes", "octet", "octets"), "byte"),
    **dict.fromkeys(("byte/s", "bytes/s", "bytes/sec", "octets/s"), "byte/s"),
    **dict.fromkeys(("packet", "packets", "pkts", "pkt"), "packet"),
    **dict.fromkeys(("packets/s", "packet/s", "pkts/s", "pps"), "packet/s"),
    **dict.fromkeys(("1/s", "/s", "per s"), "1/s"),
    **dict.fromkeys(("fraction",), "ratio"),
    **dict.fromkeys(("celsius", "degc", "°c"), "celsius"),
    **dict.fromkeys(("volt", "volts"), "volt"),
    **dict.fromkeys(("watt", "watts"), "watt"),
    **dict.fromkeys(("hz", "hertz"), "hertz"),
    **dict.fromkeys(("bit", "bits"), "bit"),
}
"""What units are called in headers, in small letters."""

_ONLY_LAST = {"s", "sec", "secs", "ratio", "bit", "bits", "fraction", "%", "packet", "packets", "pkt", "pkts"}
"""Words that are units at the end of a name only: `packets` in `packets_dropped_ms` is none."""

_COUNTED = (
    (re.compile(r"^(octets?|bytes?)$"), "byte/s"),
    (re.compile(r"^bits?$"), "bit/s"),
    (re.compile(r"^(packets?|pkts?|frames?|drops?|dropped|retransmits?|retrans|udp|datagrams?)$"), "packet/s"),
)
_PER_SECOND = re.compile(r"_(per_s|per_sec|per_second|ps|rate)$")
_POWER = re.compile(r"(rssi|rsrp|txpower|rxpower|tx_power|rx_power|noise)", re.IGNORECASE)
_LEVEL = re.compile(r"(snr|sinr|rsrq)", re.IGNORECASE)
_WAIT = re.compile(r"(rtt|ping|latency|delay|jitter)", re.IGNORECASE)
_RATE = re.compile(r"(throughput|download|upload|bandwidth|bitrate|traffic)", re.IGNORECASE)
_SHARE = re.compile(r"(loss|util|usage|_per$)", re.IGNORECASE)


def guess_unit(header: str, values: NDArray[np.float64], percents: int = 0) -> tuple[str, str]:
    """A key of `UNITS` and why; `1` where nothing tells.

    Args:
        values: the column's numbers as written, NaN where there is none. (rows,)
        percents: cells that end in a percent sign.
    """
    if percents:
        return "%", f"{percents} cells end in %"
    return _named(header) or _by_size(header, values[~np.isnan(values)]) or ("1", "no unit in the name")


def _named(header: str) -> tuple[str, str] | None:
    """The unit that the header says."""
    bracket = re.search(r"[(\[]\s*([^)\]]+?)\s*[)\]]", header)
    if bracket and (unit := _unit(bracket[1])):
        return unit, f"'{bracket[0]}' in the header"
    if header.endswith("%"):
        return "%", "the header ends in %"
    words = words_of(header)
    rest, per_second = re.subn(_PER_SECOND, "", "_".join(words))
    if per_second and not rest.endswith(("bit", "loss", "error")):
        of = [unit for pattern, unit in _COUNTED if any(pattern.match(word) for word in rest.split("_"))]
        return (of or ["1/s"])[0], f"'{'_'.join(words)[len(rest) + 1 :]}' in the header"
    for place, word in reversed(list(enumerate(words))):
        if word in _WORDS and (place == len(words) - 1 or word not in _ONLY_LAST):
            return _WORDS[word], f"'{word}' in the header"
    return None


def _unit(text: str) -> str | None:
    """The unit that a text names: MB/s is not Mb/s where case is all that tells them apart."""
    return text if text in UNITS else _WORDS.get(text.lower())


def is_unit(text: str) -> bool:
    """Whether a text is a unit, one of ours or a larger or smaller one."""
    return _unit(text) is not None or re.fullmatch("[kmgt]?(i?b|hz|w|v|bit|byte)(/s|ps)?", text.lower()) is not None


def _by_size(header: str, numbers: NDArray[np.float64]) -> tuple[str, str] | None:
    """A unit that the name suggests and the values allow."""
    if not len(numbers):
        return None
    low, middle, high = float(numbers.min()), float(np.median(numbers)), float(numbers.max())
    seen = f"values around {middle:.3g}"
    if _POWER.search(header) and -200 < middle < 60:
        return "dBm", f"a power by its name, {seen}"
    if _LEVEL.search(header) and -60 < middle < 100:
        return "dB", f"a signal quality by its name, {seen}"
    if _WAIT.search(header) and 1 <= middle < 1e5 and not re.search("loss", header, re.IGNORECASE):
        return "ms", f"a delay by its name, {seen}: ms, most likely"
    if _RATE.search(header) and middle >= 1e5:
        return "bit/s", f"a rate by its name, {seen}: bit/s, most likely"
    if _SHARE.search(header) and low >= 0 and high <= 100:
        return ("ratio", "a share by its name, none above 1") if high <= 1 else ("%", "a share by its name, up to 100")
    return None


def words_of(header: str) -> list[str]:
    """The words of a header in small letters: `ifHCInOctets` and `tx_bytes (total)` have several."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", "_", header)
    return [word for word in re.split(r"[^A-Za-z0-9%µμ°/]+", spaced.lower()) if word]
