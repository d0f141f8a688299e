"""Stopping an application is a record: SIGTERM to spark-submit ends the JVM before the Python driver can act."""

import threading
import time
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException

from controlplane.kafka import producer
from dataplane.names import CONTROL_TOPIC
from dataplane.tables.records import StopRecord, encode_record, record_key

SEND_S: Final = 5.0
log = structlog.get_logger(__name__)


def ask_to_stop(kafka: str, cell: str, incarnation: str) -> threading.Thread:
    """Send the stop record beside the caller's loop; if Kafka is away for 5 s, signals have to do."""
    thread = threading.Thread(target=_send, args=(kafka, cell, incarnation), daemon=True)
    thread.start()
    return thread


def _send(kafka: str, cell: str, incarnation: str) -> None:
    # Readers keep the highest version, and a keeper remembers none: the clock's milliseconds grow over restarts.
    record = StopRecord(cell, time.time_ns() // 1_000_000, incarnation)
    try:
        writer = producer(kafka, **{"message.timeout.ms": int(SEND_S * 1000)})
        writer.produce(CONTROL_TOPIC, encode_record(record), record_key(record), on_delivery=_report)
        if writer.flush(SEND_S):
            log.warning("stop record not sent in time", cell=cell, incarnation=incarnation)
    except KafkaException as exc:
        log.warning("stop record not sent", cell=cell, incarnation=incarnation, error=str(exc))


def _report(error: Any, message: Any) -> None:
    if error is not None:
        log.warning("stop record not stored", key=message.key(), error=error.str())
