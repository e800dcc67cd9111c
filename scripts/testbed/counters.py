"""Running totals of a link, read from /proc, and their rates."""

from __future__ import annotations

import os
from collections.abc import Mapping

from scripts.testbed.namespaces import Namespace

PROC_NET = "/proc/thread-self/net"
RATES = (
    "throughput_rx_bps",
    "throughput_tx_bps",
    "packets_rx_per_s",
    "packets_tx_per_s",
    "queue_drops_per_s",
    "queue_tx_drops_per_s",
    "retransmits_per_s",
    "new_flows_per_s",
    "tcp_resets_per_s",
    "udp_rx_per_s",
)
"""Metrics that are rates of totals, as `totals` gives them."""


class ProcFile:
    """A file of /proc/net that stays that of its namespace."""

    def __init__(self, namespace: Namespace, name: str):
        with namespace.entered():
            self._file = os.open(f"{PROC_NET}/{name}", os.O_RDONLY)

    def read(self) -> str:
        """As it is now."""
        return os.pread(self._file, 1 << 14, 0).decode()


def parse_snmp(text: str) -> dict[str, int]:
    """/proc/net/snmp: a line of names and a line of values for each protocol; `Tcp.RetransSegs` and so on."""
    lines, found = text.splitlines(), {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, *rest = names.split()
        found.update(
            {f"{protocol[:-1]}.{name}": int(value) for name, value in zip(rest, values.split()[1:], strict=True)}
        )
    return found


def parse_device(text: str, device: str) -> dict[str, int]:
    """/proc/net/dev: bytes and packets received and sent by a device."""
    for line in text.splitlines():
        name, colon, values = line.partition(":")
        if colon and name.strip() == device:
            numbers = [int(value) for value in values.split()]
            return dict(
                zip(("rx_bytes", "rx_packets", "tx_bytes", "tx_packets"), numbers[:2] + numbers[8:10], strict=True)
            )
    raise ValueError(f"no device {device}")


def totals(
    device: Mapping[str, int], site: Mapping[str, int], server: Mapping[str, int], drops: tuple[int, int]
) -> dict[str, float]:
    """Totals whose rates are metrics.

    Args:
        device: of the gateway towards the link.
        site: /proc/net/snmp there.
        server: and at the server.
        drops: of the queues up and down.
    """
    return {
        "throughput_rx_bps": 8.0 * device["rx_bytes"],
        "throughput_tx_bps": 8.0 * device["tx_bytes"],
        "packets_rx_per_s": device["rx_packets"],
        "packets_tx_per_s": device["tx_packets"],
        "queue_drops_per_s": drops[1],
        "queue_tx_drops_per_s": drops[0],
        "retransmits_per_s": site["Tcp.RetransSegs"] + server["Tcp.RetransSegs"],
        "new_flows_per_s": site["Tcp.ActiveOpens"] + site["Tcp.PassiveOpens"],
        "tcp_resets_per_s": site["Tcp.OutRsts"],
        "udp_rx_per_s": site["Udp.InDatagrams"] + site["Udp.NoPorts"] + site["Udp.InErrors"],
    }


def rates(before: Mapping[str, float], after: Mapping[str, float], elapsed_s: float) -> dict[str, float | None]:
    """Per second; None for a total that fell: its counter began anew."""
    return {name: (after[name] - before[name]) / elapsed_s if after[name] >= before[name] else None for name in before}
