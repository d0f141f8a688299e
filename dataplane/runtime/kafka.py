"""Kafka clients of the data plane: the one place for the settings that keep messages safe."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from dataplane.kafka_clients import make_consumer, make_producer
from dataplane.record_limits import CLIENT_MAX_BYTES

log = logging.getLogger(__name__)

SESSION_TIMEOUT_MS: Final = 6_000  # a killed lane that does not return loses its partitions after this
MAX_POLL_INTERVAL_MS: Final = 60_000
LEAVE_S: Final = 1.0
# Time limit of a flush that sends records without waiting for `linger.ms`; librdkafka rounds the rest up to whole
# milliseconds. It ends earlier if all are stored, and blocks its thread, so it is short. From 200 ms on, the client
# also calls delivery callbacks while the exception of a fatal error is set.
SEND_NOW_S: Final = 0.001
ERROR_LOG_S: Final = 10.0


def lane_producer(kafka: str, name: str, linger_ms: int = 1, queue_kib: int = 256 * 1024) -> Producer:
    """Return a producer for lanes: idempotent, acks=all, without a delivery timeout, so that it waits for brokers.

    linger_ms: how long a record waits for others of its batch
    queue_kib: limit of the records that are not stored yet, in KiB
    """
    return make_producer(
        {
            **_producer_base(kafka, name),
            "message.timeout.ms": 0,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": queue_kib,
        }
    )


def ingest_producer(kafka: str, name: str, timeout_ms: int) -> Producer:
    """Return a producer that is as safe, but reports within `timeout_ms`, which must be below the HTTP deadline."""
    return make_producer(
        {
            **_producer_base(kafka, name),
            "message.timeout.ms": timeout_ms,
            "request.timeout.ms": min(timeout_ms, 5_000),
            "linger.ms": 1,
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 128 * 1024,
        }
    )


def _producer_base(kafka: str, name: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka,
        "client.id": name,
        "acks": "all",
        "enable.idempotence": True,
        "compression.type": "lz4",
        "message.max.bytes": CLIENT_MAX_BYTES,
        "reconnect.backoff.max.ms": 1_000,
        "log_level": 3,
        "error_cb": ErrorLog(),
    }


def lane_consumer(
    kafka: str, group: str, name: str, on_commit: Callable[[Any, list[Any]], None], *, instance: str | None = None
) -> Consumer:
    """Return a consumer for lanes: it commits only explicit offsets, and a missing offset is an error, not a reset.

    instance: name of a static member (KIP-345). A killed member that returns under it within SESSION_TIMEOUT_MS gets
              its partitions back at once, without a rebalance; an earlier member of this name is fenced. Close the
              consumer with `leave_group`.
    """
    static = {} if instance is None else {"group.instance.id": instance}
    return make_consumer(
        {
            **static,
            "bootstrap.servers": kafka,
            "client.id": name,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": 1_000,
            "max.poll.interval.ms": MAX_POLL_INTERVAL_MS,
            "fetch.wait.max.ms": 250,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": 10_000,
            "queued.max.messages.kbytes": 64 * 1024,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 3,
            "error_cb": ErrorLog(),
            "on_commit": on_commit,
        }
    )


def leave_group(consumer: Consumer) -> None:
    """Leave the group, so that other members get the partitions at once: `close` alone does not take a static one out.

    The revocation callback runs meanwhile. Without an answer of the broker the call ends after LEAVE_S.
    """
    deadline = time.monotonic() + LEAVE_S
    try:
        consumer.unsubscribe()
    except KafkaException as exc:  # after a fatal error; a fenced member has left already
        log.warning("kafka: %s", exc)
        return
    while consumer.memberid() and time.monotonic() < deadline:
        consumer.poll(0.02)


class ErrorLog:
    """Error callback of one client: log each error code at most once per ERROR_LOG_S, with the count of skipped errors.

    A client reports each failed connection attempt, several a second while a broker is unreachable.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[int, float] = {}
        self._skipped: Counter[int] = Counter()

    def __call__(self, error: KafkaError) -> None:
        """Log the error, unless one with its code was logged within the interval."""
        code, now = error.code(), self._clock()
        if now < self._due.get(code, now):
            self._skipped[code] += 1
            return
        self._due[code] = now + ERROR_LOG_S
        log.warning("kafka: %s (%d more since the last line)", error, self._skipped.pop(code, 0))
