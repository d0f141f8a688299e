"""One tick: publish the stored operational events in their order, and delete them after their delivery reports.

Safe to kill at any point: an event whose row was not deleted yet is published again with the same id, from which
ingest makes the same id of an event. Every row is due, so none is missed: a cursor would miss rows that commit late.
"""

import time
from typing import Any, Final

import msgspec
import structlog
from confluent_kafka import KafkaException

from controlplane.kafka import RecordNotStoredError, kafka_clients
from controlplane.locks import TaskWaitingError, alone
from dataplane.names import OPERATIONAL_TOPIC
from mgmt.models import OperationalEvent

LOCK: Final = "operational_events.publish"
CHUNK: Final = 1_000
TICK_S: Final = 4.0  # the next tick publishes the rest
FLUSH_S: Final = 10.0
log = structlog.get_logger(__name__)


def publish_due(kafka: str) -> str:
    """Publish the due events under the lock; return a summary."""
    return alone(LOCK, lambda: _publish(kafka))


def _publish(kafka: str) -> str:
    deadline, count = time.monotonic() + TICK_S, 0
    while rows := list(OperationalEvent.objects.order_by("at", "id")[:CHUNK]):
        try:
            # The key is the tenant's id, so the events of a tenant keep their order on a topic of any size.
            records = [(row.tenant_id, record_value(row)) for row in rows]
            kafka_clients(kafka).store("operational events", OPERATIONAL_TOPIC, records, timeout_s=FLUSH_S, linger_ms=5)
        except (KafkaException, RecordNotStoredError) as exc:
            log.warning("operational events not published", reason=str(exc))
            raise TaskWaitingError("waiting for Kafka") from exc
        OperationalEvent.objects.filter(id__in=[row.id for row in rows]).delete()
        count += len(rows)
        if time.monotonic() > deadline:
            break
    return f"{count} events" if count else ""


def record_value(row: OperationalEvent) -> bytes:
    """Return the value of an event's record: the body of the event in each pipe that receives it."""
    body: dict[str, Any] = {
        "id": row.id,
        "type": row.type,
        "time": row.at.isoformat(),
        "tenant": row.tenant_id,
        "pipe": {"id": row.pipe_id, "name": row.pipe_name},
        "data": row.data,
    }
    return msgspec.json.encode(body)
