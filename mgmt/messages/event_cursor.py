"""Cursor of a listener: the next offset of each partition that may have events of its pipe, as one text. Pure."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

MOST_CHARS: Final = 8_000
_Offset = Annotated[int, Meta(ge=0, lt=1 << 40)]
_Generation = Annotated[int, Meta(ge=0, lt=1 << 10)]


class EventCursor(Struct, array_like=True, frozen=True):
    """Position of a listener.

    at_ms:   milliseconds since the epoch: a partition that is not in `offsets` is read from this time on
    offsets: by generation of the ingest topic, the next offset of each of its partitions
    """

    at_ms: Annotated[int, Meta(ge=0, lt=1 << 43)]
    offsets: dict[_Generation, list[_Offset]]

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).decode().rstrip("=")

    @property
    def at(self) -> datetime:
        """Time from which unknown partitions are read."""
        return datetime.fromtimestamp(self.at_ms / 1_000, UTC)


def cursor_of(at: datetime, offsets: Mapping[tuple[int, int], int]) -> EventCursor:
    """Return the cursor of the next offsets by generation and partition, which must be numbered without a gap."""
    generations: dict[int, list[int]] = {}
    for (generation, _), offset in sorted(offsets.items()):
        generations.setdefault(generation, []).append(offset)
    return EventCursor(int(at.timestamp() * 1_000), generations)


def parse_event_cursor(text: str) -> EventCursor | None:
    """Parse a cursor; None for any other text."""
    if len(text) > MOST_CHARS:
        return None
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.msgpack.decode(packed, type=EventCursor)
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
        return None
