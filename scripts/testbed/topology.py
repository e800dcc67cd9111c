"""One link is built: five namespaces, devices, addresses, routes, and the bottleneck of each direction.

site -- gateway [queue up] == wire == [queue down] provider -- server
                                                           \\-- outsider
"""

from __future__ import annotations

from dataclasses import dataclass

from scripts.testbed.forwarder import UserSpaceWire, forward
from scripts.testbed.links import DOWN, UP, Link
from scripts.testbed.namespaces import Namespace, create_namespace
from scripts.testbed.netem import NetemWire
from scripts.testbed.processes import Children

from netanomaly.errors import ConfigError

BURST_BYTES = 3200
"""Bucket of the bottleneck: two packets, so that trains of packets leave at its rate."""
SPOOFED = "10.99.128.0/17"
"""Sources that floods pretend to come from; what is sent back to them goes nowhere."""
PLAIN = "gso_max_segs 1"
"""Packets as on a cable: the kernel would hand over several as one."""


@dataclass(frozen=True)
class Built:
    """A link that is there."""

    link: Link
    site: Namespace
    gateway: Namespace
    provider: Namespace
    server: Namespace
    outsider: Namespace
    wire: UserSpaceWire | NetemWire

    def shape(self, direction: int, rate_bps: float, queue_bytes: float, verb: str = "change") -> None:
        """Rate (bit/s) and length of the queue of the bottleneck, from now on."""
        namespace, device = (self.gateway, "wan0") if direction == UP else (self.provider, "wan1")
        limits = ("rate", str(round(rate_bps)), "burst", str(BURST_BYTES), "limit", str(round(queue_bytes)))
        namespace.run("tc", "qdisc", verb, "dev", device, "root", "tbf", *limits)


def build(link: Link, netem: bool, children: Children, seed: int, end_s: float) -> Built:
    """Make everything of a link but its traffic.

    Raises:
        ConfigError: the kernel or `ip` or `tc` refused something.
    """
    names = ("site", "gateway", "provider", "server", "outsider")
    spaces = {name: _namespace(routes=name in ("gateway", "provider")) for name in names}
    gateway, provider = spaces["gateway"], spaces["provider"]
    at = link.address
    wire: UserSpaceWire | NetemWire
    if netem:
        wire = _kernel_wire(link, gateway, provider)
    else:
        wire = _user_space_wire(link, gateway, provider, children, seed, end_s)
    gateway.run("ip", "-batch", "-", lines=_veth("lan", spaces["site"], at(13)))
    provider.run(
        "ip", "-batch", "-", lines=_veth("lan", spaces["server"], at(5)) + _veth("out", spaces["outsider"], at(9))
    )
    provider.run("ip", "route", "add", "blackhole", SPOOFED)
    for name, address, router in (("site", 14, 13), ("server", 6, 5), ("outsider", 10, 9)):
        lines = f"{_up('eth0', at(address))}route add default via {at(router)}\n"
        spaces[name].run("ip", "-batch", "-", lines=lines)
    built = Built(link, **spaces, wire=wire)
    for direction in (UP, DOWN):
        built.shape(direction, link.rate_bps[direction], link.queue_bytes(direction), verb="add")
    return built


def _namespace(routes: bool) -> Namespace:
    made = create_namespace()
    made.set_kernel(
        ipv6__conf__all__disable_ipv6=1,
        ipv4__ip_forward=int(routes),
        ipv4__conf__all__rp_filter=0,
        ipv4__conf__default__rp_filter=0,
        ipv4__tcp_no_metrics_save=1,
        ipv4__ping_group_range="0 0",
    )
    made.run("ip", "link", "set", "lo", "up")
    return made


def _user_space_wire(
    link: Link, gateway: Namespace, provider: Namespace, children: Children, seed: int, end_s: float
) -> UserSpaceWire:
    wire = UserSpaceWire.create()
    children.start(forward, link, (gateway, provider), wire, seed, end_s=end_s, name=f"forwarder of {link.name}")
    if not wire.wait_ready():
        raise ConfigError("the forwarder has no TUN devices: /dev/net/tun is missing or may not be used")
    gateway.run("ip", "-batch", "-", lines=f"{_up('wan0', link.gateway)}route add default dev wan0\n")
    provider.run("ip", "-batch", "-", lines=f"{_up('wan1', link.address(2))}route add {link.address(12)}/30 dev wan1\n")
    return wire


def _kernel_wire(link: Link, gateway: Namespace, provider: Namespace) -> NetemWire:
    middle, at = _namespace(routes=True), link.address
    middle.run(
        "ip", "-batch", "-", lines=_veth("near", gateway, at(2), "wan0") + _veth("far", provider, at(17), "wan1")
    )
    gateway.run("ip", "-batch", "-", lines=f"{_up('wan0', link.gateway)}route add default via {at(2)}\n")
    back = f"route add {at(12)}/30 via {at(17)}\nroute add {at(0)}/30 via {at(17)}\n"
    provider.run("ip", "-batch", "-", lines=f"{_up('wan1', at(18))}{back}")
    there = f"route add default via {at(18)}\nroute add {at(12)}/30 via {link.gateway}\n"
    middle.run("ip", "-batch", "-", lines=there)
    return NetemWire(middle)


def _veth(device: str, peer: Namespace, address: str, peer_device: str = "eth0") -> str:
    return f"link add name {device} type veth peer name {peer_device} netns {peer.path}\n{_up(device, address)}"


def _up(device: str, address: str) -> str:
    return f"addr add {address}/30 dev {device}\nlink set {device} {PLAIN}\nlink set {device} up\n"
