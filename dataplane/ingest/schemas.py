"""Check events against the schema of their source, each event separately."""

import logging

from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.problems import EventRejectedError
from dataplane.schemas.json_event import json_mismatch
from dataplane.spec.schema import Check, SchemaError, compile_schema
from dataplane.tables.records import SchemaRecord

log = logging.getLogger(__name__)


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
    misfit = json_mismatch(check, event.body, event.value)
    if misfit is not None:
        raise schema_refusal(misfit.pointer, misfit.reason)


def schema_refusal(
    pointer: str, reason: str, code: str = "schema", *, event_type: str = "", version: str = ""
) -> EventRejectedError:
    """Return the refusal of an event that does not fit; `pointer`: the place in the event."""
    detail = f"{pointer or 'the event'}: {reason}"
    return EventRejectedError(422, code, detail, pointer=pointer, event_type=event_type, version=version)
