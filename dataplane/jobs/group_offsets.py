"""Committed offsets of the groups of a cell's lanes, for the driver. The clients join no group and commit nothing."""

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import TopicPartition

from dataplane.kafka_clients import make_offset_client
from dataplane.names import LaneKind, lane_group
from dataplane.tables.records import CellRecord, TopicRecord

ASK_S: Final = 5.0


class GroupOffsets:
    """Reader of committed offsets. It keeps one client for each group until `close`."""

    def __init__(self, kafka: str, make: Callable[[str, str], Any] = make_offset_client) -> None:
        self._kafka, self._make = kafka, make
        self._clients: dict[str, Any] = {}

    def committed(
        self, cell: CellRecord, kind: LaneKind, topic: TopicRecord, timeout_s: float = ASK_S
    ) -> list[TopicPartition]:
        """Return what lanes of a kind have committed of each partition of a topic. Raises KafkaException."""
        asked = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        found: list[TopicPartition] = self._client(lane_group(cell.cell, kind)).committed(asked, timeout=timeout_s)
        return found

    def close(self) -> None:
        """Close the clients."""
        for client in self._clients.values():
            client.close()

    def _client(self, group: str) -> Any:
        if group not in self._clients:
            self._clients[group] = self._make(self._kafka, group)
        return self._clients[group]
