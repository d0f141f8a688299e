"""Order per key across lanes and crashes: what this lane knows of blocked keys, and tells.

A lane of first attempts sends a message that failed straight to the retry lane, behind a record on the `blocked` topic,
and every later one of its key after it, until the retry lane says that the last of them has ended. The retry lane waits
in place, so that nothing is overtaken.
"""

from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError

from dataplane.runtime.lane import Lane
from dataplane.tables.blocks import (
    BLOCK_VERSION,
    Block,
    BlockKind,
    Blocks,
    block_key,
    decode_block,
    encode_block,
)
from dataplane.transmit.gossip import READ_LIMIT, topic_reader
from dataplane.transmit.sends import Send

READ_EVERY_S: Final = 0.1
NEW_SLOT_S: Final = 1.0  # after a partition came to us: until then its former owner's records have been read


class Order:
    """Blocks of all keys, kept up to date. Used from the lane's thread."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._topic = lane.cell.topics["blocked"].name
        self._blocks = Blocks()
        self._reader: Any = topic_reader(lane.settings.kafka, self._topic)
        self._at_end = False
        self._due_s = 0.0
        self._slots: dict[int, float] = {}  # since when a slot is ours
        self.retries = lane.identity.kind == "transmit-retry"

    def turn(self, now_s: float) -> None:
        """Read what has come."""
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
        """Whether everything is known that may keep messages of this partition back."""
        since_s = self._slots.setdefault(slot, now_s)
        return self._at_end and now_s - since_s >= NEW_SLOT_S

    def forget(self, slot: int) -> None:
        """The partition is somebody else's."""
        self._slots.pop(slot, None)

    def is_blocked(self, send: Send) -> bool:
        """Whether earlier messages of its key went aside and have not all ended."""
        return self._blocks.is_blocked(send.meta.pipe, send.meta.destination, send.key or b"")

    def is_held(self, send: Send) -> bool:
        """Whether its key is held after a dead letter."""
        version = send.target.record.version
        return self._blocks.is_held(send.meta.pipe, send.meta.destination, send.key or b"", version)

    def tell(self, kind: BlockKind, send: Send, token: Any = None) -> None:
        """Know it here and tell all lanes; `token` comes back when the record is stored."""
        meta = send.meta
        block = Block(
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
        self._lane.outbox.send(self._topic, token, key=block_key(block).encode(), value=encode_block(block))

    def close(self) -> None:
        """Leave the topic."""
        self._reader.close()

    def _learn(self, value: bytes) -> None:
        try:
            self._blocks.learn(decode_block(value))
        except msgspec.DecodeError:
            return  # from a newer release
