"""A process lane's part in dedup: it asks the cell's query about a message, and meets the message again when judged.

The message goes to the cell's `dedup` topic, of one partition, so that one order decides which is the first; the query
puts it back on the ingest topic, in the partition it came from and in order, with its position and the verdict.
"""

from typing import Final

import msgspec
from msgspec import Struct

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.plan.dedup import Identity
from dataplane.plan.stage import StageError
from dataplane.process.item import Item
from dataplane.process.run import Run
from dataplane.runtime.outbox import Outbox, TooLargeError

ASK_HEADER: Final = "penstock-dedup"  # the last one of a message on the dedup topic
VERDICT_HEADER: Final = "penstock-first"  # the last one of a judged message: "" or the position of the first
JUDGED: Final = (VERDICT_HEADER, b"")  # it goes on


class Question(Struct, array_like=True, frozen=True):
    """What the query needs beside the identity, which is the record's key: the window, and the message's own key."""

    window_us: int
    key: bytes | None


_decoder = msgspec.msgpack.Decoder(Question)
_encode = msgspec.msgpack.Encoder().encode


def read_question(headers: Headers) -> Question:
    """The question that a message on the dedup topic carries. Raises msgspec.DecodeError."""
    return _decoder.decode(headers[-1][1])


def verdict_of(headers: Headers) -> str | None:
    """The position that a judged message repeats, as receipts show it; "" if it goes on, None if it was not judged."""
    name, value = headers[-1]
    return value.decode() if name == VERDICT_HEADER else None


class Asking:
    """Puts questions. `topic` is empty while the cell has none yet."""

    def __init__(self, outbox: Outbox, topic: str) -> None:
        self._outbox = outbox
        self.topic = topic

    def ask(self, run: Run, identity: Identity, items: list[Item]) -> list[Item]:
        """Ask about the items that have an identity and were not judged yet; returns the others, which go on."""
        rest: list[Item] = []
        run.owed += 1
        stopwatch = run.leave(Slice.DEDUP)
        shipment = self._outbox.shipment(self.topic, run)
        for item in items:
            key = None if item.judged else _identity(run.pipe, identity, item)
            if key is None:
                rest.append(item)
                continue
            item.meta.stopwatch = run.leave_again(item, Slice.DEDUP) if item.back else stopwatch
            question = _encode(Question(identity.window_us, item.message.key()))
            headers = [(META_HEADER, encode_meta(item.meta)), *item.headers[1:], (ASK_HEADER, question)]
            try:
                shipment.send(item.original, key, 0, headers)
            except TooLargeError:
                rest.append(item)
            else:
                run.asked(item.meta)
        shipment.close()
        return rest


def _identity(pipe: str, identity: Identity, item: Item) -> bytes | None:
    try:
        return identity.of(pipe, item.read())
    except StageError:  # no JSON: whether that matters is for the steps to say
        return None
