"""Decode JSON of tenants and their senders, in time that is linear in its length."""

from math import isinf
from typing import Any, Final

import msgspec
import re2

_QUICK_BYTES: Final = 2 * 1024  # in this much text slow numbers cost 4 ms at most
_OPTIONS: Final = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1  # match bytes, not characters
# A number that may be slow: with many digits, or an exponent of three digits or more.
_SLOW_NUMBER: Final = re2.compile(rb"[0-9.]{24}|[0-9][eE][+-]?[0-9]{3,}[\s,\]}]", _OPTIONS)


def decode_json(text: bytes) -> Any:
    """Decode a JSON document.

    msgspec takes up to 11 us to convert a number that its fast method cannot decide: one near the limits of a double,
    or one between two doubles with more digits than it reads. 256 KB of `1e289` take it 460 ms. In a long text that may
    contain such numbers Python converts them, at 0.5 us for any number.

    Raises msgspec.DecodeError or UnicodeDecodeError; RecursionError for about 1,000 levels of nesting.
    """
    if len(text) > _QUICK_BYTES and _SLOW_NUMBER.search(text) is not None:
        return _decode_any_number(text)
    return _decode(text)


def _read_float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError("Number out of range")  # msgspec's own error text
    return number


_decode: Final = msgspec.json.Decoder().decode
_decode_any_number: Final = msgspec.json.Decoder(float_hook=_read_float).decode
