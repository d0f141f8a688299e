"""Resolve an API key to its pipe, source and topic, and stamp the events that come with it."""

import os
from typing import Final

from msgspec import Struct

from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.stamp import choose_revision, event_time_us, id_head, id_tail, key_bytes
from dataplane.ingest.webhooks import OpenedWebhook
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.rejections import KAFKA
from dataplane.ledger.units import MINUTE_US, bucket_of
from dataplane.names import WIRE_VERSION
from dataplane.plan import SourceFields
from dataplane.spec.schema import Check
from dataplane.tables.event_types import EventTypeGate
from dataplane.tables.records import PipeRecord, TopicRecord

CHANCE_DIGITS: Final = 19


class SourceRoute(Struct):
    """Resolved route of a source, computed once per change of the control table.

    fields:  the fields of an event that each of these revisions reads, by revision number
    weights: the pipe's revisions that name the source; of two, the last is the stable one
    spread:  those of the revisions that distribute the events of a key over all partitions
    check:   the check that events posted to the source must pass; None if there is none
    gate:    the event types of the source; None if it takes all events
    sender:  who sends the events, as in a RejectionReport
    ends_us: time at which the sender's key expires, microseconds since 1970; 0: never
    webhook: settings of the source's own URL; None for a key
    """

    pipe: PipeRecord
    source: str
    topic: TopicRecord
    fields: dict[int, SourceFields]
    weights: list[tuple[int, int]]
    check: Check | None = None
    spread: frozenset[int] = frozenset()
    gate: EventTypeGate | None = None
    sender: str = KAFKA
    ends_us: int = 0
    webhook: OpenedWebhook | None = None


class Stamper:
    """Stamps events. Its only randomness is that of message ids, drawn in bulk."""

    def __init__(self, grace_us: int) -> None:
        self._grace_us = grace_us
        self._tails: list[str] = []
        self._head, self._head_ms = "", 0

    def stamp(self, route: SourceRoute, event: ReceivedEvent, now_us: int) -> tuple[MessageMeta, bytes | None]:
        """Return the Meta of an event and its Kafka key. A hot path.

        `now_us` is the time of arrival, in microseconds since the epoch.
        """
        pipe = route.pipe
        id_ = self._message_id(now_us)
        revision = route.weights[-1][0]
        fields = route.fields[revision]
        key = key_bytes(pipe.pipe, fields.key(event.value)) if fields.any else None
        if len(route.weights) > 1:
            revision = choose_revision(route.weights, key or _ramp_key(event, id_)) or revision
            fields = route.fields[revision]
            key = key_bytes(pipe.pipe, fields.key(event.value)) if fields.any else None
        given = fields.event_time(event.value) if fields.any else None
        if given is None:
            given = event.time
        if given is None:  # use ingest time
            return MessageMeta(
                WIRE_VERSION, id_, pipe.pipe, revision, route.source, now_us, now_us, now_us // MINUTE_US
            ), key
        event_us = event_time_us(given) or now_us
        bucket, off_time = bucket_of(event_us, now_us, self._grace_us)
        return MessageMeta(
            WIRE_VERSION, id_, pipe.pipe, revision, route.source, event_us, now_us, bucket, off_time
        ), key

    def _message_id(self, now_us: int) -> str:
        """Return a message id as `stamp.message_id` does; the part that is the same for a millisecond is kept."""
        if now_us // 1_000 != self._head_ms:
            self._head, self._head_ms = id_head(now_us), now_us // 1_000
        if not self._tails:
            random_hex = os.urandom(CHANCE_DIGITS * 500).hex()
            self._tails = [
                id_tail(random_hex[at : at + CHANCE_DIGITS]) for at in range(0, len(random_hex), CHANCE_DIGITS)
            ]
        return self._head + self._tails.pop()


def _ramp_key(event: ReceivedEvent, id_: str) -> bytes:
    """Return the bytes that choose the revision of an event without a key; the same if the event is read again."""
    return (event.origin.key or event.origin.id if event.origin else id_).encode()
