"""Reader of message envelopes: decodes the `Meta` header, and dead-letters messages whose header is unreadable."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from confluent_kafka import Message

from dataplane.ledger.deadletter import CAUSE_HEADER, ORIGINAL_HEADER
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.runtime.lanes.context import RecordProducer
from dataplane.runtime.lanes.deadletters import fits
from dataplane.runtime.lanes.slots import PartitionSlots

log = logging.getLogger(__name__)


class UnreadableEnvelope(NamedTuple):
    """Token of a message that was dead-lettered because its envelope is unreadable."""

    slot: int
    offset: int


class EnvelopeReader:
    """Reader of the messages of one lane."""

    def __init__(self, slots: PartitionSlots, producer: RecordProducer, dead_topic: str) -> None:
        self._slots = slots
        self._producer = producer
        self._dead_topic = dead_topic

    def read_all(self, messages: Iterable[Message]) -> list[tuple[Message, MessageMeta, Headers]]:
        """Return each message with its `Meta` and its headers; see `LaneContext.read_all`. A hot loop."""
        known = []
        for message in messages:
            headers: Headers = message.headers() or []
            try:
                known.append((message, read_meta(headers), headers))
            except (KeyError, msgspec.DecodeError) as exc:
                self._dead_letter(message, headers, exc)
        return known

    def _dead_letter(self, message: Message, headers: Headers, error: Exception) -> None:
        """Copy the message to the `dead` topic, or a reference to it if the copy would be too large."""
        slot, offset = self._slots.of(message), message.offset()
        log.error("dead: unreadable envelope at %s: %s", (*self._slots.place(slot), offset), error)
        cause: Headers = [(CAUSE_HEADER, b"envelope")]
        marked, value = [*headers, *cause], message.value()
        if not fits(value, None, marked):
            original = "{}/{}/{}".format(*self._slots.place(slot), offset)
            marked, value = [*cause, (ORIGINAL_HEADER, original.encode())], b""
        self._producer.send(self._dead_topic, UnreadableEnvelope(slot, offset), value=value, headers=marked)
