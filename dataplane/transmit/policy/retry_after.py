"""Retry-After as a destination sends it: seconds or a date (RFC 9110, 10.2.3). Pure: time is an argument."""

from email.utils import parsedate_to_datetime
from typing import Final

MAX_DIGITS: Final = 9  # thirty years; longer values are invalid, and int() of thousands of digits is slow


def retry_after_s(value: str, now_s: float) -> float:
    """Return the seconds to wait from `now_s` (Unix time); 0 for a date in the past and for an invalid value."""
    if value.isascii() and value.isdigit():
        return float(value) if len(value) <= MAX_DIGITS else 0.0
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    if at.tzinfo is None:  # "-0000" instead of GMT means that the zone is unknown
        return 0.0
    return max(0.0, at.timestamp() - now_s)
