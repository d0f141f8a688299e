"""Base of feeds, which read a source from Kafka or from a look-up table and ingest it like posted events."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.strictjson import parse

log = logging.getLogger(__name__)

BATCH: Final = 500
AGAIN_S: Final = 1.0
OVER_QUOTA_S: Final = 0.1
REQUEST_S: Final = 10.0
STEP_S: Final = 0.1  # a resting feed notices its end within this time

Room = Callable[[str], int]  # tenant -> the number of events that its quota allows now


class FedSource(Protocol):
    """Identity of a feed: one source of one pipe."""

    @property
    def pipe(self) -> str:
        """Return the id of the pipe."""

    @property
    def source(self) -> str:
        """Return the name of the source."""

    @property
    def tenant(self) -> str:
        """Return the id of the tenant."""


# (feed, events, count) -> status of each event: 202 if it is stored. Raises EventRejectedError if none can be.
TakeFeedEvents = Callable[[FedSource, Iterable[ReceivedEvent], int], Awaitable[Sequence[int]]]


class Intake(NamedTuple):
    """Functions that take the events of a feed: within the tenant's quota, each until it is stored."""

    take: TakeFeedEvents
    room: Room
    max_event_bytes: int


class FeedStoppedError(Exception):
    """Reading stops at an event that can never be taken, because skipping it would lose it."""


class Feed(ABC):
    """Reader of one source, until `end`. All calls of its Kafka client are made in threads, one at a time."""

    def __init__(self, key: FedSource, intake: Intake) -> None:
        self._key, self._intake = key, intake
        self._ending = False

    def start(self) -> None:
        """Start reading. Call on the event loop."""
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Finish and commit the events in progress, then leave the consumer group."""
        self._ending = True
        await self._task

    @abstractmethod
    def open(self) -> Any:
        """Return a consumer that has joined the group of the source."""

    @abstractmethod
    async def turn(self, consumer: Any) -> None:
        """Read what follows, offer it until it is taken, and commit the position after it."""

    async def may_offer(self, _consumer: Any) -> bool:
        """Return False if what was read must not be offered any more. Called before each attempt, and while waiting."""
        return True

    async def _run(self) -> None:
        key = self._key
        while not self._ending:
            consumer = None
            try:
                consumer = self.open()
                while not self._ending:
                    await self.turn(consumer)
            except (KafkaException, FeedStoppedError) as exc:
                log.error("feed of pipe=%s source=%s stopped, will retry: %s", key.pipe, key.source, exc)
                await self.rest(REQUEST_S)
            except Exception:  # nothing restarts a task that ended: its source would never be read again
                log.exception("feed of pipe=%s source=%s failed; restarting", key.pipe, key.source)
                await self.rest(REQUEST_S)
            finally:
                if consumer is not None:
                    await asyncio.to_thread(consumer.close)

    async def wait_for_room(self, consumer: Any) -> int:
        """Return how many events may be read now, 0 if `may_offer` forbids it.

        Over quota a feed slows down and refuses nothing.
        """
        while not (allowed := self._intake.room(self._key.tenant)) and not self._ending:
            await asyncio.sleep(OVER_QUOTA_S)
            if not await self.may_offer(consumer):
                return 0
        return min(BATCH, allowed or 1)

    async def all_taken(self, consumer: Any, events: list[ReceivedEvent]) -> bool:
        """Offer the events until each is ACKed.

        Return False if the feed was ended first, or if `may_offer` forbids another attempt. Raises FeedStoppedError.
        """
        while not self._ending and await self.may_offer(consumer):
            try:
                offered = decoded(events, self._intake.max_event_bytes)
                statuses = await self._intake.take(self._key, offered, len(events))
            except EventRejectedError:  # the pipe is not live yet, or closed: do not read on
                statuses = [503] * len(events)
            if 413 in statuses:
                raise FeedStoppedError("an event exceeds the size limit")
            events = [event for event, status in zip(events, statuses, strict=True) if status != 202]
            if not events:
                return True
            await self.rest(AGAIN_S)
        return False

    async def commit_after(self, consumer: Any, messages: Iterable[Message]) -> None:
        """Commit the offsets after these messages."""
        ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
        offsets = [TopicPartition(*partition, offset) for partition, offset in ends.items()]
        await asyncio.to_thread(consumer.commit, offsets=offsets, asynchronous=False)

    async def rest(self, seconds: float) -> None:
        """Wait, but not beyond the end of the feed."""
        for _ in range(max(1, int(seconds / STEP_S))):
            if not self._ending:
                await asyncio.sleep(min(seconds, STEP_S))


def decoded(events: Iterable[ReceivedEvent], max_event_bytes: int) -> Iterator[ReceivedEvent]:
    """Decode the body of each event when it is requested.

    A body that is not JSON is kept as it is: steps that need JSON reject it, and the event becomes a dead letter.
    """
    for event in events:
        try:
            value = parse(event.body) if len(event.body) <= max_event_bytes else None
        except EventRejectedError:
            value = None
        yield msgspec.structs.replace(event, value=value)


def checked(message: Message) -> Message:
    """Return a message that is none of an error. Raises KafkaException."""
    error: KafkaError | None = message.error()
    if error is not None:
        raise KafkaException(error)
    return message


def group_settings(key: FedSource, *more: str) -> dict[str, Any]:
    """Return the settings of a client that commits explicitly in the consumer group of a source."""
    return {
        "group.id": ".".join(("penstock", key.pipe, key.source, *more)),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # never skip events silently when the offset is out of range
        "log_level": 0,
    }
