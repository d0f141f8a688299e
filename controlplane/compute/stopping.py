"""Stops an application by a control record: SIGTERM to spark-submit ends the JVM before the Python driver can act."""

import threading
import time
from typing import Final

import structlog

from controlplane.kafka import RecordNotStoredError, kafka_clients
from dataplane.names import CONTROL_TOPIC
from dataplane.tables.records import StopRecord, encode_record, record_key

SEND_S: Final = 5.0
log = structlog.get_logger(__name__)


def request_stop(kafka: str, cell: str, incarnation: str) -> threading.Thread:
    """Publish the stop record in a thread; if Kafka is unreachable for 5 s, the caller's signals end the process."""
    thread = threading.Thread(target=_send, args=(kafka, cell, incarnation), daemon=True)
    thread.start()
    return thread


def _send(kafka: str, cell: str, incarnation: str) -> None:
    # Readers keep the highest version, and a keeper stores none: the clock's milliseconds grow across restarts.
    record = StopRecord(cell, time.time_ns() // 1_000_000, incarnation)
    encoded = [(record_key(record), encode_record(record))]
    try:
        kafka_clients(kafka).store("stop", CONTROL_TOPIC, encoded, timeout_s=SEND_S)
    except RecordNotStoredError as exc:
        log.warning("stop record not stored", cell=cell, incarnation=incarnation, error=str(exc))
