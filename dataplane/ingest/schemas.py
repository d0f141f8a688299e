"""Check events against the schema of their source, each event separately."""

import logging
from typing import Any, Final

import re2

from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.problems import EventRejectedError
from dataplane.spec.schema import Check, SchemaError, compile_schema
from dataplane.tables.records import SchemaRecord

log = logging.getLogger(__name__)

LONG_NUMBER: Final = 300  # digits of a whole number: the time to compare longer ones is quadratic
_DIGITS: Final = re2.compile(f"[0-9]{{{LONG_NUMBER + 1}}}")


def check_of(record: SchemaRecord | None) -> Check | None:
    """Return the check of a source's newest schema; None if there is none.

    A schema that cannot be run here, which registration would have refused, is skipped: publishing it must not break a
    sender whose events were accepted so far.
    """
    if record is None:
        return None
    try:
        return compile_schema(record.text)
    except SchemaError as exc:
        log.error("schema %d of source=%s pipe=%s is not enforced: %s", record.version, record.source, record.pipe, exc)
        return None


def reject_mismatch(check: Check, event: ReceivedEvent) -> None:
    """Raise EventRejectedError `schema`, with a JSON pointer, for an event that does not fit.

    The error text repeats no value of the event.
    """
    if event.value is None and event.body.strip() != b"null":
        raise EventRejectedError(422, "schema", "needs JSON, because the source has a schema")
    most_values, most_bytes = check.limits
    if len(event.body) > most_bytes:
        raise _too_much(f"needs at most {most_bytes} bytes, because of the patterns and formats in the source's schema")
    if _may_be_many(event.body, most_values) and _count(event.value, most_values) > most_values:
        raise _too_much(f"needs at most {most_values} values, because the source has a schema")
    if len(event.body) > LONG_NUMBER and _has_long_number(event):
        raise _too_much(f"needs whole numbers of at most {LONG_NUMBER} digits, because the source has a schema")
    misfit = check(event.value)
    if misfit is not None:
        detail = f"{misfit.pointer or 'the event'}: {misfit.reason}"
        raise EventRejectedError(422, "schema", detail, pointer=misfit.pointer)


def _too_much(detail: str) -> EventRejectedError:
    return EventRejectedError(422, "schema", detail)


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


def _has_long_number(event: ReceivedEvent) -> bool:
    """Return whether the event has a whole number that is too long; digits inside strings do not count."""
    if _DIGITS.search(event.body) is None:
        return False
    rest = [event.value]
    while rest:
        one = rest.pop()
        if isinstance(one, int) and abs(one) >= 10**LONG_NUMBER:
            return True
        rest += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return False
