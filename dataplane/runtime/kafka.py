"""Kafka clients as the data plane wants them. The settings that keep messages safe are here, in one place."""

import logging
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, Producer

from dataplane.record_limits import CLIENT_MAX_BYTES

log = logging.getLogger(__name__)

SESSION_TIMEOUT_MS: Final = 6_000  # a lane that was killed gives up its partitions after this
MAX_POLL_INTERVAL_MS: Final = 60_000


def lane_producer(kafka: str, name: str) -> Producer:
    """For lanes: idempotent, acks=all, and never giving up: a broker that is away is waited for."""
    return Producer(
        {
            **_producer_base(kafka, name),
            "message.timeout.ms": 0,
            "linger.ms": 1,
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 256 * 1024,
        }
    )


def ingest_producer(kafka: str, name: str, timeout_ms: int) -> Producer:
    """For ingest: as safe, but answers within `timeout_ms`, which must be below the HTTP deadline."""
    return Producer(
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
        "error_cb": _on_error,
    }


def lane_consumer(kafka: str, group: str, name: str, on_commit: Callable[[Any, list[Any]], None]) -> Consumer:
    """For lanes: nothing is committed but what the ack window says; no offset means stop, not jump."""
    return Consumer(
        {
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
            "error_cb": _on_error,
            "on_commit": on_commit,
        }
    )


def _on_error(error: Any) -> None:
    log.warning("kafka: %s", error)
