"""The ack window of one partition: what was taken, what is settled, and the prefix that may be committed. Pure."""

from collections import deque
from collections.abc import Iterable


class AckWindow:
    """Offsets are taken in rising order and settled in any; `prefix` is the lowest offset not yet settled.

    An offset may be owed several settlements (one for each output). Bounded by whoever asks `is_full` before taking.
    """

    __slots__ = ("_owed", "_taken", "bytes", "next_offset")

    def __init__(self, next_offset: int) -> None:
        self.next_offset = next_offset
        self.bytes = 0
        self._taken: deque[tuple[int, int]] = deque()
        self._owed: dict[int, int] = {}

    def take(self, offset: int, size: int = 0, parts: int = 1) -> None:
        """A message was read. Raises ValueError if offsets do not rise (the partition was read from before)."""
        if offset < self.next_offset:
            raise ValueError(f"offset {offset} is below {self.next_offset}, already taken")
        self._taken.append((offset, size))
        self._owed[offset] = parts
        self.bytes += size
        self.next_offset = offset + 1

    def settle(self, offset: int) -> bool:
        """One part of a message is done. Returns whether all of it is. An offset not in the window is ignored."""
        owed = self._owed.get(offset)
        if owed is None:
            return False
        if owed > 1:
            self._owed[offset] = owed - 1
            return False
        del self._owed[offset]
        self._shift()
        return True

    def settle_all(self, offsets: Iterable[int]) -> None:
        """All parts of these messages are done."""
        for offset in offsets:
            self._owed.pop(offset, None)
        self._shift()

    def _shift(self) -> None:
        taken, owed = self._taken, self._owed
        while taken and taken[0][0] not in owed:
            self.bytes -= taken.popleft()[1]

    @property
    def prefix(self) -> int:
        """Everything below is settled."""
        return self._taken[0][0] if self._taken else self.next_offset

    @property
    def unsettled(self) -> int:
        """Messages taken and not settled."""
        return len(self._owed)

    @property
    def span(self) -> int:
        """Messages from the first unsettled one on, settled ones among them included."""
        return len(self._taken)
