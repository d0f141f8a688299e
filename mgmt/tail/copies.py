"""Copies as they lie on a tail topic, the newest of them in memory, and the cursor that names one. Pure."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.ledger.peek import Peek, read_peek

_CURSOR: Final = re.compile(r"(\d{1,9})-(\d{1,18})")


@dataclass(frozen=True)
class Copy:
    """What a peek step showed of one message. `offset` is its place in the tail topic, `at` when the broker took it."""

    offset: int
    at: datetime
    peek: Peek
    body: bytes


def copy_of(message: Any) -> Copy | None:
    """The copy that a record of a tail topic is; None for what is none of ours."""
    try:
        peek = read_peek(message.headers() or [])
    except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    at = datetime.fromtimestamp(message.timestamp()[1] / 1_000, UTC)
    return Copy(message.offset(), at, peek, message.value() or b"")


class Cursor(NamedTuple):
    """A place in a cell's tail: all up to this offset of this generation of the topic has been shown."""

    generation: int
    offset: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.offset}"


def parse_cursor(text: str) -> Cursor | None:
    """The cursor that a text means; None if it is none: one then begins with what comes."""
    parts = _CURSOR.fullmatch(text)
    return Cursor(int(parts[1]), int(parts[2])) if parts else None


class Newest:
    """The newest copies, at most so many and so many bytes of bodies: what is too much goes at the old end."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._copies: deque[Copy] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._copies)

    def __iter__(self) -> Iterator[Copy]:
        return iter(self._copies)

    def add(self, copy: Copy) -> int:
        """Keep this one; returns how many of the oldest had to go for it."""
        self._copies.append(copy)
        self._bytes += len(copy.body)
        gone = 0
        while len(self._copies) > self._most or (self._bytes > self._most_bytes and len(self._copies) > 1):
            self._bytes -= len(self._copies.popleft().body)
            gone += 1
        return gone

    def take(self) -> list[Copy]:
        """All of them, which are then gone from here."""
        taken = list(self._copies)
        self._copies.clear()
        self._bytes = 0
        return taken
