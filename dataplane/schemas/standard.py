"""Checks of standard types: TimeUuid, UUID, decimal, money, and the ranges of dates and times. Pure.

A type is named by its `logicalType`: `time-uuid`, `uuid`, `decimal`, `money`, `timestamp-micros`, `date` and the other
logical types of Avro. `time-uuid` (a UUID of version 1 or 7, whose clock orders events) and `money` (a record of a
decimal `amount` and a `currency`) are of Penstock; other readers ignore them and read the type below.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Final

from dataplane.schemas.avro import LogicalType

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY: Final = date(1970, 1, 1)
EARLIEST_CLOCK: Final = datetime(2000, 1, 1, tzinfo=UTC)  # of a TimeUuid; an earlier one is of a host without a clock
MAX_CLOCK_AHEAD: Final = timedelta(hours=24)
_EARLIEST_US: Final = (EARLIEST_CLOCK - EPOCH) // timedelta(microseconds=1)
_MOST_AHEAD_US: Final = MAX_CLOCK_AHEAD // timedelta(microseconds=1)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_GREGORIAN_TO_UNIX_US: Final = 12_219_292_800_000_000  # 1582-10-15, from which version 1 counts
_SPARE_BYTES: Final = 16  # some writers begin a decimal with bytes of sign
_DAY_MS: Final = 86_400_000
_SECOND_US: Final = 1_000_000
_LEAST_S: Final = -62_135_596_800  # 0001-01-01
_MOST_S: Final = 253_402_300_800  # 10000-01-01, excluded
# Units per second of each type that counts from 1970.
TIMESTAMP_UNITS: Final[Mapping[str, int]] = {
    f"{prefix}timestamp-{unit}": count
    for prefix in ("", "local-")
    for unit, count in (("millis", 1_000), ("micros", _SECOND_US), ("nanos", 1_000_000_000))
}
_LONG: Final = 1 << 63
# Lowest and highest number of each type; outside of it no calendar of four-digit years has a name for it, or it is no
# long: nanoseconds end in the year 2262.
RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "date": ((date.min - EPOCH_DAY).days, (date.max - EPOCH_DAY).days),
    "time-millis": (0, _DAY_MS - 1),
    "time-micros": (0, _DAY_MS * 1_000 - 1),
} | {name: (max(_LEAST_S * units, -_LONG), min(_MOST_S * units, _LONG) - 1) for name, units in TIMESTAMP_UNITS.items()}


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of the text of a UUID, which has been checked."""
    return bytes.fromhex(text.replace("-", ""))


def uuid_problem(text: str) -> str | None:
    """Return what is wrong with the text of a UUID; None if it is one."""
    return None if _UUID.fullmatch(text) else "needs a UUID, such as 6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def time_uuid_problem(value: bytes, now_us: int | None = None) -> str | None:
    """Return what is wrong with a TimeUuid of 16 bytes; None if its version is 1 or 7 and its clock is plausible.

    now_us: our clock, in microseconds since 1970; without it only clocks before 2000 are implausible.
    """
    clock_us = time_uuid_clock_us(value)
    if clock_us is None:
        return f"needs a UUID of version 1 or 7, got version {value[6] >> 4}"
    if clock_us < _EARLIEST_US:
        return f"its clock is before {EARLIEST_CLOCK.year}"
    if now_us is not None and clock_us > now_us + _MOST_AHEAD_US:
        return "its clock is more than 24 hours ahead"
    return None


def time_uuid_clock_us(value: bytes) -> int | None:
    """Return the clock of a UUID of version 1 or 7, in microseconds since 1970; None for other UUIDs."""
    if len(value) != 16 or value[8] >> 6 != 0b10:
        return None
    match value[6] >> 4:
        case 1:
            ticks = int.from_bytes(value[6:8]) & 0x0FFF
            ticks = (ticks << 16 | int.from_bytes(value[4:6])) << 32 | int.from_bytes(value[:4])
            return ticks // 10 - _GREGORIAN_TO_UNIX_US
        case 7:
            return int.from_bytes(value[:6]) * 1_000
    return None


def number_problem(logical: LogicalType, number: int) -> str | None:
    """Return what is wrong with the number of a date or time; None if a calendar has a name for it."""
    low, high = RANGES[logical.name]
    if low <= number <= high:
        return None
    return f"is not a {logical.name}: needs a number of {low} to {high}"


def currency_problem(text: str) -> str | None:
    """Return what is wrong with the currency of money; None if it has the form of ISO 4217."""
    return None if _CURRENCY.fullmatch(text) else "needs three capital letters, such as EUR"


def decimal_problem(logical: LogicalType, unscaled: bytes) -> str | None:
    """Return what is wrong with the bytes of a decimal; None if it has no more digits than its type."""
    if not unscaled:
        return "needs at least one byte"
    most = power_of_ten(logical.precision)
    fits = len(unscaled) <= most.bit_length() // 8 + _SPARE_BYTES and abs(int.from_bytes(unscaled, signed=True)) < most
    return None if fits else f"has more than {logical.precision} digits"


def unscaled_number(logical: LogicalType, value: Decimal) -> int:
    """Return the whole number that stands for a decimal in Avro. Raises ValueError with what is wrong with it."""
    if not value.is_finite():
        raise ValueError("needs a finite number")
    sign, digits, exponent = value.as_tuple()
    whole = len(digits) + int(exponent)  # digits before the point; an exponent can be a billion
    if any(digits) and whole > logical.precision - logical.scale:
        digits_before = logical.precision - logical.scale
        raise ValueError(f"needs at most {digits_before} digits before the point")
    if not any(digits):
        return 0
    kept = whole + logical.scale  # digits that the type holds
    if any(digits[max(0, kept) :]):
        raise ValueError(f"needs at most {logical.scale} digits after the point")
    number = int("".join(map(str, digits[: max(0, kept)])) or "0")
    number *= power_of_ten(max(0, kept - len(digits)))
    return -number if sign else number


@cache
def power_of_ten(exponent: int) -> int:
    """Return 10 to the power of an exponent that a schema bounds."""
    return int(10**exponent)
