"""One message on its way through the stages: bytes or a decoded body, whichever the last stage left."""

from typing import Any, Final

import msgspec
from confluent_kafka import Message

from dataplane.ledger.meta import Headers, Meta
from dataplane.plan.about import about
from dataplane.plan.stage import NOTHING_KNOWN, decode, encode
from dataplane.stages.steps import About

_CE_ID: Final = "ce_id"


class Unread:
    """The body has not been decoded since it was written."""


UNREAD: Final = Unread()


class Item(msgspec.Struct, gc=False):
    """A message, or a child of one.

    headers:  as read; the first is ours, and is written anew before each send
    body:     what the last stage made of it, None while `value` is newer
    original: what goes to dead: the body as it came, of a child as it was made
    judged:   dedup was asked about it and has answered
    back:     it is on the ingest topic once more: judged, or released from held
    ways:     to how many destinations routes sent it; 0 if there are no routes
    stopwatch: the stamp with which it came back

    Python's cyclic collector does not look at it: nothing of it leads back to it.
    """

    meta: Meta
    message: Message
    headers: Headers
    body: bytes | None
    original: bytes
    value: Any = UNREAD
    about: About = NOTHING_KNOWN
    ways: int = 0
    judged: bool = False
    back: bool = False
    stopwatch: bytes = b""

    def read(self) -> Any:
        """The decoded body. Raises StageError `decode`."""
        if self.value is UNREAD:
            self.value = decode(self.body or b"")
        return self.value

    def write(self, value: Any) -> None:
        """A stage made this of it."""
        self.value, self.body = value, None

    def written(self, where: str) -> bytes:
        """The body as bytes. Raises StageError `encode`."""
        if self.body is None:
            self.body = encode(self.value, where)
        return self.body


def offset_of(item: Item) -> int:
    """Where it lies in its partition."""
    return int(item.message.offset() or 0)


def item_of(meta: Meta, message: Message, headers: Headers) -> Item:
    """A message as it was read."""
    body = message.value() or b""
    return Item(meta, message, headers, body, body)


def child_of(item: Item, number: int, body: bytes) -> Item:
    """The number-th child that an explode made of a message: an id of its own, the same place."""
    meta = msgspec.structs.replace(item.meta, id=f"{item.meta.id}.{number}", child=number)
    headers = [(name, b"%b.%d" % (value, number) if name == _CE_ID else value) for name, value in item.headers]
    child = Item(meta, item.message, headers, body, body, back=item.back, stopwatch=item.stopwatch)
    if item.about is not NOTHING_KNOWN:
        child.about = about(meta)
    return child
