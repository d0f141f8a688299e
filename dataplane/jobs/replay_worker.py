"""Kafka clients and compiled plan that a Python worker keeps from one task of a replay to the next."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.jobs.kept_context import IDLE_S, KeptContext, LentContext
from dataplane.plan import CompiledPlan, compile_plan
from dataplane.replay.task import ReplayTask
from dataplane.retrier.redriver import place_reader
from dataplane.runtime.kafka import lane_producer

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
        self._make_consumer, self._make_producer = make_consumer, make_producer
        self._kept = KeptContext(_close, idle_s=idle_s)
        self._plan: tuple[tuple[str, int, bytes], CompiledPlan] | None = None

    def plan(self, task: ReplayTask) -> CompiledPlan:
        """Return the compiled plan of a task's revision; a published revision never changes."""
        key = (task.record.pipe, task.record.revision, task.salt)
        if self._plan is None or self._plan[0] != key:
            self._plan = (key, compile_plan(task.spec, task.salt))
        return self._plan[1]

    @contextmanager
    def lend(self, kafka: str, *, produces: bool) -> Iterator[LentContext[WorkerClients]]:
        """Lend the clients to one task, which keeps them if it ends without an error. Raises KafkaException."""
        with self._kept.lend(kafka, lambda: WorkerClients(self._make_consumer(kafka))) as lease:
            clients = lease.context
            if produces and clients.producer is None:
                clients.producer = self._make_producer(kafka)
            yield lease
            if lease.is_kept:
                lease.is_kept = False  # until the consumer does not fetch on in the background
                clients.consumer.assign([])
                lease.keep()


def _close(clients: WorkerClients) -> None:
    with suppress(KafkaException):
        clients.consumer.close()
