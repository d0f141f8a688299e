"""Casts of JSON values to other types. Each raises ValueError, TypeError or an arithmetic error if it is impossible.

The length of texts and the size of exponents are limited before anything is computed: `1E+800000` as an int would be
800,000 digits, which one call in C would take a minute to write, blocking every other thread of the process.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from math import isinf
from typing import Any, Final
from uuid import UUID

_UUID: Final = re.compile(r"(urn:uuid:)?\{?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?", re.ASCII)
_MONEY: Final = re.compile(r"(?:([A-Z]{3}) ?)?(-?\d{1,15}(?:\.\d{1,6})?)(?: ?([A-Z]{3}))?", re.ASCII)
MAX_NUMBER_CHARS: Final = 500  # of a number as text; the smallest double has 326 without an exponent
MAX_TIME_CHARS: Final = 100
_EXPONENTS: Final = range(-400, 309)  # of the first digit; those of doubles range from -324 to 308
# ISO 4217: currencies whose minor unit is not 1/100.
_DIGITS: Final = {
    **dict.fromkeys(re.findall("...", "BIFCLPDJFGNFISKJPYKMFKRWPYGRWFUGXUYIVNDVUVXAFXOFXPF"), 0),
    **dict.fromkeys(re.findall("...", "BHDIQDJODKWDLYDOMRTND"), 3),
    **dict.fromkeys(re.findall("...", "CLFUYW"), 4),
}


def caster(to: str, currency: str | None = None) -> Callable[[Any], Any]:
    """Return the cast to a type of the spec."""
    return partial(_to_money, currency) if to == "money" else _CASTS[to]


def _to_int(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, str):
        return int(_number_text(value))
    number = _to_decimal(value)
    whole = int(number)
    if whole != number:
        raise ValueError
    return whole


def _to_decimal(value: Any) -> Decimal:
    """Return a number that a JSON reader accepts as a double in range, with the digits that were given."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise TypeError
    number = Decimal(_number_text(str(value)))
    if not number.is_finite() or number.adjusted() not in _EXPONENTS or isinf(float(number)):
        raise ValueError
    return number


def _number_text(text: str) -> str:
    """Return the text of a number, without what only Python reads: underscores and digits of other scripts."""
    if not text.isascii() or "_" in text:
        raise ValueError
    return _short(text, MAX_NUMBER_CHARS)


def _short(text: str, most: int) -> str:
    if len(text) > most:
        raise ValueError
    return text


def _to_bool(value: Any) -> bool:
    meanings = {True: True, False: False, "true": True, "false": False, "1": True, "0": False}
    if value in meanings:
        return meanings[value]
    raise ValueError


def _to_string(value: Any) -> str:
    if isinstance(value, dict | list):
        raise TypeError
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _to_datetime(value: Any) -> str:
    """Convert RFC 3339 text (with an offset) or seconds since the epoch to RFC 3339 in UTC."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, int | float | Decimal):
        moment = datetime.fromtimestamp(float(value), UTC)
    else:
        moment = datetime.fromisoformat(_short(value, MAX_TIME_CHARS))
        if moment.tzinfo is None:
            raise ValueError
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _to_uuid(value: Any) -> str:
    """Convert RFC 9562 text, also with braces, as a URN or without hyphens, to lower case with hyphens."""
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise ValueError
    return str(UUID(value))


def _to_money(currency: str | None, value: Any) -> dict[str, str]:
    """Convert `12.50 EUR`, `EUR 12.50`, or a number in the step's currency to amount and currency, digits written out.

    More digits than the currency has are refused: only the owner may decide how to round money.
    """
    found = _MONEY.fullmatch(value if isinstance(value, str) else format(_to_decimal(value), "f"))
    if found is None or (found[1] and found[3]):
        raise ValueError
    named = found[1] or found[3] or currency
    if named is None or (currency is not None and named != currency):
        raise ValueError
    amount, digits = Decimal(found[2]), _DIGITS.get(named, 2)
    exact = amount.quantize(Decimal(1).scaleb(-digits))
    if exact != amount:
        raise ValueError
    return {"amount": format(exact, "f"), "currency": named}


_CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": _to_int,
    "decimal": _to_decimal,
    "bool": _to_bool,
    "string": _to_string,
    "datetime": _to_datetime,
    "uuid": _to_uuid,
}
