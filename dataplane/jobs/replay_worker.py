"""Kafka clients and compiled plan that a Python worker keeps from one task of a replay to the next.

A task lasts two seconds. To connect, to get a producer id and to compile the plan would take a good part of them.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.plan import CompiledPlan, compile_plan
from dataplane.replay.task import ReplayTask
from dataplane.retrier.redriver import place_reader
from dataplane.runtime.kafka import lane_producer

IDLE_S: Final = 30.0  # then the clients are closed: Spark may use the worker for a lane, for days
LINGER_MS: Final = 20  # larger batches; nobody waits for a single copy


class WorkerClients(Struct):
    """Kafka clients of one worker. `producer`: idempotent; None until a task produces."""

    consumer: Any
    producer: Any = None


class ReplayWorker:
    """Clients and plan of this process, lent to one task at a time.

    A producer is lent again only if all of its records are stored: the sequence numbers of an idempotent producer
    continue, so its next task is as safe as with a new producer id. After any other end both clients are replaced.
    """

    def __init__(
        self,
        make_consumer: Callable[[str], Any] = place_reader,
        make_producer: Callable[[str], Any] = lambda kafka: lane_producer(kafka, "replay", LINGER_MS),
        idle_s: float = IDLE_S,
    ) -> None:
        self._make_consumer, self._make_producer, self._idle_s = make_consumer, make_producer, idle_s
        self._lock = threading.Lock()
        self._clients: WorkerClients | None = None
        self._plan: tuple[tuple[str, int, bytes], CompiledPlan] | None = None
        self._closing: threading.Timer | None = None

    def plan(self, task: ReplayTask) -> CompiledPlan:
        """Return the compiled plan of a task's revision; a published revision never changes."""
        key = (task.record.pipe, task.record.revision, task.salt)
        if self._plan is None or self._plan[0] != key:
            self._plan = (key, compile_plan(task.spec, task.salt))
        return self._plan[1]

    def lend(self, kafka: str, *, produces: bool) -> WorkerClients:
        """Return the clients for one task, which ends with `give_back`. Raises KafkaException."""
        with self._lock:
            if self._closing is not None:
                self._closing.cancel()
                self._closing = None
            if self._clients is None:
                self._clients = WorkerClients(self._make_consumer(kafka))
            if produces and self._clients.producer is None:
                self._clients.producer = self._make_producer(kafka)
            return self._clients

    def give_back(self, *, is_clean: bool) -> None:
        """Keep the clients for the next task, for IDLE_S; close them unless the task has ended without an error."""
        with self._lock:
            if self._clients is None:
                return
            if not is_clean:
                self._close()
                return
            self._clients.consumer.assign([])  # do not fetch on in the background
            self._closing = threading.Timer(self._idle_s, self._close_idle)
            self._closing.daemon = True
            self._closing.start()

    def _close_idle(self) -> None:
        with self._lock:
            if self._closing is threading.current_thread():  # not lent again meanwhile
                self._close()

    def _close(self) -> None:
        clients, self._clients, self._closing = self._clients, None, None
        if clients is not None:
            with suppress(KafkaException):
                clients.consumer.close()
