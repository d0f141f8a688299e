"""Monitors of heartbeats (which lanes live, and where) and of committed offsets (which may never fall)."""

import threading
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.ledger.heartbeat import HeartbeatRecord, decode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC, INPUTS_OF, LANE_KINDS, Purpose, lane_group
from dataplane.tables.records import TopicRecord
from tests.support.kafka import admin_consumer


class Heartbeats:
    """The newest heartbeat of each writer, or of those of one cell. Call `refresh` before reading."""

    def __init__(self, kafka: str, cell: str | None = None) -> None:
        self._cell = cell
        self._consumer = admin_consumer(
            {"bootstrap.servers": kafka, "group.id": "rig-pulse", "enable.auto.commit": False, "log_level": 3}
        )
        self._consumer.assign([TopicPartition(HEARTBEAT_TOPIC, 0, 0)])
        self.latest: dict[str, HeartbeatRecord] = {}

    def refresh(self) -> None:
        """Read the heartbeats that have arrived."""
        for message in self._consumer.consume(1_000, 0.2):
            if message.error() is None:
                heartbeat = decode_heartbeat(message.value())
                if self._cell in (None, heartbeat.cell):
                    self.latest[heartbeat.writer] = heartbeat

    def lanes_are_back(self, partitions: int, *, since_us: int, not_pids: frozenset[int] = frozenset()) -> bool:
        """Return True if lanes of every kind run outside `not_pids`, and process lanes hold every partition."""
        alive = [
            beat
            for beat in self.latest.values()
            if beat.state == "running" and beat.at_us > since_us and beat.pid not in not_pids
        ]
        held = {kind: sum(len(beat.partitions) for beat in alive if beat.kind == kind) for kind in LANE_KINDS}
        return all(any(beat.kind == kind for beat in alive) for kind in held) and held["process"] == partitions

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


class Offsets:
    """Monitor that reads the committed offsets of every lane group four times a second, in a thread."""

    def __init__(self, kafka: str, cell: str, topics: dict[Purpose, TopicRecord]) -> None:
        self._fell: list[str] = []
        self._ended = threading.Event()
        self._groups = {
            lane_group(cell, kind): [
                TopicPartition(topics[purpose].name, number)
                for purpose in INPUTS_OF[kind]
                for number in range(topics[purpose].partitions)
            ]
            for kind in LANE_KINDS
        }
        self._kafka = kafka
        self._highest: dict[tuple[str, str, int], int] = {}
        self._thread = threading.Thread(target=self._watch, name="offsets", daemon=True)
        self._thread.start()

    @property
    def fell(self) -> list[str]:
        """Each decrease. Asserts that offsets of every group were read: otherwise nothing was watched."""
        assert {group for group, *_ in self._highest.copy()} == self._groups.keys()
        return self._fell

    def close(self) -> None:
        """Stop the thread."""
        self._ended.set()
        self._thread.join(15)

    def _watch(self) -> None:
        clients = {
            group: admin_consumer({"bootstrap.servers": self._kafka, "group.id": group, "log_level": 0})
            for group in self._groups
        }
        while not self._ended.wait(0.25):
            for group, client in clients.items():
                self._look(group, client)
        for client in clients.values():
            client.close()

    def _look(self, group: str, client: Consumer) -> None:
        try:
            known = client.committed(self._groups[group], timeout=2)
        except KafkaException:
            return  # the broker is unavailable
        for place in known:
            name = (group, place.topic, place.partition)
            before = self._highest.get(name, -1)
            if place.error is None and place.offset >= 0:
                if place.offset < before:
                    self._fell.append(f"{name}: {before} -> {place.offset} at {time.time():.1f}")
                self._highest[name] = max(before, place.offset)
