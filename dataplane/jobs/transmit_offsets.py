"""Offsets of a cell's transmit lanes, and the destinations that they have moved to the slow lane, for replays."""

import time
from typing import Any, Final

from confluent_kafka import KafkaException

from dataplane.jobs.group_offsets import GroupOffsets
from dataplane.names import INPUTS_OF, LaneKind, PartitionKey
from dataplane.replay.progress_log import read_slow
from dataplane.tables.records import CellRecord

KNOWN_FOR_S: Final = 0.2  # lanes commit as often
SLOW_FOR_S: Final = 10.0  # after this the signals are read again
KINDS: Final[tuple[LaneKind, ...]] = ("transmit", "transmit-slow")


class TransmitOffsets:
    """Reader of committed offsets and slow destinations of one cell."""

    def __init__(self, offsets: GroupOffsets, reader: Any, known_for_s: float = KNOWN_FOR_S) -> None:
        """`reader`: consumer for assigned partitions, which reports the end of a partition."""
        self._offsets, self._reader, self._known_for_s = offsets, reader, known_for_s
        self._known: dict[PartitionKey, int] = {}
        self._known_s = 0.0  # when they were read; monotonic clock, 0 before the first time
        self._slow: set[tuple[str, str]] = set()
        self._slow_s = 0.0  # when they were read; monotonic clock, 0 before the first time

    def committed(self, cell: CellRecord) -> dict[PartitionKey, int]:
        """Return the known committed offsets of the topics of transmit lanes, without those that have no response.

        All replays of a turn get the same answer: one question for each would take seconds each without a coordinator.
        """
        if not self._known_s or time.monotonic() - self._known_s >= self._known_for_s:
            self._known, self._known_s = self._ask(cell), time.monotonic()
        return self._known

    def _ask(self, cell: CellRecord) -> dict[PartitionKey, int]:
        found: dict[PartitionKey, int] = {}
        for kind in KINDS:
            topic = cell.topics.get(INPUTS_OF[kind][0])
            if topic is None:
                continue
            try:
                answers = self._offsets.committed(cell, kind, topic)
            except KafkaException:
                continue  # unknown for now
            found |= {(one.topic, one.partition): one.offset for one in answers if not one.error and one.offset >= 0}
        return found

    def slow(self, cell: CellRecord) -> set[tuple[str, str]]:
        """Return the destinations that the slow lane serves, by pipe and name. Raises KafkaException."""
        now_s = time.monotonic()
        if not cell.lanes.get("transmit-slow") or "slow" not in cell.topics:
            return set()
        if not self._slow_s or now_s - self._slow_s > SLOW_FOR_S:
            self._slow, self._slow_s = read_slow(self._reader, cell.topics["signals"].name), now_s
        return self._slow
