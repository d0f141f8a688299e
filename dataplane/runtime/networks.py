"""IP networks as settings name them."""

from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network


def parse_networks(text: str) -> tuple[Network, ...]:
    """Comma-separated networks. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
