"""Finds the address of the client behind the proxies that the operator trusts. Pure."""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from dataplane.spec.guard import Address, Network


def parse_proxies(text: str) -> tuple[Network, ...]:
    """Parse comma-separated networks. Raises ValueError if one is malformed."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def is_trusted(peer: str, proxies: Sequence[Network]) -> bool:
    """Return True if the peer is a trusted proxy, so that its X-Forwarded-* headers count."""
    address = _address(peer)
    return address is not None and any(address in network for network in proxies if network.version == address.version)


def client_address(peer: str, forwarded_for: str, proxies: Sequence[Network]) -> str:
    """Return the address of the client: the last one in X-Forwarded-For that is not a trusted proxy's.

    Every proxy appends the address of its caller, so the list is read from its end; entries before an address that is
    not trusted may be forged. A malformed entry ends the search at the last proxy that could be read.
    """
    client = peer
    for entry in reversed(forwarded_for.split(",")):
        if not is_trusted(client, proxies):
            break
        address = _address(entry)
        if address is None:
            break
        client = str(address)
    return client


def _address(text: str) -> Address | None:
    """Return the address in the text, also of `1.2.3.4:5678`, `[::1]:5678` and `::ffff:1.2.3.4`; None if none is."""
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
