"""Order per key across lanes and crashes: read and publish the blocked keys of ordered destinations.

A lane of first attempts sends a failed message directly to the retry lane, after a record on the `blocked` topic. It
sends every later message of that key after it, until the retry lane reports that the last of them has ended. The retry
lane holds a message while it waits, so that no message overtakes another of its key.
"""

from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError

from dataplane.runtime.lanes.context import LaneContext
from dataplane.tables.blocks import (
    BLOCK_VERSION,
    BlockKind,
    KeyBlock,
    KeyBlocks,
    block_key,
    decode_block,
    encode_block,
)
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.destinations.breaker_gossip import READ_LIMIT, topic_reader

READ_EVERY_S: Final = 0.1
NEW_SLOT_S: Final = 1.0  # after a partition's assignment: by then its former owner's records have been read


class KeyOrder:
    """Blocked and held keys of all destinations, kept up to date. Used from the lane's thread."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self._topic = lane.cell.topics["blocked"].name
        self._blocks = KeyBlocks()
        self._reader: Any = topic_reader(lane.settings.kafka, self._topic)
        self._at_end = False
        self._due_s = 0.0
        self._slots: dict[int, float] = {}  # monotonic time at which each slot was first checked
        self.retries = lane.identity.kind == "transmit-retry"
        lane.table.on_change(self._changed)

    def poll(self, now_s: float) -> None:
        """Read new records of the `blocked` topic, at most every READ_EVERY_S."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + READ_EVERY_S
        for message in self._reader.consume(READ_LIMIT, 0):
            error = message.error()
            if error is None and message.value() is not None:
                self._learn(message.value())
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                self._at_end = True

    def is_ready(self, slot: int, now_s: float) -> bool:
        """Return True once all records that may block messages of this partition have been read."""
        since_s = self._slots.setdefault(slot, now_s)
        return self._at_end and now_s - since_s >= NEW_SLOT_S

    def forget(self, slot: int) -> None:
        """Drop a partition that this lane no longer owns."""
        self._slots.pop(slot, None)

    def is_blocked(self, send: Delivery) -> bool:
        """Return True if earlier messages of its key are in the retry lane and have not all ended."""
        return self._blocks.is_blocked(send.meta.pipe, send.meta.destination, send.key or b"")

    def is_held(self, send: Delivery) -> bool:
        """Return True if its key is held after a dead letter."""
        version = send.target.record.version
        return self._blocks.is_held(send.meta.pipe, send.meta.destination, send.key or b"", version)

    def publish(self, kind: BlockKind, send: Delivery, token: Any = None) -> None:
        """Apply a block here and publish it to all lanes; the producer returns `token` when the record is stored."""
        meta = send.meta
        block = KeyBlock(
            BLOCK_VERSION,
            kind,
            meta.pipe,
            meta.destination,
            send.key or b"",
            meta.position,
            meta.child,
            send.target.record.version,
        )
        self._blocks.learn(block)
        self._lane.producer.send(self._topic, token, key=block_key(block).encode(), value=encode_block(block))

    def close(self) -> None:
        """Close the consumer."""
        self._reader.close()

    def _changed(self, record: object) -> None:
        if isinstance(record, DestinationRecord):
            self._blocks.note_version(record.pipe, record.name, record.version)

    def _learn(self, value: bytes) -> None:
        try:
            self._blocks.learn(decode_block(value))
        except msgspec.DecodeError:
            return  # written by a newer release
