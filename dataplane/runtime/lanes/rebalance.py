"""Rebalance callbacks of a lane's consumer (KIP-429, incremental cooperative rebalancing)."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition

from dataplane.runtime.lanes.partitions import AssignedPartitions
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots

log = logging.getLogger(__name__)


class Rebalance:
    """Callbacks for partitions that are assigned, revoked or lost. The client calls them in `poll`.

    A closing lane has made its last checkpoint, or has failed and must not make one: it only releases partitions.

    busy_s: total time spent in the callbacks
    """

    def __init__(
        self,
        writer: str,
        slots: PartitionSlots,
        partitions: AssignedPartitions,
        crashes: PoisonTracker,
        *,
        stop_work: Callable[[Iterable[int]], None],
        finish_work: Callable[[], None],
        forget: Callable[[int], None],
    ) -> None:
        """Create the callbacks.

        stop_work:   begin nothing more for these slots
        finish_work: wait for the work in progress for a bounded time, then checkpoint it
        forget:      commit nothing more for this slot
        """
        self.is_closing = False
        self.busy_s = 0.0
        self._writer = writer
        self._slots = slots
        self._partitions = partitions
        self._crashes = crashes
        self._stop_work = stop_work
        self._finish_work = finish_work
        self._forget = forget

    def assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Own the assigned partitions."""
        with self._timed():
            slots = self._slots_of("assigned", partitions)
            self._partitions.assign(slots)
            self._crashes.assigned(map(self._partitions.file_name, slots), time.time())
            consumer.incremental_assign(partitions)

    def revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Wait briefly for work in progress, checkpoint it, then release the partitions."""
        with self._timed():
            slots = self._slots_of("revoked", partitions)
            if not self.is_closing:
                self._stop_work(slots)
                self._finish_work()
            self._release(slots)
            for slot in slots:
                self._crashes.let_go(self._partitions.file_name(slot))
            consumer.incremental_unassign(partitions)

    def lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop partitions that another lane already owns, and commit nothing."""
        with self._timed():
            slots = self._slots_of("lost", partitions)
            if not self.is_closing:
                self._stop_work(slots)
            self._release(slots)
            for slot in slots:
                self._crashes.lost(self._partitions.file_name(slot))
            consumer.incremental_unassign(partitions)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun_s = time.monotonic()
        try:
            yield
        finally:
            self.busy_s += time.monotonic() - begun_s

    def _release(self, slots: list[int]) -> None:
        self._partitions.release(slots)
        for slot in slots:
            self._forget(slot)

    def _slots_of(self, change: str, partitions: list[TopicPartition]) -> list[int]:
        slots = [self._slots.number(place) for place in partitions]
        level = logging.WARNING if change == "lost" else logging.INFO
        log.log(level, "lane %s: %s %s", self._writer, change, [self._partitions.name(slot) for slot in slots])
        return slots
