"""Dedup in a process lane: it sends a message to the cell's dedup query and reads it again with the verdict.

The message is produced to the cell's `dedup` topic, which has one partition, so that one order decides which is the
first. The query returns it to the ingest topic, to its original partition and in order, with position and verdict.
"""

from typing import Final

import msgspec
from msgspec import Struct

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.plan.dedup import DedupIdentity
from dataplane.plan.stage import StageError
from dataplane.process.item import ProcessItem
from dataplane.process.run import MessageRun
from dataplane.runtime.lanes.context import RecordProducer
from dataplane.runtime.producers.tracked_producer import RecordTooLargeError

ASK_HEADER: Final = "penstock-dedup"  # the last header of a message on the dedup topic
VERDICT_HEADER: Final = "penstock-first"  # the last header of a judged message: "" or the position of the first
JUDGED: Final = (VERDICT_HEADER, b"")  # verdict "not a duplicate"


class DedupQuestion(Struct, array_like=True, frozen=True):
    """Input of the query besides the identity (the record's key): the window, and the message's own key."""

    window_us: int
    key: bytes | None


_decoder = msgspec.msgpack.Decoder(DedupQuestion)
_encode = msgspec.msgpack.Encoder().encode


def read_question(headers: Headers) -> DedupQuestion:
    """Return the question from the headers of a message on the dedup topic. Raises msgspec.DecodeError."""
    return _decoder.decode(headers[-1][1])


def verdict_of(headers: Headers) -> str | None:
    """Return the position that a judged message repeats; "" if it is not a duplicate, None if it was not judged."""
    name, value = headers[-1]
    return value.decode() if name == VERDICT_HEADER else None


class DedupRequests:
    """Producer to the dedup topic. `topic` is "" while the cell does not have one yet."""

    def __init__(self, outbox: RecordProducer, topic: str) -> None:
        self._outbox = outbox
        self.topic = topic

    def ask(self, run: MessageRun, identity: DedupIdentity, items: list[ProcessItem]) -> list[ProcessItem]:
        """Send the items that have an identity and no verdict yet to the query; return the others, which continue."""
        rest: list[ProcessItem] = []
        run.owed += 1
        stopwatch = run.leave(Slice.DEDUP)
        produce_group = self._outbox.begin_group(self.topic, run)
        for item in items:
            key = None if item.judged else _identity(run.pipe, identity, item)
            if key is None:
                rest.append(item)
                continue
            item.meta.stopwatch = run.leave_again(item, Slice.DEDUP) if item.back else stopwatch
            question = _encode(DedupQuestion(identity.window_us, item.message.key()))
            headers = [(META_HEADER, encode_meta(item.meta)), *item.headers[1:], (ASK_HEADER, question)]
            try:
                produce_group.send(item.original, key, 0, headers)
            except RecordTooLargeError:
                rest.append(item)
            else:
                run.asked(item.meta)
        produce_group.close()
        return rest


def _identity(pipe: str, identity: DedupIdentity, item: ProcessItem) -> bytes | None:
    if identity.by_key:
        return identity.of_key(item.meta)
    try:
        return identity.of(pipe, item.read())
    except StageError:  # not JSON: the steps decide if that is an error
        return None
