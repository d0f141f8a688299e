"""Events against the schema of their source: a verdict for each event by itself."""

import logging
from typing import Any, Final

import re2

from dataplane.ingest.events import Event
from dataplane.ingest.problems import RefusalError
from dataplane.spec.schema import Check, SchemaError, compile_schema
from dataplane.tables.records import SchemaRecord

log = logging.getLogger(__name__)

LONG_NUMBER: Final = 300  # digits of a whole number: comparing longer ones takes the square of that
_DIGITS: Final = re2.compile(f"[0-9]{{{LONG_NUMBER + 1}}}")


def check_of(record: SchemaRecord | None) -> Check | None:
    """The check of a source's newest schema.

    One that cannot be run here, which registering would have refused, is left out: a sender whose events were taken
    must not be broken by what we publish.
    """
    if record is None:
        return None
    try:
        return compile_schema(record.text)
    except SchemaError as exc:
        log.error("schema %d of source=%s pipe=%s is not run: %s", record.version, record.source, record.pipe, exc)
        return None


def refuse_misfit(check: Check, event: Event) -> None:
    """Raises RefusalError `schema`, with the place in the event, for one that does not fit. It repeats no value."""
    if event.value is None and event.body.strip() != b"null":
        raise RefusalError(422, "schema", "needs JSON, as its source has a schema")
    most_values, most_bytes = check.limits
    if len(event.body) > most_bytes:
        raise _too_much(f"needs at most {most_bytes} bytes, for the patterns and formats of its source's schema")
    if _may_be_many(event.body, most_values) and _count(event.value, most_values) > most_values:
        raise _too_much(f"needs at most {most_values} values, as its source has a schema")
    if len(event.body) > LONG_NUMBER and _has_long_number(event):
        raise _too_much(f"needs whole numbers of at most {LONG_NUMBER} digits, as its source has a schema")
    misfit = check(event.value)
    if misfit is not None:
        detail = f"{misfit.pointer or 'the event'}: {misfit.reason}"
        raise RefusalError(422, "schema", detail, pointer=misfit.pointer)


def _too_much(detail: str) -> RefusalError:
    return RefusalError(422, "schema", detail)


def _may_be_many(body: bytes, most: int) -> bool:
    """Never False for more than `most` values; commas within texts are counted, too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") >= most


def _count(value: Any, most: int) -> int:
    """Return how many values there are, the value included; it stops beyond `most`."""
    count, rest = 1, [value]
    while rest and count <= most:
        one = rest.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        rest += [part for part in inner if isinstance(part, dict | list)]
    return count


def _has_long_number(event: Event) -> bool:
    """Digits within a text are none."""
    if _DIGITS.search(event.body) is None:
        return False
    rest = [event.value]
    while rest:
        one = rest.pop()
        if isinstance(one, int) and abs(one) >= 10**LONG_NUMBER:
            return True
        rest += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return False
