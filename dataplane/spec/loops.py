"""Loops: detect deliveries that would return to our own ingest without end. Pure.

A destination must not be our own ingest: its configured addresses are refused when a spec is saved and at every
connect. A loop through a third party's service is detected by a header that counts deliveries.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from dataplane.spec.guard import literal_address, plain_host

HOPS_HEADER: Final = "penstock-hops"
MAX_HOPS: Final = 8
LOOP_DETECTED: Final = "loop-detected"  # the code of ingest's refusal, and the cause of the dead letter
LOOP_STATUS: Final = 508  # RFC 5842, section 7.2
Endpoint = tuple[str, int]  # host as `_host` writes it, port
_PORTS: Final = {"https": 443, "http": 80}


def parse_endpoints(*texts: str) -> frozenset[Endpoint]:
    """Return the endpoints of comma-separated URLs or `host:port`; a host alone stands for the ports of http and https.

    Raises ValueError for an invalid port.
    """
    found: set[Endpoint] = set()
    for text in filter(None, (part.strip() for whole in texts for part in whole.split(","))):
        parts = urlsplit(text if "://" in text else f"//{text}")
        port = parts.port or _PORTS.get(parts.scheme)
        found |= {(_host(parts.hostname or ""), one) for one in ([port] if port else _PORTS.values())}
    return frozenset(found)


def is_own(host: str, port: int, own: Iterable[Endpoint]) -> bool:
    """Return True if a host (a name or a literal address) and a port are one of the endpoints `own`."""
    return (_host(host), port) in own


def is_own_url(url: str, own: Iterable[Endpoint]) -> bool:
    """Return True if a URL has one of the endpoints `own`."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme)
    return port is not None and is_own(parts.hostname or "", port, own)


def hops_of(value: str | None) -> int:
    """Return the hop count in a request's header; 0 if the header is missing or not a number."""
    return int(value) if value and len(value) <= 4 and value.isascii() and value.isdecimal() else 0


def is_loop(status: int, body: bytes) -> bool:
    """Return True if a response comes from a Penstock ingest that refused a loop."""
    return status == LOOP_STATUS and b'"loop-detected"' in body


def _host(host: str) -> str:
    """Return a host in canonical form; all loopback addresses become 127.0.0.1."""
    plain = plain_host(host)
    try:
        address = literal_address(plain)
    except ValueError:
        return plain
    if address is None:
        return plain
    address = getattr(address, "ipv4_mapped", None) or address
    return "127.0.0.1" if address.is_loopback else str(address)
