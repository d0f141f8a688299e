"""Delivery reports on the event loop: polled every millisecond while some are due, so no thread is woken for them.

The first records after a quiet moment are flushed, so that they wait neither for others of their batch nor for a poll.

A thread that waits in `poll` and wakes the loop costs two context switches per report, more than the rest of a request.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from operator import lt
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from dataplane.ingest.topic_throttle import TopicThrottle
from dataplane.runtime.producers.replaceable import ReplaceableProducer

TURN_S: Final = 0.001
QUIET_S: Final = 0.003  # at a higher rate of requests, a flush for each costs more than it saves
PartitionOffset = tuple[int, int]  # partition, offset


class RequestRecords:
    """Kafka records of one request, and a future that is done once the delivery reports of all are known.

    `report` is the delivery callback of each record. The partition says which record a report is about: an idempotent
    producer stores the records of a partition in the order in which they were produced. If one record of a partition
    could not be stored, or its outcome is unknown, none of the request's records in that partition count: the sender
    gets an error for them and repeats them.

    numbers:  by partition, the indexes of the request's records that were produced there
    refusing: partitions that accept no more of the request, because one of its records could not be produced there
    reused:   partition and offset pairs that had been reported to this producer for other records before
    places:   partition and offset of each record in order of production, once all reports are in; None: does not count
    """

    __slots__ = (
        "_done",
        "_failed",
        "_offsets",
        "_owed",
        "future",
        "numbers",
        "pace",
        "places",
        "refusing",
        "reused",
        "subject",
    )

    def __init__(self, subject: Any, pace: TopicThrottle, loop: asyncio.AbstractEventLoop) -> None:
        self.subject = subject  # the caller's data, for `on_done`
        self.pace = pace
        self.future: asyncio.Future[None] = loop.create_future()
        self.numbers: dict[int, list[int]] = defaultdict(list)
        self.places: list[PartitionOffset | None] = []
        self.refusing: set[int] = set()
        self.reused: list[PartitionOffset] = []
        self._failed: set[int] = set()
        self._offsets: dict[int, list[int]] = defaultdict(list)
        self._owed = 0
        self._done: list[RequestRecords] = []

    def begin(self, count: int, done: "list[RequestRecords]") -> None:
        """Expect `count` reports, and append the batch to `done` with the last of them.

        Some reports may have arrived already: a large request yields to others while it produces.
        """
        self._done = done
        self._owed += count
        if not self._owed:
            self._end()

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Handle the delivery report of one record. A hot path."""
        offset, partition, pace = message.offset(), message.partition(), self.pace
        if error is None and offset is not None and pace.rises(partition, offset):
            self._offsets[partition].append(offset)
        else:
            self._failed.add(partition)
            if error is None and offset is not None and not pace.is_late:  # a late one is repeated by its sender
                self.reused.append((partition, offset))
        pace.reported(partition, failed=error is not None)
        self._owed -= 1
        if not self._owed:
            self._end()

    def refused(self, partition: int) -> None:
        """Note that one record will not be produced after all."""
        self._failed.add(partition)
        self._owed -= 1
        if not self._owed:
            self._end()

    def _end(self) -> None:
        self.places = self._find_places()
        self._done.append(self)

    def _find_places(self) -> list[PartitionOffset | None]:
        found: list[PartitionOffset | None] = [None] * sum(map(len, self.numbers.values()))
        for partition, numbers in self.numbers.items():
            offsets = self._offsets[partition]
            if partition not in self._failed and all(map(lt, offsets, offsets[1:])):
                for number, offset in zip(numbers, offsets, strict=True):
                    found[number] = (partition, offset)
        return found


class AckTracker:
    """Polls the producer while reports are due, and completes the requests whose reports are all known.

    `on_done` is called with every batch completed since the last poll, before any request that awaits one of them
    resumes.
    """

    def __init__(self, producer: ReplaceableProducer, on_done: Callable[[list[RequestRecords]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._producer = producer
        self._on_done = on_done
        self._done: list[RequestRecords] = []
        self._paces: dict[str, TopicThrottle] = {}
        self._waiting = 0
        self._armed = False
        self._quiet_since = 0.0  # while not armed, by the time of the loop

    def pace(self, topic: str) -> TopicThrottle:
        """Return the throttle that produces to a topic; there is one per topic."""
        return self._paces.get(topic) or self._paces.setdefault(topic, TopicThrottle(self._producer, topic))

    def restart(self) -> None:
        """Refuse all records that wait to be produced, because the producer was replaced."""
        for pace in self._paces.values():
            pace.restart()

    def produced(self, batch: RequestRecords, count: int) -> None:
        """Wait for `count` reports: all records of the batch that could be produced have been."""
        batch.begin(count, self._done)
        self._waiting += 1
        if not self._armed:
            self._armed = True
            if self._loop.time() - self._quiet_since < QUIET_S:
                self._loop.call_later(TURN_S, self._turn)
            else:
                self._loop.call_soon(self._first_turn)

    def _first_turn(self) -> None:
        """Send what the requests of this pass of the loop produced. Blocks the loop for a round trip, at most 2 ms."""
        try:
            self._producer.send_now()
        finally:
            self._turn()

    def _turn(self) -> None:
        """Poll the producer once. An exception fails the requests that were being completed; polling continues."""
        try:
            self._producer.poll(0)
            for pace in self._paces.values():
                pace.poll()
            self._end_requests()
        finally:
            self._armed = self._waiting > 0
            if self._armed:
                self._loop.call_later(TURN_S, self._turn)
            else:
                self._quiet_since = self._loop.time()

    def _end_requests(self) -> None:
        done = self._done[:]
        self._done.clear()
        self._waiting -= len(done)
        failure: Exception | None = None
        try:
            if done:
                self._on_done(done)
        except Exception as exc:
            failure = exc
            raise
        finally:
            for batch in done:
                if batch.future.done():  # the request was cancelled meanwhile
                    continue
                if failure is None:
                    batch.future.set_result(None)
                else:
                    batch.future.set_exception(failure)
