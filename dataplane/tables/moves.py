"""How far a move has come, and what was released ahead of its time: records on the cell's `signals` topic.

That topic is compacted and of one partition; lanes' own signals lie on it too, told apart by their keys.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from pyroaring import BitMap64

MOVES_VERSION: Final = 1
MOVE_PREFIX: Final = "move/"
AHEAD_PREFIX: Final = "ahead/"
Place = tuple[str, int]  # (topic, partition)


class MoveProgress(Struct, array_like=True, frozen=True):
    """How far a move has come. New fields go to the end with a default, so N and N-1 read each other.

    moved:   messages stored on retry-out;  skipped: gone, unreadable, or another destination's;  total: asked for
    reached: "<topic>/<partition>" -> everything the move asks for below this offset is done, and the ledger knows it
    done:    nothing follows, be it moved whole or aborted
    error:   what it waits for, in words
    """

    version: int
    move: str
    moved: int
    skipped: int
    total: int
    done: bool
    at_us: int
    reached: dict[str, int]
    error: str = ""


class Ahead(Struct, array_like=True, frozen=True):
    """What was passed on before its time, because the destination is well again.

    reached: "<delay topic>/<partition>" -> every message of the destination below this offset is on retry-out, but for
    those that are to wait because it asked for it itself (Meta.asked_us)
    running: more of them come back just now; what falls due meanwhile is not to come on top
    """

    version: int
    pipe: str
    destination: str
    at_us: int
    reached: dict[str, int]
    running: bool = False


_progress = msgspec.msgpack.Decoder(MoveProgress)
_ahead = msgspec.msgpack.Decoder(Ahead)
_encoder = msgspec.msgpack.Encoder()


def move_key(move: str) -> str:
    """The key of a move's progress."""
    return f"{MOVE_PREFIX}{move}"


def ahead_key(pipe: str, destination: str) -> str:
    """The key of what was released ahead for a destination."""
    return f"{AHEAD_PREFIX}{pipe}/{destination}"


def encode_progress(record: MoveProgress | Ahead) -> bytes:
    """The record as MessagePack."""
    return _encoder.encode(record)


def decode_progress(value: bytes) -> MoveProgress:
    """Raises msgspec.DecodeError if `value` is no progress this version understands."""
    return _progress.decode(value)


def decode_ahead(value: bytes) -> Ahead:
    """Raises msgspec.DecodeError if `value` is nothing this version understands."""
    return _ahead.decode(value)


def format_place(place: Place) -> str:
    """`<topic>/<partition>`."""
    return f"{place[0]}/{place[1]}"


def parse_place(text: str) -> Place:
    """The inverse of format_place. Raises ValueError."""
    topic, _, partition = text.rpartition("/")
    return topic, int(partition)


def encode_offsets(offsets: Mapping[Place, BitMap64]) -> dict[str, str]:
    """Offsets as a MoveRecord carries them."""
    return {format_place(place): b64encode(found.serialize()).decode() for place, found in offsets.items()}


def decode_offsets(offsets: Mapping[str, str]) -> dict[Place, BitMap64]:
    """The inverse of encode_offsets. Raises ValueError for what is no bitmap or no place."""
    return {parse_place(place): _bitmap(b64decode(text, validate=True)) for place, text in offsets.items()}


def _bitmap(serialized: bytes) -> BitMap64:
    try:
        return BitMap64.deserialize(serialized)
    except IndexError as exc:
        raise ValueError("needs a serialized bitmap, got nothing") from exc
