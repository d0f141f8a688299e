"""Feed of a source of type penstock: operational events of the source's tenant, from a topic of the control plane.

The topic has the events of all tenants. Each source reads it with a consumer group of its own and takes the events of
its tenant that its spec wants. Events about its own pipe are left out: each failure of such an event would cause the
next event.
"""

import asyncio
import logging
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

import msgspec
from confluent_kafka import KafkaException, TopicPartition
from msgspec import Struct

from dataplane.ingest.events import ReceivedEvent, RecordOrigin
from dataplane.ingest.feed import REQUEST_S, Feed, Intake, checked, group_settings
from dataplane.kafka_clients import make_consumer
from dataplane.ledger.meta import CONTENT_TYPE
from dataplane.names import OPERATIONAL_TOPIC
from dataplane.spec import PenstockSource, SourceSpec, wants_event

log = logging.getLogger(__name__)

WAIT_S: Final = 0.5
SESSION_MS: Final = 10_000  # after which another replica takes the place of a killed one
GROUP_PART: Final = "operational-events"  # of the group's name: a Kafka source of this name has another group
_IDS: Final = UUID("5d2c8f3a-7f0e-5c1b-8e0a-2b9f3a6d4e17")  # namespace of the ids made from source and event


class OperationalFeedKey(NamedTuple):
    """Identity of a feed: one source of one pipe, and the events that it wants."""

    pipe: str
    source: str
    tenant: str
    events: tuple[str, ...]

    @property
    def origin(self) -> str:
        """Return what is read, for the log."""
        return "operational events"

    def reads(self, source: SourceSpec) -> bool:
        """Return True if a revision's source wants the same events."""
        return source == PenstockSource(self.events)


class _Pipe(Struct, frozen=True):
    id: str


class _OperationalEvent(Struct, frozen=True):
    """Parts of an operational event that decide who gets it."""

    id: str
    type: str
    time: str
    tenant: str
    pipe: _Pipe


_decode = msgspec.json.Decoder(_OperationalEvent).decode


def event_of(value: bytes, want: OperationalFeedKey) -> ReceivedEvent | None:
    """Return the value of a record as an event of the source; None if the source does not get it.

    The id is made of the source and the operational event, so an event that was published twice has the same one.
    Raises msgspec.DecodeError for a value that is not an operational event.
    """
    given = _decode(value)
    if given.tenant != want.tenant or given.pipe.id == want.pipe or not wants_event(want.events, given.type):
        return None
    origin = RecordOrigin(str(uuid5(_IDS, f"{want.pipe}/{want.source}/{given.id}")), given.pipe.id)
    return ReceivedEvent(value, None, [(CONTENT_TYPE, b"application/json")], given.time, origin)


def next_offset(committed: int, low: int, high: int) -> int:
    """Return the offset to read from: a new source begins at the end.

    If the committed offset is not in the topic any more, after the retention or because the topic was recreated, the
    source continues with the first record that there is.
    """
    if committed < 0:
        return high
    return committed if low <= committed <= high else low


class OperationalFeed(Feed):
    """Reader of the operational events for one source."""

    def __init__(self, want: OperationalFeedKey, kafka: str, intake: Intake) -> None:
        super().__init__(want, intake)
        self.want = want
        self._kafka = kafka

    def open(self) -> Any:
        """Return a consumer of the topic."""
        settings = {"bootstrap.servers": self._kafka, "session.timeout.ms": SESSION_MS}
        consumer = make_consumer(settings | group_settings(self.want, GROUP_PART))
        consumer.subscribe([OPERATIONAL_TOPIC], on_assign=self._assigned)
        return consumer

    async def turn(self, consumer: Any) -> None:
        """Read as many records as the tenant's quota allows now, and commit the offsets of those that are taken."""
        most = await self.wait_for_room(consumer)
        messages = [checked(one) for one in await asyncio.to_thread(consumer.consume, most, WAIT_S)]
        events = [event for one in messages if (event := self._read(one)) is not None]
        if messages and (not events or await self.all_taken(consumer, events)):
            await self.commit_after(consumer, messages)

    def _read(self, message: Any) -> ReceivedEvent | None:
        try:
            return event_of(message.value() or b"", self.want)
        except msgspec.DecodeError as exc:  # of an unknown tenant: it must not stop the sources of all tenants
            where = (self.want.pipe, self.want.source, message.offset())
            log.error("feed of pipe=%s source=%s skips offset=%d: not an operational event: %s", *where, exc)
            return None

    def _assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Commit the first offset before anything is read, so that a killed reader's successor begins there, too."""
        known = consumer.committed(partitions, timeout=REQUEST_S)
        changed = []
        for partition in known:
            if partition.error is not None:
                raise KafkaException(partition.error)
            low, high = consumer.get_watermark_offsets(partition, timeout=REQUEST_S, cached=False)
            offset = next_offset(partition.offset, low, high)
            if offset == partition.offset:
                continue
            if partition.offset >= 0:
                where = (self.want.pipe, self.want.source, partition.offset, offset)
                log.warning("feed of pipe=%s source=%s: offset %d is gone, continuing at %d", *where)
            partition.offset = offset
            changed.append(partition)
        if changed:
            consumer.commit(offsets=changed, asynchronous=False)
        consumer.assign(known)
