"""Delivery reports on the event loop: polled for every millisecond while some are due, so no thread is woken for them.

A thread that waits in `poll` and wakes the loop costs two changes of thread a report, more than the rest of a request.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

TURN_S: Final = 0.001
Report = tuple[KafkaError | None, int, int]  # error, partition, offset


class Batch:
    """The records of one request: what became of each, and a future for when all are known."""

    __slots__ = ("future", "owed", "reports", "subject")

    def __init__(self, size: int, subject: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.subject = subject  # the caller's own, for `on_done`
        self.owed = 0
        self.reports: list[Report | None] = [None] * size
        self.future: asyncio.Future[None] = loop.create_future()


class Acks:
    """`on_done` is called with every batch complete since the last turn, before any request that awaits one goes on."""

    def __init__(self, producer: Producer, on_done: Callable[[list[Batch]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._producer = producer
        self._on_done = on_done
        self._done: list[Batch] = []
        self._waiting = 0
        self._armed = False

    def produced(self, batch: Batch, count: int) -> None:
        """All records of the batch that could be produced have been: `count` reports are due."""
        batch.owed = count
        self._waiting += 1
        if not self._armed:
            self._armed = True
            self._loop.call_later(TURN_S, self._turn)

    def _turn(self) -> None:
        self._producer.poll(0)
        if self._done:
            done, self._done = self._done, []
            self._waiting -= len(done)
            self._on_done(done)
            for batch in done:
                if not batch.future.done():  # the request may have been given up meanwhile
                    batch.future.set_result(None)
        self._armed = self._waiting > 0
        if self._armed:
            self._loop.call_later(TURN_S, self._turn)

    def report(self, batch: Batch, index: int, error: KafkaError | None, message: Message) -> None:
        """The delivery callback of one record of a batch, its first two arguments bound."""
        batch.reports[index] = (error, message.partition() or 0, message.offset() or 0)
        batch.owed -= 1
        if not batch.owed:
            self._done.append(batch)
