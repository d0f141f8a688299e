"""Where a key leads: its pipe, source and topic, and how an event that comes with it is stamped."""

import os
from typing import Final

from msgspec import Struct

from dataplane.ingest.events import Event
from dataplane.ingest.stamp import choose_revision, event_time_us, id_head, id_tail, key_bytes
from dataplane.ledger.meta import Meta
from dataplane.ledger.units import MINUTE_US, bucket_of
from dataplane.names import WIRE_VERSION
from dataplane.plan import SourceFields
from dataplane.spec.schema import Check
from dataplane.tables.records import PipeRecord, TopicRecord

CHANCE_DIGITS: Final = 19


class Route(Struct):
    """Everything a key leads to, looked up once per change of the control table.

    fields:  what each of these revisions reads of an event, by number
    weights: those of the pipe's revisions that name the source; of two the last is the stable one
    check:   what events posted to the source must fit; None if they may be anything
    """

    pipe: PipeRecord
    source: str
    topic: TopicRecord
    fields: dict[int, SourceFields]
    weights: list[tuple[int, int]]
    check: Check | None = None


class Stamper:
    """Stamps events. The only chance in it is that of message ids, drawn in bulk."""

    def __init__(self, grace_us: int) -> None:
        self._grace_us = grace_us
        self._tails: list[str] = []
        self._head, self._head_us = "", 0

    def stamp(self, route: Route, event: Event, now_us: int) -> tuple[Meta, bytes | None]:
        """The Meta of an event that came at `now_us` (microseconds since the epoch), and its Kafka key. A hot path."""
        pipe = route.pipe
        id_ = self._message_id(now_us)
        revision = route.weights[-1][0]
        fields = route.fields[revision]
        key = key_bytes(pipe.pipe, fields.key(event.value)) if fields.any else None
        if len(route.weights) > 1:
            revision = choose_revision(route.weights, key or _lot(event, id_)) or revision
            fields = route.fields[revision]
            key = key_bytes(pipe.pipe, fields.key(event.value)) if fields.any else None
        given = fields.event_time(event.value) if fields.any else None
        if given is None:
            given = event.time
        if given is None:  # ours is used
            return Meta(WIRE_VERSION, id_, pipe.pipe, revision, route.source, now_us, now_us, now_us // MINUTE_US), key
        event_us = event_time_us(given) or now_us
        bucket, off_time = bucket_of(event_us, now_us, self._grace_us)
        return Meta(WIRE_VERSION, id_, pipe.pipe, revision, route.source, event_us, now_us, bucket, off_time), key

    def _message_id(self, now_us: int) -> str:
        """As stamp.message_id; what the events of a request share is made once."""
        if now_us != self._head_us:
            self._head, self._head_us = id_head(now_us), now_us
        if not self._tails:
            chance = os.urandom(CHANCE_DIGITS * 500).hex()
            self._tails = [id_tail(chance[at : at + CHANCE_DIGITS]) for at in range(0, len(chance), CHANCE_DIGITS)]
        return self._head + self._tails.pop()


def _lot(event: Event, id_: str) -> bytes:
    """What chooses the revision of an event without a key of the spec's: the same again where it is read again."""
    return (event.origin.key or event.origin.id if event.origin else id_).encode()
