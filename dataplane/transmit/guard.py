"""The address guard: which addresses the platform may connect to. Asked with every address, just before the connect.

`ipaddress.is_global` alone is not enough on Python 3.11: it is True for NAT64, 6to4, IPv4-compatible and other forms
that lead back inside, so embedded IPv4 addresses are taken out and further networks are named.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from dataplane.runtime.networks import Network

_DENIED: Final[tuple[Network, ...]] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")


def may_connect(host: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a connection to this literal address may be opened."""
    address = ip_address(host.partition("%")[0])
    if any(address in network for network in allowed if network.version == address.version):
        return True
    inner = _embedded(address)
    if inner is not None:
        return may_connect(str(inner), allowed)
    return address.is_global and not any(
        address in network for network in _DENIED if network.version == address.version
    )


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a mapped, 6to4 or NAT64 address stands for."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
