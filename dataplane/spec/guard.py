"""Addresses and URLs to which the platform may connect. Pure: checked when a spec is saved and before every connect.

The check at save reads only the URL's text, so that a mistake is reported at once. The security check is the one of the
address that is about to be connected to: it covers literals in every notation, names that resolve to internal
addresses, and names whose resolution changes (DNS rebinding).

The rule is an allow-list: public IPv4 and IPv6 global unicast (2000::/3), both without every block of IANA's
special-purpose address registries. `ipaddress.is_global` is not used: on Python 3.11 it is True for NAT64, 6to4,
IPv4-compatible and other forms that can reach internal addresses.
"""

import re
import unicodedata
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import unquote, urlsplit

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_GLOBAL_UNICAST_V6: Final = IPv6Network("2000::/3")
# The whole IANA IPv4 Special-Purpose Address Registry (RFC 6890), globally reachable or not; multicast (RFC 5771);
# reserved (RFC 1112); and Azure's host address, which serves metadata although its number is public.
_SPECIAL_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# The part of the IANA IPv6 Special-Purpose Address Registry within 2000::/3: IETF assignments with Teredo and
# ORCHID, documentation, 6to4, AS112.
_SPECIAL_V6: Final = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
_LOOPBACK: Final = IPv4Address("127.0.0.1")
# Names that are internal on every resolver (RFC 6761, RFC 6762, and clouds' metadata).
_INNER_NAMES: Final = re.compile(r"(.+\.)?(local|internal|intranet|lan|home\.arpa|metadata)")
# Ports of other protocols that an HTTP request could abuse: shells, mail, file shares, databases of a data centre.
FORBIDDEN_PORTS: Final = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
     111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531,
     532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375,
     2379, 3306, 3389, 3659, 4045, 5060, 5061, 5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 9042,
     9092, 9200, 10080, 10250, 11211, 27017}
)  # fmt: skip


def parse_networks(text: str) -> tuple[Network, ...]:
    """Return the networks in a comma-separated list. Raises ValueError if one is invalid."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def may_connect(host: str, allowed: Sequence[Network] = ()) -> bool:
    """Return True if a connection to this literal address may be opened. Raises ValueError for a name."""
    return is_reachable(ip_address(host.partition("%")[0]), allowed)


def is_reachable(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Return True for a public address, and for an internal one in a network that the operator `allowed`."""
    if any(address in network for network in allowed if network.version == address.version):
        return True
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _GLOBAL_UNICAST_V6 and not any(address in network for network in _SPECIAL_V6)


def why_forbidden(url: str, allowed: Sequence[Network] = (), *, https_only: bool = False) -> str:
    """Return what the URL needs so that the platform may connect to it; "" if its text gives no reason to refuse.

    Names that are internal on every resolver are refused unless some internal network is allowed. A name that resolves
    to an internal address is not detected here: `may_connect` refuses it.
    """
    parts = urlsplit(url)
    if https_only and parts.scheme != "https":
        return "needs https"
    if parts.port in FORBIDDEN_PORTS:
        return f"needs a port that is used for HTTP, got {parts.port}"
    return why_host_forbidden(parts.hostname or "", allowed)


def why_host_forbidden(host: str, allowed: Sequence[Network] = ()) -> str:
    """Return what a host needs so that the platform may connect to it; see `why_forbidden`."""
    host = plain_host(host)
    try:
        address = literal_address(host)
    except ValueError:
        return "needs a host name or an IP address, got an invalid number"
    if address is not None and not is_reachable(address, allowed):
        return "needs a public address"
    if address is None and not allowed and (_INNER_NAMES.fullmatch(host) or "." not in host):
        return "needs a public host name"
    return ""


def plain_host(host: str) -> str:
    """Return the host as resolvers read it: percent-decoded, NFKC, lower case, no trailing dot, no brackets."""
    return unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".").lower().strip("[]").removesuffix(".")


def literal_address(host: str) -> Address | None:
    """Return the address that a plain host denotes in any notation that resolvers accept; None for a name.

    Raises ValueError for a host that ends in a number and is not an address: some resolver may read it as one.
    """
    text = host.partition("%")[0]
    if text == "localhost" or text.endswith(".localhost"):
        return _LOOPBACK
    try:
        return ip_address(text)
    except ValueError:
        last = text.rpartition(".")[2]
        if re.fullmatch(r"0x[0-9a-f]*|[0-9]+", last) is None:
            return None
        return _address_of_numbers(text.split("."))


def _address_of_numbers(parts: list[str]) -> IPv4Address:
    """Parse as inet_aton(3): one to four decimal, octal or hex numbers; the last fills the remaining bytes."""
    if len(parts) > 4:
        raise ValueError("more than four numbers")
    *first, last = [_number(part) for part in parts]
    if any(number > 255 for number in first) or last >= 256 ** (5 - len(parts)):
        raise ValueError("a number is too large")
    return IPv4Address(sum(number << 8 * (3 - place) for place, number in enumerate(first)) + last)


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8) if text.startswith("0") and len(text) > 1 else int(text)
