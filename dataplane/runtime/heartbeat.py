"""Heartbeats: once a second a process says that it lives, what it holds and how it feels."""

import os
import socket
import time

import psutil
from confluent_kafka import KafkaException, Producer

from dataplane.ledger.heartbeat import Heartbeat, encode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC
from dataplane.runtime.replaceable import ReplaceableProducer


class Pulse:
    """Sends heartbeats of one writer through a producer that the process has anyway. Losing one is harmless."""

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
        """Whether a second is over."""
        return time.monotonic() >= self._due

    def beat(self, state: str, table_offset: int, **rest: object) -> None:
        """Send one now."""
        self._due = time.monotonic() + 1.0
        times = self._process.cpu_times()
        heartbeat = Heartbeat(
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
            return  # the next one says the same
