"""The kernel's wire, where it has netem: two devices of a namespace in the middle, each delaying what it sends."""

from __future__ import annotations

from dataclasses import dataclass

from scripts.testbed.impairment import BURST_LOSS, Impairment
from scripts.testbed.links import DOWN, UP
from scripts.testbed.namespaces import Namespace, create_namespace

from netanomaly.errors import ConfigError

HELD = "8192"
SENDS = {UP: "far", DOWN: "near"}
"""The device of the middle that sends in each direction: `near` lies at the gateway, `far` at the provider."""


def kernel_has_netem() -> bool:
    """Tried on the loopback device of a namespace made for that."""
    try:
        create_namespace().run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    except ConfigError:
        return False
    return True


@dataclass(frozen=True)
class NetemWire:
    """A namespace with the devices `near` and `far`."""

    middle: Namespace

    def apply(self, direction: int, impairment: Impairment) -> None:
        """Packets that enter in this direction from now on meet this."""
        self.middle.run("tc", "qdisc", "replace", "dev", SENDS[direction], "root", *netem_arguments(impairment))

    def carrier(self, on: bool) -> None:
        """Nothing: an outage loses all packets and leaves the cable in, or the kernel would forget the routes."""


def netem_arguments(impairment: Impairment) -> list[str]:
    """What `tc` is told. The jitter of netem is correlated from packet to packet, not over time: independent here."""
    words = ["netem", "limit", HELD, "delay", f"{impairment.delay_ms:.3f}ms"]
    if impairment.jitter_ms > 0:
        words.append(f"{impairment.jitter_ms:.3f}ms")
    if impairment.down:
        words += ["loss", "100%"]
    elif impairment.burst_loss > 0:
        begins, ends = impairment.burst_chances()
        words += ["loss", "gemodel", *map(_percent, (begins, ends, BURST_LOSS, impairment.loss))]
    elif impairment.loss > 0:
        words += ["loss", _percent(impairment.loss)]
    if impairment.reorder > 0:
        return [*words, "reorder", _percent(impairment.reorder)]
    return [*words, "rate", "10gbit"]  # with a rate, netem keeps the order of packets


def _percent(share: float) -> str:
    return f"{100 * share:.6f}%"
