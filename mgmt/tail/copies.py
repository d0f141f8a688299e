"""Copies of messages from a tail topic, the bounded buffer of the newest, and the cursor that names one. Pure."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.ledger.peek import PeekMeta, read_peek

_CURSOR: Final = re.compile(r"(\d{1,9})-(\d{1,18})")


@dataclass(frozen=True)
class PeekedCopy:
    """A peek step's copy of one message. `offset`: in the tail topic; `at`: when the broker stored it."""

    offset: int
    at: datetime
    peek: PeekMeta
    body: bytes


def copy_of(message: Any) -> PeekedCopy | None:
    """Decode a record of a tail topic; None for a record that Penstock did not write."""
    try:
        peek = read_peek(message.headers() or [])
    except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    at = datetime.fromtimestamp(message.timestamp()[1] / 1_000, UTC)
    return PeekedCopy(message.offset(), at, peek, message.value() or b"")


class TailCursor(NamedTuple):
    """Position in a cell's tail: all copies up to this offset of this generation of the topic have been shown."""

    generation: int
    offset: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.offset}"


def parse_cursor(text: str) -> TailCursor | None:
    """Parse a cursor; None for any other text: the stream then begins with new copies."""
    parts = _CURSOR.fullmatch(text)
    return TailCursor(int(parts[1]), int(parts[2])) if parts else None


class RecentCopies:
    """Buffer of the newest copies, limited in number and in bytes of bodies; it drops the oldest."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._copies: deque[PeekedCopy] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._copies)

    def __iter__(self) -> Iterator[PeekedCopy]:
        return iter(self._copies)

    def add(self, copy: PeekedCopy) -> int:
        """Add a copy; return the number of old copies dropped for it."""
        self._copies.append(copy)
        self._bytes += len(copy.body)
        dropped = 0
        while len(self._copies) > self._most or (self._bytes > self._most_bytes and len(self._copies) > 1):
            self._bytes -= len(self._copies.popleft().body)
            dropped += 1
        return dropped

    def take(self) -> list[PeekedCopy]:
        """Return all copies and empty the buffer."""
        taken = list(self._copies)
        self._copies.clear()
        self._bytes = 0
        return taken
