"""One message in the stages: its body is bytes or decoded, as the last stage left it."""

from typing import Any, Final

import msgspec
from confluent_kafka import Message

from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.plan.about import about
from dataplane.plan.stage import EMPTY_CONTEXT, decode, encode
from dataplane.stages.steps import StepContext

_CE_ID: Final = "ce_id"


class UndecodedBody:
    """Marker: the body has not been decoded since it was written."""


UNREAD: Final = UndecodedBody()


class ProcessItem(msgspec.Struct, gc=False):
    """Message, or child of one.

    headers:   as read; the first is the meta header, which is encoded again before each send
    body:      the bytes as of the last stage, None while `value` is newer
    original:  the body for a dead letter: as it was read, or of a child as it was made
    judged:    dedup has judged it
    back:      it has returned to the ingest topic: judged, released from held, or redriven
    part:      an explode made it
    ways:      the number of destinations that the routes chose; 0 if there are no routes
    stopwatch: the stamp with which it returned

    Python's cyclic collector does not track it (`gc=False`): it contains no reference cycle.
    """

    meta: MessageMeta
    message: Message
    headers: Headers
    body: bytes | None
    original: bytes
    value: Any = UNREAD
    about: StepContext = EMPTY_CONTEXT
    ways: int = 0
    judged: bool = False
    back: bool = False
    part: bool = False
    stopwatch: bytes = b""

    @property
    def stored_bytes(self) -> int:
        """Size of the body as it was read, and of the original body that it was converted from."""
        return len(self.original) + self.meta.original_bytes

    def read(self) -> Any:
        """Return the decoded body. Raises StageError `decode`."""
        if self.value is UNREAD:
            self.value = decode(self.body or b"")
        return self.value

    def write(self, value: Any) -> None:
        """Set the decoded body that a stage has made."""
        self.value, self.body = value, None

    def written(self, where: str) -> bytes:
        """Return the body as bytes; `where` names the steps in an error. Raises StageError `encode`."""
        if self.body is None:
            self.body = encode(self.value, where)
        return self.body


def offset_of(item: ProcessItem) -> int:
    """Return the offset of the item's record."""
    return int(item.message.offset() or 0)


def item_of(meta: MessageMeta, message: Message, headers: Headers) -> ProcessItem:
    """Return the item of a message as it was read."""
    body = message.value() or b""
    return ProcessItem(meta, message, headers, body, body)


def child_of(item: ProcessItem, number: int, body: bytes) -> ProcessItem:
    """Return the child with this number that an explode made: it has its own id and the message's position."""
    meta = msgspec.structs.replace(item.meta, id=f"{item.meta.id}.{number}", child=number, original=None)
    headers = child_headers(item.headers, number)
    child = ProcessItem(meta, item.message, headers, body, body, back=item.back, part=True, stopwatch=item.stopwatch)
    if item.about is not EMPTY_CONTEXT:
        child.about = about(meta)
    return child


def child_headers(headers: Headers, number: int) -> Headers:
    """Return the headers of the child with this number: its CloudEvents id differs from the message's."""
    return [(name, b"%b.%d" % (value, number) if name == _CE_ID else value) for name, value in headers]
