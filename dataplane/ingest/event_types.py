"""Check events at ingest against the event types of their source, and read events in Avro.

A posted event that does not fit is refused. A record of a Kafka source cannot be refused to its sender: it is stored
with the reason, and a process lane makes a dead letter of it.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from dataplane.ingest.events import Item, ReceivedEvent, RequestEvents
from dataplane.ingest.problems import RETRY_AFTER_S, EventRejectedError
from dataplane.ingest.schemas import schema_refusal
from dataplane.tables.event_types import AdmittedEvent, EventMisfitError, EventTypeGate, as_json

MISFIT_CHARS: Final = 300
TYPE_CHARS: Final = 200  # of a type that the data plane carries on with an event that does not fit


def read_container(gate: EventTypeGate, body: bytes, now_us: int) -> RequestEvents:
    """Return the events of an object container file. Raises EventRejectedError if it cannot be read at all."""
    try:
        container = gate.open_container(body)
    except EventMisfitError as exc:
        raise _refusal(exc) from exc
    return RequestEvents(_items(container.read(now_us)), container.count, True)


def _items(found: Iterable[AdmittedEvent | EventMisfitError]) -> Iterator[Item]:
    for one in found:
        if isinstance(one, EventMisfitError):
            yield _refusal(one)
        else:
            yield ReceivedEvent(one.body, one.value, as_json([]), schema=one.schema)


def admit(gate: EventTypeGate, event: ReceivedEvent, now_us: int) -> None:
    """Check a posted event, and convert it to JSON. Raises EventRejectedError. A hot path."""
    if event.schema:
        return  # of a container, checked as it was read
    try:
        _admit(gate, event, now_us)
    except EventMisfitError as exc:
        raise _refusal(exc) from exc


def admit_or_note(
    gate: EventTypeGate, event: ReceivedEvent, now_us: int, *, max_event_bytes: int, is_loading: bool
) -> EventRejectedError | None:
    """Check a record of a Kafka source and convert it to JSON; note why it does not fit, and return that as a refusal.

    max_event_bytes: limit of the event as JSON; above it the feed would stop
    is_loading:      the control topic has not been read to its end

    Raises EventRejectedError `unavailable` if a schema is missing while the control topic is being read.
    """
    body, value, headers = event.body, event.value, event.headers
    try:
        _admit(gate, event, now_us)
        if len(event.body) > max_event_bytes >= len(body):
            misfit = EventMisfitError("schema", "", f"needs at most {max_event_bytes} bytes as JSON")
            raise misfit.of_type("", event.schema)
    except EventMisfitError as exc:
        if exc.is_unloaded and is_loading:
            raise _refusal(exc) from exc
        event.body, event.value, event.headers, event.schema = body, value, headers, ""
        event.misfit = str(exc)[:MISFIT_CHARS]
        event.type_header = event.type_header[:TYPE_CHARS]
        return _refusal(exc)
    return None


def _admit(gate: EventTypeGate, event: ReceivedEvent, now_us: int) -> None:
    found = gate.admit(event.body, event.value, event.headers, event.type_header, now_us)
    if found.body is not event.body:
        event.body, event.value, event.headers = found.body, found.value, as_json(event.headers)
    event.schema = found.schema


def _refusal(misfit: EventMisfitError) -> EventRejectedError:
    if misfit.is_unloaded:
        return EventRejectedError(503, misfit.code, misfit.reason, retry_after_s=RETRY_AFTER_S)
    return schema_refusal(
        misfit.pointer, misfit.reason, misfit.code, event_type=misfit.event_type, version=misfit.version
    )
