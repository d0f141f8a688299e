"""Ack window of one partition: messages read, messages settled, and the prefix that may be committed. Pure."""

from collections import deque
from collections.abc import Iterable, Sequence
from operator import lt


class AckWindow:
    """Ack window: offsets are taken in rising order and settled in any; `prefix` is the lowest unsettled offset.

    The window has no bound of its own: the caller checks `span` and `bytes` before it takes more.
    """

    __slots__ = ("_open", "_sizes", "_taken", "bytes", "next_offset")

    def __init__(self, next_offset: int) -> None:
        self.next_offset = next_offset
        self.bytes = 0
        self._taken: deque[int] = deque()
        self._sizes: deque[int] = deque()
        self._open: set[int] = set()

    def take(self, offset: int, size: int = 0) -> None:
        """Add a message that was read. Raises ValueError if its offset is not above all earlier ones."""
        if offset < self.next_offset:
            raise ValueError(f"offset: needs at least {self.next_offset}, got {offset}")
        self._taken.append(offset)
        self._sizes.append(size)
        self._open.add(offset)
        self.bytes += size
        self.next_offset = offset + 1

    def take_all(self, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """Add messages in the order read. Raises ValueError like `take`, and then adds none of them."""
        if not offsets:
            return
        if not all(map(lt, (self.next_offset - 1, *offsets), offsets)):
            raise ValueError(f"offsets: need to rise from {self.next_offset}, got {offsets}")
        self._taken.extend(offsets)
        self._sizes.extend(sizes)
        self._open.update(offsets)
        self.bytes += sum(sizes)
        self.next_offset = offsets[-1] + 1

    def settle(self, offset: int) -> bool:
        """Settle a message; return False if it is not in the window or already settled."""
        if offset not in self._open:
            return False
        self._open.discard(offset)
        self._shift()
        return True

    def settle_all(self, offsets: Iterable[int]) -> None:
        """Settle all of these messages; offsets outside the window are ignored."""
        self._open.difference_update(offsets)
        self._shift()

    def _shift(self) -> None:
        taken, sizes, still_open = self._taken, self._sizes, self._open
        while taken and taken[0] not in still_open:
            taken.popleft()
            self.bytes -= sizes.popleft()

    def is_unsettled(self, offset: int) -> bool:
        """Return True if this message was taken and is not settled."""
        return offset in self._open

    @property
    def prefix(self) -> int:
        """Offset below which everything is settled: the one to commit."""
        return self._taken[0] if self._taken else self.next_offset

    @property
    def unsettled(self) -> int:
        """Number of messages taken and not settled."""
        return len(self._open)

    @property
    def span(self) -> int:
        """Number of messages from the first unsettled one on, including settled ones."""
        return len(self._taken)
