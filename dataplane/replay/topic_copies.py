"""Copies for destinations that are topics: a task writes their records itself, because they need no lane.

Through a lane, a replay to a topic would be as fast as the lane, and new events would wait behind its copies.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.ledger.stopwatch import delivery, spent_until
from dataplane.names import transmit_node
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.records.storage_records import KeptRecord, TopicMaker, topic_maker

_TRANSMIT: Final = int(Slice.TRANSMIT)


class CopyParts(Struct):
    """Copy of one unit (dataplane.transmit.records.storage_records.EgressParts)."""

    meta: MessageMeta
    carried: Headers
    key: bytes | None
    body: bytes


class WrittenCopy(NamedTuple):
    """Copy whose record was produced at `began_us` (Unix time, microseconds). `size_bytes`: of its body."""

    meta: MessageMeta
    began_us: int
    size_bytes: int


class TopicCopies:
    """Records of a task's copies for topics, and the timing of those that are stored.

    lags:              as a transmit lane reports them
    units, size_bytes: copies that are stored, and the size of their bodies
    """

    def __init__(self, topics: Iterable[DestinationRecord]) -> None:
        """`topics`: destinations that are topics. Copies for a compacted one need a lane, and get no record here."""
        makers = ((one.name, topic_maker(one)) for one in topics)
        self._makers: dict[str, TopicMaker] = {name: maker for name, maker in makers if maker is not None}
        self.lags = LagBook()
        self.units = self.size_bytes = 0

    def __contains__(self, destination: object) -> bool:
        return destination in self._makers

    def record(self, copy: CopyParts) -> KeptRecord:
        """Return the record of a copy. Raises StageError if it cannot be encoded."""
        return self._makers[copy.meta.destination](copy)

    def note_stored(self, copies: Iterable[WrittenCopy], stored_us: int) -> None:
        """Record the timing of copies that are stored since `stored_us` (Unix time, microseconds)."""
        for meta, began_us, size_bytes in copies:
            self.units, self.size_bytes = self.units + 1, self.size_bytes + size_bytes
            took_us = max(0, stored_us - began_us)
            spent_us = spent_until(meta, began_us)
            if spent_us is not None:
                spent_us[_TRANSMIT] += took_us
                key = (meta.account, transmit_node(meta.destination), meta.bucket)
                self.lags.add_delivered(key, took_us, *delivery(meta, spent_us))
