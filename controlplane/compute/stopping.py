"""Stopping an application is a record: SIGTERM to spark-submit ends the JVM before the Python driver can act."""

import threading
import time
from typing import Final

import structlog

from controlplane.kafka import NotStoredError, kafka_clients
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
    encoded = [(record_key(record), encode_record(record))]
    try:
        kafka_clients(kafka).store("stop", CONTROL_TOPIC, encoded, timeout_s=SEND_S)
    except NotStoredError as exc:
        log.warning("stop record not stored", cell=cell, incarnation=incarnation, error=str(exc))
