"""Decode JSON that tenants and their senders wrote, in time that grows with its length and with nothing else."""

from math import isinf
from typing import Any, Final

import msgspec

_QUICK_BYTES: Final = 4 * 1024  # of text in which slow numbers cost a millisecond at most
_LONG_NUMBER: Final = b"0" * 20  # more significant digits than msgspec's quick conversion takes
_DIGITS_TO_ZERO: Final = bytes(ord("0") if byte in b"0123456789." else byte for byte in range(256))


def decode_json(text: bytes) -> Any:
    """Decode a JSON document.

    msgspec converts a number of 20 digits or more that lies between two doubles in up to 9 us, so 256 KB of them would
    take 100 ms. A long text that may hold such numbers has them converted by Python, which takes 0.5 us for any.

    Raises: msgspec.DecodeError, UnicodeDecodeError; RecursionError for about 1 000 levels of nesting.
    """
    if len(text) > _QUICK_BYTES and _LONG_NUMBER in text.translate(_DIGITS_TO_ZERO):
        return _decode_long_numbers(text)
    return _decode(text)


def _read_float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError("Number out of range")  # as msgspec says it
    return number


_decode: Final = msgspec.json.Decoder().decode
_decode_long_numbers: Final = msgspec.json.Decoder(float_hook=_read_float).decode
