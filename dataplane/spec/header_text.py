"""Text of CloudEvents attributes in HTTP headers. Pure."""

from typing import Final
from urllib.parse import quote_from_bytes

_PRINTABLE: Final = "".join(map(chr, range(32, 127)))


def percent_encoded(value: bytes) -> str:
    """Return a header's value in printable ASCII, the rest percent-encoded (CloudEvents' HTTP binding, 3.1.3.2)."""
    text = value.decode("latin-1")
    return text if text.isascii() and text.isprintable() else quote_from_bytes(value, safe=_PRINTABLE)
