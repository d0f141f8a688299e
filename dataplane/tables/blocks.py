"""Which keys of ordered destinations are blocked: records on the cell's compacted `blocked` topic.

Lanes of first attempts say up to where a key's messages went aside, retry lanes up to where they have ended. A key is
blocked while the first is ahead of the second; so a lane that takes a partition over knows whose turn it is not.
"""

import hashlib
from typing import Final, Literal

import msgspec
from msgspec import Struct

BLOCK_VERSION: Final = 1
BlockKind = Literal["aside", "ended", "held"]
Turn = tuple[int, int]  # (position, child): the order of a key's messages
NO_TURN: Final[Turn] = (-1, 0)


class Block(Struct, array_like=True, frozen=True):
    """One thing known of one key of one destination. New fields go to the end with a default.

    kind:       `aside` messages up to this turn went to the retry lane; `ended` there up to this turn; `held` after a
                dead letter, until a record newer than `of_version` says that the destination is active
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
    def turn(self) -> Turn:
        """Up to where it holds."""
        return self.position, self.child


_decoder = msgspec.msgpack.Decoder(Block)
_encoder = msgspec.msgpack.Encoder()


def block_key(block: Block) -> str:
    """The record's key in the compacted topic. A message's key may be long; its hash is not."""
    return f"{block.kind}/{block.pipe}/{block.destination}/{hashlib.sha256(block.key).hexdigest()}"


def encode_block(block: Block) -> bytes:
    """The block as MessagePack."""
    return _encoder.encode(block)


def decode_block(value: bytes) -> Block:
    """Raises msgspec.DecodeError if `value` is no block this version understands."""
    return _decoder.decode(value)


class Blocks:
    """What is known of all keys. Turns only rise; a key whose messages have all ended is forgotten."""

    def __init__(self) -> None:
        self._aside: dict[tuple[str, str, bytes], Turn] = {}
        self._ended: dict[tuple[str, str, bytes], Turn] = {}
        self._held: dict[tuple[str, str, bytes], int] = {}

    def __len__(self) -> int:
        return len(self._aside) + len(self._ended) + len(self._held)

    def learn(self, block: Block) -> None:
        """In whatever order blocks come, as often as they come."""
        place = (block.pipe, block.destination, block.key)
        if block.kind == "held":
            self._held[place] = max(block.of_version, self._held.get(place, 0))
            return
        turns = self._aside if block.kind == "aside" else self._ended
        turns[place] = max(block.turn, turns.get(place, NO_TURN))
        aside = self._aside.get(place)
        if aside is not None and self._ended.get(place, NO_TURN) >= aside:
            del self._aside[place], self._ended[place]

    def is_blocked(self, pipe: str, destination: str, key: bytes) -> bool:
        """Whether messages of this key went aside and have not all ended."""
        return (pipe, destination, key) in self._aside

    def is_held(self, pipe: str, destination: str, key: bytes, version: int) -> bool:
        """Whether the key is held under this version of its destination's record."""
        return self._held.get((pipe, destination, key), -1) >= version
