"""Carries delivery reports from librdkafka's thread to the event loop: one wake-up for many results."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

Report = tuple[KafkaError | None, int, int]  # error, partition, offset


class Batch:
    """The records of one request: what became of each, and a future for when all are known.

    `expected` is set when all are produced; until then reports may already come, so both sides look whether it is full.
    """

    __slots__ = ("expected", "future", "reported", "reports", "subject")

    def __init__(self, size: int, subject: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.subject = subject  # the caller's own, for `on_done`
        self.expected = -1
        self.reported = 0
        self.reports: list[Report | None] = [None] * size
        self.future: asyncio.Future[None] = loop.create_future()


class Acks:
    """One poller thread. `on_done` is called on the loop with every batch complete since the last time."""

    def __init__(self, producer: Producer, on_done: Callable[[list[Batch]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._producer = producer
        self._on_done = on_done
        self._done: deque[Batch] = deque()
        self._woken = False
        self._closing = False
        self._thread = threading.Thread(target=self._poll, name="delivery-reports", daemon=True)
        self._thread.start()

    def reporter(self, batch: Batch, index: int) -> Callable[[KafkaError | None, Message], None]:
        """The delivery callback for one record of a batch."""
        return partial(self._report, batch, index)

    def produced(self, batch: Batch, count: int) -> None:
        """All records of the batch that could be produced have been: `count` reports are due."""
        batch.expected = count
        if batch.reported == count:
            self._push(batch)

    def close(self) -> None:
        """End the thread."""
        self._closing = True
        self._thread.join(timeout=2)

    def _poll(self) -> None:
        while not self._closing:
            self._producer.poll(0.1)

    def _report(self, batch: Batch, index: int, error: KafkaError | None, message: Message) -> None:
        """On the poller thread: remember, and wake the loop once however many follow."""
        batch.reports[index] = (error, message.partition() or 0, message.offset() or 0)
        batch.reported += 1
        if batch.reported == batch.expected:
            self._push(batch)

    def _push(self, batch: Batch) -> None:
        self._done.append(batch)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False  # before the loop: a report that comes now wakes us again
        done: list[Batch] = []
        while self._done:
            batch = self._done.popleft()
            if not batch.future.done():  # both sides may have seen it full
                batch.future.set_result(None)
                done.append(batch)
        self._on_done(done)  # before any request that awaits one of these goes on
