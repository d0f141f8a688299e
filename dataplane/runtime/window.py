"""The ack window of one partition: what was taken, what is settled, and the prefix that may be committed. Pure."""

from collections import deque
from collections.abc import Iterable, Sequence
from operator import lt


class AckWindow:
    """Offsets are taken in rising order and settled in any; `prefix` is the lowest offset not yet settled.

    Bounded by whoever asks for `span` and `bytes` before taking.
    """

    __slots__ = ("_open", "_sizes", "_taken", "bytes", "next_offset")

    def __init__(self, next_offset: int) -> None:
        self.next_offset = next_offset
        self.bytes = 0
        self._taken: deque[int] = deque()
        self._sizes: deque[int] = deque()
        self._open: set[int] = set()

    def take(self, offset: int, size: int = 0) -> None:
        """A message was read. Raises ValueError if offsets do not rise (the partition was read from before)."""
        if offset < self.next_offset:
            raise ValueError(f"offset {offset} is below {self.next_offset}, already taken")
        self._taken.append(offset)
        self._sizes.append(size)
        self._open.add(offset)
        self.bytes += size
        self.next_offset = offset + 1

    def take_all(self, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """Messages were read, in this order; ValueError as from `take`, and then none of them counts."""
        if not offsets:
            return
        if not all(map(lt, (self.next_offset - 1, *offsets), offsets)):
            raise ValueError(f"offsets need to rise from {self.next_offset} on, got {offsets}")
        self._taken.extend(offsets)
        self._sizes.extend(sizes)
        self._open.update(offsets)
        self.bytes += sum(sizes)
        self.next_offset = offsets[-1] + 1

    def settle(self, offset: int) -> bool:
        """A message is done. Returns whether it was open; one that is not in the window is ignored."""
        if offset not in self._open:
            return False
        self._open.discard(offset)
        self._shift()
        return True

    def settle_all(self, offsets: Iterable[int]) -> None:
        """All of these messages are done."""
        self._open.difference_update(offsets)
        self._shift()

    def _shift(self) -> None:
        taken, sizes, still_open = self._taken, self._sizes, self._open
        while taken and taken[0] not in still_open:
            taken.popleft()
            self.bytes -= sizes.popleft()

    def owes(self, offset: int) -> bool:
        """Whether this message is not settled yet."""
        return offset in self._open

    @property
    def prefix(self) -> int:
        """Everything below is settled."""
        return self._taken[0] if self._taken else self.next_offset

    @property
    def unsettled(self) -> int:
        """Messages taken and not settled."""
        return len(self._open)

    @property
    def span(self) -> int:
        """Messages from the first unsettled one on, settled ones among them included."""
        return len(self._taken)
