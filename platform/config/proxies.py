"""The address of the client behind proxies that the operator trusts. Pure."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def parse_proxies(text: str) -> tuple[Network, ...]:
    """Return comma-separated networks. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def is_trusted(peer: str, proxies: Sequence[Network]) -> bool:
    """Return True if what the peer says of its clients is believed."""
    address = _address(peer)
    return address is not None and any(address in network for network in proxies if network.version == address.version)


def client_address(peer: str, forwarded_for: str, proxies: Sequence[Network]) -> str:
    """Return the address of the client: the last one in X-Forwarded-For that no trusted proxy has.

    Every proxy adds the address that it was called from at the end, so the list is read from there; what stands before
    an address that is not trusted may be made up. A list that cannot be read ends at the last proxy that could be.
    """
    client = peer
    for said in reversed(forwarded_for.split(",")):
        if not is_trusted(client, proxies):
            break
        address = _address(said)
        if address is None:
            break
        client = str(address)
    return client


def _address(text: str) -> Address | None:
    """Return an address, also of `1.2.3.4:5678`, `[::1]:5678` and `::ffff:1.2.3.4`; None for what is none."""
    plain = text.strip()
    if plain.startswith("["):
        plain = plain[1:].partition("]")[0]
    elif plain.count(":") == 1:
        plain = plain.partition(":")[0]
    try:
        address = ip_address(plain)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
