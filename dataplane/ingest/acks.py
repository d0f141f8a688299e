"""Delivery reports on the event loop: polled for every millisecond while some are due, so no thread is woken for them.

A thread that waits in `poll` and wakes the loop costs two changes of thread a report, more than the rest of a request.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from dataplane.ingest.pace import Pace
from dataplane.runtime.replaceable import ReplaceableProducer

TURN_S: Final = 0.001
Place = tuple[int, int]  # partition, offset


class Batch:
    """The records of one request: where each is stored, and a future for when all reports are known.

    `report` is the delivery callback of every one of them. Whose report it is follows from its partition: an idempotent
    producer stores the records of a partition in the order in which they were produced. If one of a partition could not
    be stored, or nobody can say where, then none of that partition counts: the sender is told so, and sends them again.

    numbers: by partition, which records of the request went there (their places among those produced)
    refusing: partitions that take nothing more of the request, as one of its records could not be produced there
    reused:  places that had been reported to this producer for other records before
    places:  of the records in the order in which they were produced, once all reports are in; None: does not count
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

    def __init__(self, subject: Any, pace: Pace, loop: asyncio.AbstractEventLoop) -> None:
        self.subject = subject  # the caller's own, for `on_done`
        self.pace = pace
        self.future: asyncio.Future[None] = loop.create_future()
        self.numbers: dict[int, list[int]] = defaultdict(list)
        self.places: list[Place | None] = []
        self.refusing: set[int] = set()
        self.reused: list[Place] = []
        self._failed: set[int] = set()
        self._offsets: dict[int, list[int]] = defaultdict(list)
        self._owed = 0
        self._done: list[Batch] = []

    def begin(self, count: int, done: "list[Batch]") -> None:
        """All `count` records are produced; put the batch into `done` with the last of their reports.

        Some reports may have come already: a large request lets others have their turn while it produces.
        """
        self._done = done
        self._owed += count + 1
        self._settle()

    def report(self, error: KafkaError | None, message: Message) -> None:
        """The report of one record. A hot path."""
        offset, partition = message.offset(), message.partition()
        if self.pace.is_late:  # stored or not, its sender is told to repeat it: the new instance may give its offset
            self._failed.add(partition)
        elif error is None and offset is not None and self.pace.rises(partition, offset):
            self._offsets[partition].append(offset)
        else:
            self._failed.add(partition)
            if error is None and offset is not None:
                self.reused.append((partition, offset))
        self.pace.reported(partition, failed=error is not None)
        self._settle()

    def refused(self, partition: int) -> None:
        """One record will not be produced after all."""
        self._failed.add(partition)
        self._settle()

    def _settle(self) -> None:
        self._owed -= 1
        if not self._owed:
            self.places = self._find_places()
            self._done.append(self)

    def _find_places(self) -> list[Place | None]:
        found: list[Place | None] = [None] * sum(map(len, self.numbers.values()))
        for partition, numbers in self.numbers.items():
            offsets = self._offsets[partition]
            if partition not in self._failed and all(before < after for before, after in pairwise(offsets)):
                for number, offset in zip(numbers, offsets, strict=True):
                    found[number] = (partition, offset)
        return found


class Acks:
    """`on_done` is called with every batch complete since the last turn, before any request that awaits one goes on."""

    def __init__(self, producer: Producer | ReplaceableProducer, on_done: Callable[[list[Batch]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._producer = producer
        self._on_done = on_done
        self._done: list[Batch] = []
        self._paces: dict[str, Pace] = {}
        self._waiting = 0
        self._armed = False

    def pace(self, topic: str) -> Pace:
        """What produces to a topic; there is one for each."""
        return self._paces.get(topic) or self._paces.setdefault(topic, Pace(self._producer, topic))

    def restart(self) -> None:
        """Refuse all records that wait to be produced: the producer is another one."""
        for pace in self._paces.values():
            pace.restart()

    def produced(self, batch: Batch, count: int) -> None:
        """All records of the batch that could be produced have been: `count` reports are due."""
        batch.begin(count, self._done)
        self._waiting += 1
        if not self._armed:
            self._armed = True
            self._loop.call_later(TURN_S, self._turn)

    def _turn(self) -> None:
        """Serve the producer once. An exception fails the requests that it was met with; the next turn comes anyway."""
        try:
            self._producer.poll(0)
            for pace in self._paces.values():
                pace.turn()
            self._end_requests()
        finally:
            self._armed = self._waiting > 0
            if self._armed:
                self._loop.call_later(TURN_S, self._turn)

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
                if batch.future.done():  # the request was given up meanwhile
                    continue
                if failure is None:
                    batch.future.set_result(None)
                else:
                    batch.future.set_exception(failure)
