"""Blocked keys of ordered destinations: records on the cell's compacted `blocked` topic.

A transmit lane reports up to which position a key's messages were set aside for retry; retry lanes report up to which
position they have ended. A key is blocked while the first is ahead of the second, so a lane that is assigned a
partition knows which keys must wait.
"""

import hashlib
from typing import Final, Literal

import msgspec
from msgspec import Struct

BLOCK_VERSION: Final = 1
BlockKind = Literal["aside", "ended", "held"]
MessageOrder = tuple[int, int]  # (position, child): the order of a key's messages
NO_ORDER: Final[MessageOrder] = (-1, 0)


class KeyBlock(Struct, array_like=True, frozen=True):
    """One report about a key of a destination. New fields are appended at the end, with a default.

    kind: `aside`: messages up to this position went to the retry lane; `ended`: messages up to this position have ended
          there; `held` after a dead letter, until a record newer than `of_version` makes the destination active
    """

    version: int
    kind: BlockKind
    pipe: str
    destination: str
    key: bytes
    position: int
    child: int
    of_version: int = 0

    @property
    def message_order(self) -> MessageOrder:
        """Last (position, child) to which the report applies."""
        return self.position, self.child


_decoder = msgspec.msgpack.Decoder(KeyBlock)
_encoder = msgspec.msgpack.Encoder()


def block_key(block: KeyBlock) -> str:
    """Return the record's key in the compacted topic. It has the hash of the message's key, which may be long."""
    return f"{block.kind}/{block.pipe}/{block.destination}/{hashlib.sha256(block.key).hexdigest()}"


def encode_block(block: KeyBlock) -> bytes:
    """Return the block as MessagePack."""
    return _encoder.encode(block)


def decode_block(value: bytes) -> KeyBlock:
    """Return the block in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _decoder.decode(value)


class KeyBlocks:
    """Blocked and held keys. Positions only grow.

    A blocked key is removed once all its messages have ended, a held one once its destination has a newer record.
    """

    def __init__(self) -> None:
        self._aside: dict[tuple[str, str, bytes], MessageOrder] = {}
        self._ended: dict[tuple[str, str, bytes], MessageOrder] = {}
        self._held: dict[tuple[str, str, bytes], int] = {}
        self._versions: dict[tuple[str, str], int] = {}  # of the destinations' records

    def __len__(self) -> int:
        return len(self._aside) + len(self._ended) + len(self._held)

    def learn(self, block: KeyBlock) -> None:
        """Apply a block. Idempotent and independent of the order of blocks."""
        entry = (block.pipe, block.destination, block.key)
        if block.kind == "held":
            if block.of_version >= self._versions.get(entry[:2], 0):
                self._held[entry] = max(block.of_version, self._held.get(entry, 0))
            return
        orders = self._aside if block.kind == "aside" else self._ended
        orders[entry] = max(block.message_order, orders.get(entry, NO_ORDER))
        aside = self._aside.get(entry)
        if aside is not None and self._ended.get(entry, NO_ORDER) >= aside:
            del self._aside[entry], self._ended[entry]

    def note_version(self, pipe: str, destination: str, version: int) -> None:
        """Note the version of a destination's record; remove the keys that were held under earlier ones."""
        self._versions[pipe, destination] = version
        for entry in [
            entry for entry, held in self._held.items() if entry[:2] == (pipe, destination) and held < version
        ]:
            del self._held[entry]

    def is_blocked(self, pipe: str, destination: str, key: bytes) -> bool:
        """Return True if messages of this key were set aside and have not all ended."""
        return (pipe, destination, key) in self._aside

    def is_held(self, pipe: str, destination: str, key: bytes, version: int) -> bool:
        """Return True if the key is held under this version of its destination's record."""
        return self._held.get((pipe, destination, key), -1) >= version
