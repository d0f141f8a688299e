"""The dead topic of a cell, as lanes write it: a letter is a copy of its message, or refers to one that is too large.

What ingest accepts today fits as a copy (dataplane.record_limits). Records that an earlier release stored, and children
of a message that its steps blew up, may not; the lane goes on with a letter that names where the message is.
"""

from typing import Any, Final

from dataplane.ledger.deadletter import Death, dead_headers, reference_headers
from dataplane.ledger.meta import Headers, Meta
from dataplane.record_limits import CLIENT_MAX_BYTES, wire_bytes
from dataplane.runtime.outbox import Outbox

TOO_LARGE: Final = "too-large"  # the cause of what fits no record of the next topic


def fits(value: bytes | None, key: bytes | None, headers: Headers) -> bool:
    """Return whether the client takes a record."""
    return wire_bytes(value, key, headers) <= CLIENT_MAX_BYTES


class DeadLetters:
    """`send` one for each message that is dead; its token comes back when the letter is stored."""

    def __init__(self, outbox: Outbox, topic: str) -> None:
        self._outbox = outbox
        self._topic = topic

    def send(
        self,
        token: Any,
        death: Death,
        *,
        meta: Meta,
        headers: Headers,
        value: bytes | None,
        original: tuple[str, int, int],
        **way: Any,
    ) -> None:
        """Produce the letter of a message.

        headers:  of the message, ours first
        original: topic, partition and offset of the record that the message was read from
        way:      key or partition of the letter
        """
        marked = dead_headers(meta, headers, death)
        if not fits(value, way.get("key"), marked):
            marked, value = reference_headers(meta, death, "/".join(map(str, original))), b""
        self._outbox.send(self._topic, token, value=value, headers=marked, **way)
