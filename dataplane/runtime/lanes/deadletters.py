"""Writer of a cell's `dead` topic: a dead letter is a copy of its message, or a reference to one that is too large.

Events that ingest accepts today fit as a copy (dataplane.record_limits). Records that an earlier release stored, and
children of a message that its steps enlarged, may not; then the dead letter names the record of the message.
"""

from typing import Any

from dataplane.ledger.deadletter import DeadLetterReason, dead_headers, reference_headers
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.record_limits import CLIENT_MAX_BYTES, wire_bytes
from dataplane.runtime.lanes.context import RecordProducer


def fits(value: bytes | None, key: bytes | None, headers: Headers) -> bool:
    """Return True if a record is within the client's size limit."""
    return wire_bytes(value, key, headers) <= CLIENT_MAX_BYTES


class DeadLetterWriter:
    """Writer of dead letters; the producer returns a dead letter's token when it is stored."""

    def __init__(self, outbox: RecordProducer, topic: str) -> None:
        self._outbox = outbox
        self._topic = topic

    def send(
        self,
        token: Any,
        why_dead: DeadLetterReason,
        *,
        meta: MessageMeta,
        headers: Headers,
        value: bytes | None,
        original: tuple[str, int, int],
        **routing: Any,
    ) -> None:
        """Produce the dead letter of a message.

        headers:  of the message, the `Meta` header first
        original: topic, partition and offset of the record that the message was read from
        routing:  key or partition of the dead letter
        """
        marked = dead_headers(meta, headers, why_dead)
        if not fits(value, routing.get("key"), marked):
            marked, value = reference_headers(meta, why_dead, "/".join(map(str, original))), b""
        self._outbox.send(self._topic, token, value=value, headers=marked, **routing)
