"""Casts: a JSON value as another type. Each raises ValueError, TypeError or an arithmetic error if that cannot be."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

_UUID: Final = re.compile(r"(urn:uuid:)?\{?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?", re.ASCII)
_MONEY: Final = re.compile(r"(?:([A-Z]{3}) ?)?(-?\d{1,15}(?:\.\d{1,6})?)(?: ?([A-Z]{3}))?", re.ASCII)
# ISO 4217: currencies whose minor unit is not a hundredth.
_DIGITS: Final = {
    **dict.fromkeys(re.findall("...", "BIFCLPDJFGNFISKJPYKMFKRWPYGRWFUGXUYIVNDVUVXAFXOFXPF"), 0),
    **dict.fromkeys(re.findall("...", "BHDIQDJODKWDLYDOMRTND"), 3),
    **dict.fromkeys(re.findall("...", "CLFUYW"), 4),
}


def caster(to: str, currency: str | None = None) -> Callable[[Any], Any]:
    """The cast to a type of the spec."""
    return partial(_to_money, currency) if to == "money" else _CASTS[to]


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float | Decimal) and value != int(value)):
        raise TypeError
    return int(value)


def _to_decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise TypeError
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError
    return number


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
    """RFC 3339 text (an offset is needed) or seconds since the epoch, to RFC 3339 in UTC."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, int | float | Decimal):
        moment = datetime.fromtimestamp(float(value), UTC)
    else:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _to_uuid(value: Any) -> str:
    """RFC 9562 text, also with braces, as a URN or without hyphens, to lower case with hyphens."""
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise ValueError
    return str(UUID(value))


def _to_money(currency: str | None, value: Any) -> dict[str, str]:
    """`12.50 EUR`, `EUR 12.50`, or a number with the step's currency, to amount and currency, its digits written out.

    More digits than the currency has are refused: rounding money is nobody's business but its owner's.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise TypeError
    found = _MONEY.fullmatch(value if isinstance(value, str) else format(Decimal(str(value)), "f"))
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
