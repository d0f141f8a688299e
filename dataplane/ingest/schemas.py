"""Events against the schema of their source: a verdict for each event by itself."""

import logging
from typing import Any, Final

from dataplane.ingest.events import Event
from dataplane.ingest.problems import RefusalError
from dataplane.spec.schema import Check, SchemaError, compile_schema
from dataplane.tables.records import SchemaRecord

log = logging.getLogger(__name__)

MAX_VALUES: Final = 10_000  # of an event; the same for every version, so that none refuses what the last one took


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
    if _may_be_many(event.body) and _count(event.value) > MAX_VALUES:
        raise RefusalError(422, "schema", f"needs at most {MAX_VALUES} values, as its source has a schema")
    misfit = check(event.value)
    if misfit is not None:
        detail = f"{misfit.pointer or 'the event'}: {misfit.reason}"
        raise RefusalError(422, "schema", detail, pointer=misfit.pointer)


def _may_be_many(body: bytes) -> bool:
    """Never False for more than MAX_VALUES; commas within texts are counted, too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") >= MAX_VALUES


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1
