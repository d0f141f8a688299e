"""Records of Kafka sources that did not fit the event types of their source: dead letters, or checked again.

Ingest cannot refuse a record to its sender, so it stores the record with the reason. It is dead-lettered here, before
the steps. One that is run again is checked with the newest versions of that time.
"""

import json
from typing import Any

import msgspec

from dataplane.causes import Cause
from dataplane.plan import StageError
from dataplane.process.item import UNREAD, ProcessItem
from dataplane.schemas.wire import framing_of
from dataplane.spec.schema import unique_pairs
from dataplane.stages.decoding import decode_json
from dataplane.tables.control import ControlTable
from dataplane.tables.event_types import EventMisfitError, EventTypeGates, as_json


class MisfitCheck:
    """Decides about messages whose Meta names a misfit."""

    def __init__(self, table: ControlTable, max_event_bytes: int) -> None:
        self._table = table
        self._gates = EventTypeGates(table)
        self._max_event_bytes = max_event_bytes

    def admit(self, item: ProcessItem, now_us: int) -> None:
        """Check a message that is run again, and clear its misfit. Raises StageError `schema`.

        A message that is not run again fails with the reason that ingest noted.
        """
        meta = item.meta
        if not meta.life:
            raise StageError(Cause.SCHEMA, meta.misfit)
        pipe = self._table.pipe(meta.pipe)
        gate = self._gates.find(pipe.tenant, meta.pipe, meta.source) if pipe is not None else None
        if gate is None:
            if framing_of(item.original) is not None:
                raise StageError(Cause.SCHEMA, "the event is Avro, and its source has no event types any more")
        else:
            try:
                value = _decoded(item.original)
                found = gate.admit(item.original, value, item.headers[1:], meta.event_type, now_us)
            except EventMisfitError as exc:
                raise StageError(Cause.SCHEMA, str(exc)) from exc
            if len(found.body) > self._max_event_bytes:
                raise StageError(Cause.SCHEMA, f"the event: needs at most {self._max_event_bytes} bytes as JSON")
            if found.body is not item.original:
                item.body = item.original = found.body
                item.value, item.headers = UNREAD, [item.headers[0], *as_json(item.headers[1:])]
            meta.schema = found.schema
        meta.misfit = meta.event_type = ""


def _decoded(body: bytes) -> Any:
    """Return a body as ingest decodes it, without duplicate keys; None if it is not JSON."""
    try:
        value = decode_json(body)
        json.loads(body, object_pairs_hook=unique_pairs, parse_int=str, parse_float=str)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return value
