"""Kafka clients of the control plane: one place for how they behave while the brokers are away."""

from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from dataplane.record_limits import CLIENT_MAX_BYTES

_SIZES: Final = {"message.max.bytes": CLIENT_MAX_BYTES}


def _common(kafka: str) -> dict[str, Any]:
    # The client's own tenth of a second logs an error for each attempt, ten times a second, for as long as it lasts.
    return {"bootstrap.servers": kafka, "reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 5_000}


def admin_client(kafka: str) -> AdminClient:
    """For topics, configuration and offsets."""
    return AdminClient(_common(kafka))


def consumer(kafka: str, group: str, **more: Any) -> Consumer:
    """A consumer that commits nothing by itself. The client insists on a group's name, used or not."""
    return Consumer(_common(kafka) | {"group.id": group, "enable.auto.commit": False} | more)


def producer(kafka: str, **more: Any) -> Producer:
    """A producer whose reports mean that every copy that must has the record, once."""
    return Producer(_common(kafka) | {"acks": "all", "enable.idempotence": True, "linger.ms": 0} | _SIZES | more)
