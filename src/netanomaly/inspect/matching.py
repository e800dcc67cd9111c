"""Which columns are the metrics that a bundle knows: by what their names speak of, and by their quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from netanomaly.data.schema import Metric, quantity
from netanomaly.inspect.guesses import MetricGuess
from netanomaly.inspect.units import words_of

_SPOKEN = {
    "throughput": ("throughput", "octets", "bytes", "bits", "bps", "bitrate", "traffic", "bandwidth", "mbps", "rate"),
    "received": ("rx", "in", "hcin", "receive", "received", "recv", "down", "download", "ingress", "input", "dl"),
    "sent": ("tx", "out", "hcout", "transmit", "transmitted", "sent", "up", "upload", "egress", "output", "ul"),
    "packets": ("packets", "packet", "pkts", "pkt", "pps", "frames", "ucast"),
    "rtt": ("rtt", "ping", "latency", "delay", "srtt", "response", "probe"),
    "jitter": ("jitter", "mdev", "ipdv", "pdv", "stddev", "stdev", "deviation"),
    "loss": ("loss", "lost"),
    "drops": ("drops", "drop", "dropped", "discards", "discard", "discarded"),
    "retransmits": ("retransmits", "retransmit", "retrans", "retransmitted", "retransmissions", "retr"),
    "flows": ("flows", "flow", "connections", "conns", "sessions", "conntrack"),
    "new": ("new", "opened", "created"),
    "resets": ("resets", "reset", "rst", "rsts"),
    "extreme": ("max", "maximum", "min", "minimum", "p95", "p99", "worst", "best", "nominal", "limit", "capacity"),
}
"""What names speak of, and the words for it. `extreme` keeps `rtt_max` from being taken for a usual RTT."""
_INSIDE = ("octets", "throughput", "bitrate", "latency", "jitter", "loss", "ping", "discards", "retrans")
"""Words that are looked for within others, as in `PINGLOSS`, where a name has none of its own."""
_CONCEPT = {word: concept for concept, words in _SPOKEN.items() for word in words}
_COUNTS = {"1": "packet", "1/s": "packet/s", "packet": "1", "packet/s": "1/s"}
"""Numbers of things are written with and without saying of what."""


@dataclass(frozen=True)
class Match:
    """A metric of a bundle and the column that it is, with the unit and kind to read it with; None: there is none."""

    metric: Metric
    column: MetricGuess | None
    reason: str


def match_metrics(known: Sequence[Metric], found: Sequence[MetricGuess]) -> list[Match]:
    """For each metric of a bundle, in order, the column whose name speaks most nearly of the same.

    A column is taken once, and only if its quantity fits; names that are equal come first.
    """
    pairs = [
        (worth, m, f)
        for m, metric in enumerate(known)
        for f, guess in enumerate(found)
        if (worth := _alike(metric, guess)) > 0 and _fitting(guess, metric) is not None
    ]
    taken: dict[int, int] = {}
    for _, m, f in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if m not in taken and f not in taken.values():
            taken[m] = f
    return [_match(metric, found[taken[m]] if m in taken else None) for m, metric in enumerate(known)]


def _match(metric: Metric, guess: MetricGuess | None) -> Match:
    if guess is None:
        return Match(metric, None, "no column speaks of it")
    fitting = _fitting(guess, metric)
    if metric.name == guess.column or metric.column == guess.column:
        return Match(metric, fitting, "the same name")
    ours, theirs = _concepts(metric.name), _spoken(guess)
    untold = ours - theirs
    reason = f"both speak of {' and '.join(sorted(ours & theirs))}"
    if untold:
        reason += f"; the header does not say {' or '.join(sorted(untold))}"
    return Match(metric, fitting, reason)


def _alike(metric: Metric, guess: MetricGuess) -> float:
    """2 for one name, else the share of what the names speak of that both do; 0 if they contradict each other."""
    if guess.column in (metric.name, metric.column):
        return 2.0
    ours, theirs = _concepts(metric.name), _spoken(guess)
    more = theirs - ours
    if not ours & theirs or ours & theirs <= {"received", "sent", "new"}:
        return 0.0
    if more:  # a queue's drops have a direction that the metric does not tell
        return 0.2 + 0.1 * ("sent" in more) if ours == {"drops"} and more <= {"received", "sent"} else 0.0
    return len(ours & theirs) / len(ours)


def _spoken(guess: MetricGuess) -> set[str]:
    """What a column speaks of, its unit considered: drops in percent are losses, what is sent at bit/s is traffic."""
    spoken = _concepts(guess.column)
    rate = quantity(guess.unit, guess.kind)
    if rate == "ratio" and "drops" in spoken:
        spoken = spoken - {"drops"} | {"loss"}
    if rate == "bit/s" and spoken and spoken <= {"received", "sent"}:
        spoken = spoken | {"throughput"}
    return spoken


def _concepts(name: str) -> set[str]:
    """What a name speaks of; packets that are lost, dropped or sent again are not traffic, lost pings no delay."""
    words = words_of(name)
    if not any(word in _CONCEPT for word in words):
        words = [inside for inside in _INSIDE for word in words if inside in word]
    spoken = {_CONCEPT[word] for word in words if word in _CONCEPT}
    if spoken & {"loss", "drops", "retransmits", "flows", "resets", "rtt", "jitter"}:
        spoken -= {"packets", "throughput"}
    if spoken & {"loss", "jitter"}:
        spoken -= {"rtt"}
    return spoken - {"throughput"} if "packets" in spoken else spoken


def _fitting(guess: MetricGuess, metric: Metric) -> MetricGuess | None:
    """The column with a unit in which it is the metric's quantity; None: in none."""
    wanted = quantity(metric.unit, metric.kind)
    for unit in (guess.unit, _COUNTS.get(guess.unit)):
        if unit is not None and quantity(unit, guess.kind) == wanted:
            return replace(guess, unit=unit)
    return None
