"""Timestamps and durations: conversion from and to text, parts, zones. Sources: RFC 3339, the CEL specification."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

from dataplane.expr.values import NS, Duration, EvaluationError, Timestamp

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_NS: Final = -62_135_596_800 * NS  # 0001-01-01T00:00:00Z
_END_NS: Final = 253_402_300_800 * NS  # the year 10000
_LONGEST_NS: Final = 2**63
MAX_DURATION_CHARS: Final = 256
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)
_OFFSET: Final = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_DURATION: Final = re.compile(r"([+-]?)((?:\d{1,19}(?:\.\d{0,18})?|\.\d{1,18})(?:h|ms|m|s|us|µs|ns))+", re.ASCII)
_DURATION_PART: Final = re.compile(r"(\d*)\.?(\d*)(h|ms|m|s|us|µs|ns)", re.ASCII)
_UNIT_NS: Final = {"h": 3600 * NS, "m": 60 * NS, "s": NS, "ms": 1_000_000, "us": 1_000, "µs": 1_000, "ns": 1}


def timestamp(ns: int) -> Timestamp:
    """Return a timestamp. Raises EvaluationError outside the years 1 to 9999."""
    if not _FIRST_NS <= ns < _END_NS:
        raise EvaluationError("a timestamp needs a year from 1 to 9999")
    return Timestamp(ns)


def duration(ns: int) -> Duration:
    """Return a duration. Raises EvaluationError beyond 64 bits of nanoseconds (about 292 years)."""
    if not -_LONGEST_NS <= ns < _LONGEST_NS:
        raise EvaluationError("a duration needs at most 292 years")
    return Duration(ns)


def read_timestamp(text: str) -> Timestamp:
    """Parse RFC 3339 text, which needs an offset. Raises EvaluationError."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise EvaluationError("a timestamp needs RFC 3339 text, such as 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    try:
        days = date(year, month, day).toordinal() - _EPOCH.toordinal()
    except ValueError as exc:
        raise EvaluationError("a timestamp needs a valid calendar date") from exc
    if hour > 23 or minute > 59 or second > 59:
        raise EvaluationError("a timestamp needs a valid time of day")
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second - _offset_s(found[9], found[10], found[11])
    return timestamp(seconds * NS + int((found[7] or "0").ljust(9, "0")))


def _offset_s(sign: str | None, hours: str | None, minutes: str | None) -> int:
    if hours is None or minutes is None:
        return 0
    if int(hours) > 23 or int(minutes) > 59:
        raise EvaluationError("a time zone needs an offset below 24 hours")
    return (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1)


def read_duration(text: str) -> Duration:
    """Parse a duration such as `1h30m`, `1.5s` or `-20ms`. Raises EvaluationError."""
    if len(text) > MAX_DURATION_CHARS:
        raise EvaluationError(f"a duration needs at most {MAX_DURATION_CHARS} characters, got {len(text)}")
    found = _DURATION.fullmatch(text)
    if text in ("0", "+0", "-0"):
        return Duration(0)
    if found is None:
        raise EvaluationError("a duration needs numbers with h, m, s, ms, us or ns, such as 1h30m")
    total = 0
    for whole, part, unit in _DURATION_PART.findall(text):
        scale = _UNIT_NS[unit]
        total += int(whole or "0") * scale + int(part or "0") * scale // 10 ** len(part)
    return duration(-total if found[1] == "-" else total)


def time_text(value: Timestamp | Duration) -> str:
    """Format a timestamp as RFC 3339 in UTC, or a duration as seconds with an `s`; with no more digits than needed."""
    if isinstance(value, Duration):
        sign = "-" if value.ns < 0 else ""
        return f"{sign}{abs(value.ns) // NS}{_fraction(abs(value.ns) % NS)}s"
    moment = _EPOCH + timedelta(seconds=value.ns // NS)
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}{_fraction(value.ns % NS)}Z"


def _fraction(ns: int) -> str:
    return f".{ns:09}".rstrip("0") if ns else ""


@cache
def zone(name: str) -> tzinfo:
    """Return the time zone of `+02:00`, `UTC` or a name such as `Europe/Berlin`. Raises EvaluationError."""
    if found := _OFFSET.fullmatch(name):
        return timezone(timedelta(seconds=_offset_s(*found.groups())))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as exc:
        raise EvaluationError("needs a time zone, such as Europe/Berlin or +02:00") from exc


# The parts of a timestamp, as CEL counts them: months, days of the month (except getDate), weekdays and days of the
# year from 0, weeks from Sunday.
MOMENT_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1_000,
}
# A duration as a whole number of the unit; but milliseconds are only the part below a second.
DURATION_PARTS: Final[dict[str, Callable[[int], int]]] = {
    "getHours": lambda ns: _toward_zero(ns, 3600 * NS),
    "getMinutes": lambda ns: _toward_zero(ns, 60 * NS),
    "getSeconds": lambda ns: _toward_zero(ns, NS),
    "getMilliseconds": lambda ns: _toward_zero(ns, 1_000_000) - 1_000 * _toward_zero(ns, NS),
}


def moment_of(value: Timestamp, where: tzinfo) -> datetime:
    """Return the timestamp as a datetime in a time zone, to the microsecond.

    Raises EvaluationError if it is outside the years 1 to 9999 in that zone.
    """
    try:
        return (_EPOCH + timedelta(microseconds=value.ns // 1_000)).astimezone(where)
    except (OverflowError, ValueError) as exc:
        raise EvaluationError("a timestamp needs a year from 1 to 9999") from exc


def _toward_zero(number: int, unit: int) -> int:
    return number // unit if number >= 0 else -(-number // unit)
