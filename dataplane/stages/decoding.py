"""Decode JSON that tenants and their senders wrote, in time that grows with its length and with nothing else."""

from math import isinf
from typing import Any, Final

import msgspec
import re2

_QUICK_BYTES: Final = 2 * 1024  # of text in which slow numbers cost 4 ms at most
_OPTIONS: Final = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1  # bytes as they are
# A number that may be slow: one of many digits, or with an exponent of three digits or more.
_SLOW_NUMBER: Final = re2.compile(rb"[0-9.]{24}|[0-9][eE][+-]?[0-9]{3,}[\s,\]}]", _OPTIONS)


def decode_json(text: bytes) -> Any:
    """Decode a JSON document.

    msgspec converts a number that its quick method leaves open in up to 11 us: one near the ends of what a double can
    hold, or one that lies between two doubles and has more digits than it reads. 256 KB of `1e289` take it 460 ms. In a
    long text that may hold such numbers Python converts them, which takes 0.5 us for any.

    Raises: msgspec.DecodeError, UnicodeDecodeError; RecursionError for about 1 000 levels of nesting.
    """
    if len(text) > _QUICK_BYTES and _SLOW_NUMBER.search(text) is not None:
        return _decode_any_number(text)
    return _decode(text)


def _read_float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError("Number out of range")  # as msgspec says it
    return number


_decode: Final = msgspec.json.Decoder().decode
_decode_any_number: Final = msgspec.json.Decoder(float_hook=_read_float).decode
