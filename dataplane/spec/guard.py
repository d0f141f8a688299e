"""Which addresses and URLs the platform may connect to. Pure: asked when a spec is saved, and before every connect.

What is saved is checked by its text alone, so that a mistake is told at once. The wall is the check of the address that
is about to be connected to: it sees literals in every spelling, and names that lead inside or changed their mind.
`ipaddress.is_global` alone is not enough on Python 3.11: it is True for NAT64, 6to4, IPv4-compatible and other forms
that lead back inside, so embedded IPv4 addresses are taken out and further networks are named.
"""

import re
import unicodedata
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import unquote, urlsplit

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

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
_LOOPBACK: Final = IPv4Address("127.0.0.1")
# Names that lead inside wherever they are resolved (RFC 6761, RFC 6762, and clouds' metadata).
_INNER_NAMES: Final = re.compile(r"(.+\.)?(local|internal|intranet|lan|home\.arpa|metadata)")
# What speaks no HTTP and could be made to do something by it: shells, mail, file shares, the stores of a data centre.
FORBIDDEN_PORTS: Final = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
     111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531,
     532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375,
     2379, 3306, 3389, 3659, 4045, 5060, 5061, 5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 9042,
     9092, 9200, 10080, 10250, 11211, 27017}
)  # fmt: skip


def parse_networks(text: str) -> tuple[Network, ...]:
    """Comma-separated networks. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def may_connect(host: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a connection to this literal address may be opened. Raises ValueError if it is none."""
    return is_reachable(ip_address(host.partition("%")[0]), allowed)


def is_reachable(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Whether an address is public, or in a network that is `allowed` although it is not."""
    if any(address in network for network in allowed if network.version == address.version):
        return True
    inner = _embedded(address)
    if inner is not None:
        return is_reachable(inner, allowed)
    return address.is_global and not any(
        address in network for network in _DENIED if network.version == address.version
    )


def why_forbidden(url: str, allowed: Sequence[Network] = (), *, https_only: bool = False) -> str:
    """Why the platform will not connect to this URL, as what was needed; "" if its text gives no reason.

    Names that lead inside wherever they are resolved are refused where nothing inside is allowed. A name that does so
    only once it is resolved is not seen here: `may_connect` refuses it.
    """
    parts = urlsplit(url)
    if https_only and parts.scheme != "https":
        return "needs https"
    if parts.port in FORBIDDEN_PORTS:
        return f"needs a port that HTTP is spoken on, got {parts.port}"
    host = plain_host(parts.hostname or "")
    try:
        address = literal_address(host)
    except ValueError:
        return "needs a host name or an address, got a number that is neither"
    if address is not None and not is_reachable(address, allowed):
        return "needs a public address"
    if address is None and not allowed and (_INNER_NAMES.fullmatch(host) or "." not in host):
        return "needs a public host name"
    return ""


def plain_host(host: str) -> str:
    """The host as resolvers read it: percent signs decoded, full-width and such characters made plain, no last dot."""
    return unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".").lower().strip("[]").removesuffix(".")


def literal_address(host: str) -> Address | None:
    """The address that a plain host stands for by itself, in any spelling that resolvers take; None for a name.

    Raises ValueError for a host that ends in a number and is no address: some resolver may read it as one.
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
    """As inet_aton(3): one to four numbers, decimal, octal or hexadecimal; the last one fills what is left."""
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


def _embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that a mapped, 6to4 or NAT64 address stands for."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
