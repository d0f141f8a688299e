"""Spellings of addresses that no destination may have, in every form that some resolver or parser accepts."""

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final
from urllib.parse import quote

# One of each kind: this host, private, link-local, metadata, carrier, benchmark, multicast, reserved, broadcast.
INNER: Final = (
    "127.0.0.1", "127.0.0.53", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",  # noqa: S104
    "168.63.129.16", "192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
)  # fmt: skip
INNER_V6: Final = (
    "::", "::1", "0:0:0:0:0:0:0:1", "::0001", "fe80::1", "fe80::1%251", "febf::1", "fec0::1", "fc00::1", "fd12:3456::1",
    "ff02::1", "100::1", "2001::1", "2001:db8::1", "2001:20::1", "3fff::1", "5f00::1", "64:ff9b:1::1", "2002:7f00:1::",
)  # fmt: skip
NAMES: Final = ("localhost", "LOCALHOST", "localhost.", "any.localhost", "%6cocalhost")


def hosts() -> list[str]:
    """Return every spelling as the host part of a URL."""
    spelled = [host for address in INNER for host in _spellings(IPv4Address(address))]
    return [*dict.fromkeys(spelled), *(f"[{address}]" for address in INNER_V6), *NAMES]


def urls(port: int) -> list[str]:
    """Return every spelling as a URL to that port, and URLs with tricks in the other parts."""
    plain = [f"http://{host}:{port}/" for host in hosts()]
    tricks = [
        f"http://example.com@127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}\\@example.com/",
        f"http://127.0.0.1:{port}#@example.com/",
        f"http://127.0.0.1:{port}/?@example.com",
        f"HTTP://127.0.0.1:{port}/",
        f"http:127.0.0.1:{port}/",
        f"http:///127.0.0.1:{port}/",
        f"http://\t127.0.0.1:{port}/",
        f"http://127.0.0.1\n:{port}/",
        f"//127.0.0.1:{port}/",
        f"127.0.0.1:{port}",
        f"gopher://127.0.0.1:{port}/_GET",
        f"ftp://127.0.0.1:{port}/",
        "file:///etc/passwd",
        "data:text/plain,hello",
        f"dict://127.0.0.1:{port}/info",
    ]
    return plain + tricks


def _spellings(address: IPv4Address) -> Iterator[str]:
    a, b, c, d = parts = address.packed
    number = int(address)
    dotted = str(address)
    yield dotted
    yield f"{dotted}."
    yield from (str(number), hex(number), hex(number).upper().replace("X", "x"), f"0{number:o}", f"0x00{number:08x}")
    yield ".".join(map(hex, parts))
    yield ".".join(f"0{part:o}" for part in parts)
    yield f"{hex(a)}.{b}.0{c:o}.{d}"
    yield f"{a}.{number & 0xFFFFFF}"
    yield f"{a}.{b}.{number & 0xFFFF}"
    yield quote(dotted, safe="").replace("1", "%31")
    yield "".join(chr(ord(digit) + 0xFEE0) if digit.isdigit() else digit for digit in dotted)
    yield dotted.replace(".", "\u3002")
    yield f"[::ffff:{dotted}]"
    yield f"[::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}]"
    yield f"[::{dotted}]"
    yield f"[64:ff9b::{dotted}]"
    yield f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]"
