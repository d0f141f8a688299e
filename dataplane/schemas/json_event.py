"""Check an event in JSON against a compiled JSON Schema, in bounded time. Pure."""

from typing import Any, Final

import re2

from dataplane.spec.schema import Check, SchemaMismatch

LONG_NUMBER: Final = 300  # digits of a whole number: the time to compare longer ones is quadratic
_DIGITS: Final = re2.compile(f"[0-9]{{{LONG_NUMBER + 1}}}")


def json_mismatch(check: Check, body: bytes, value: Any) -> SchemaMismatch | None:
    """Return the first mismatch of an event, without its value; None if it fits.

    value: the decoded body; None also for a body that is not JSON
    """
    if value is None and body.strip() != b"null":
        return SchemaMismatch("", "needs JSON, because the source has a schema")
    most_values, most_bytes = check.limits
    if len(body) > most_bytes:
        reason = f"needs at most {most_bytes} bytes, because of the patterns and formats in the source's schema"
        return SchemaMismatch("", reason)
    if _may_be_many(body, most_values) and _count(value, most_values) > most_values:
        return SchemaMismatch("", f"needs at most {most_values} values, because the source has a schema")
    if len(body) > LONG_NUMBER and _has_long_number(body, value):
        reason = f"needs whole numbers of at most {LONG_NUMBER} digits, because the source has a schema"
        return SchemaMismatch("", reason)
    return check(value)


def _may_be_many(body: bytes, most: int) -> bool:
    """Return False only if there are at most `most` values; commas inside strings are counted too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") >= most


def _count(value: Any, most: int) -> int:
    """Return the number of values, `value` included; counting stops beyond `most`."""
    count, rest = 1, [value]
    while rest and count <= most:
        one = rest.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        rest += [part for part in inner if isinstance(part, dict | list)]
    return count


def _has_long_number(body: bytes, value: Any) -> bool:
    """Return whether the event has a whole number that is too long; digits inside strings do not count."""
    if _DIGITS.search(body) is None:
        return False
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, int) and abs(one) >= 10**LONG_NUMBER:
            return True
        rest += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return False
