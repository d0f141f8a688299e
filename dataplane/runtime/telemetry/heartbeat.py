"""Heartbeats: once a second a process reports that it is alive, its state and its resources."""

import os
import socket
import time

import psutil
from confluent_kafka import KafkaException, Producer

from dataplane.ledger.heartbeat import HeartbeatRecord, encode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC
from dataplane.runtime.producers.replaceable import ReplaceableProducer


class HeartbeatSender:
    """Sender of one writer's heartbeats through the process's own producer. A lost heartbeat is harmless."""

    def __init__(
        self,
        producer: Producer | ReplaceableProducer,
        *,
        cell: str,
        writer: str,
        kind: str,
        epoch: int,
        incarnation: str,
    ) -> None:
        self._producer = producer
        self._fixed = {"cell": cell, "writer": writer, "kind": kind, "epoch": epoch, "incarnation": incarnation}
        self._process = psutil.Process()
        self._due = 0.0

    def due(self) -> bool:
        """Return True if the last heartbeat is a second old."""
        return time.monotonic() >= self._due

    def beat(self, state: str, table_offset: int, **rest: object) -> None:
        """Send a heartbeat now; `rest` are further fields of HeartbeatRecord."""
        self._due = time.monotonic() + 1.0
        times = self._process.cpu_times()
        heartbeat = HeartbeatRecord(
            **self._fixed,  # type: ignore[arg-type]
            at_us=time.time_ns() // 1_000,
            state=state,
            table_offset=table_offset,
            pid=os.getpid(),
            host=socket.gethostname(),
            cpu_s=round(times.user + times.system, 2),
            rss_bytes=self._process.memory_info().rss,
            **rest,  # type: ignore[arg-type]
        )
        key = f"{heartbeat.cell}/{heartbeat.writer}"
        try:
            self._producer.produce(HEARTBEAT_TOPIC, key=key, value=encode_heartbeat(heartbeat))
        except (BufferError, KafkaException):
            return  # the next heartbeat replaces it
