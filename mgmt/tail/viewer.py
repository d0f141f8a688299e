"""Queue of one viewer, and the fan-out of one topic's copies to its viewers. Does not use Kafka."""

import threading
from typing import Final, NamedTuple

from mgmt.tail.copies import PeekedCopy, RecentCopies

KEPT: Final = 2_000  # copies of one topic, for viewers that reconnect
KEPT_BYTES: Final = 16 * 1024 * 1024
WAITING: Final = 500  # copies that wait for one viewer
WAITING_BYTES: Final = 4 * 1024 * 1024


class TailChunk(NamedTuple):
    """Copies that a viewer has not seen yet; `after`: the offset that precedes the next ones, None if unknown.

    missed: copies that were dropped because the viewer was too slow
    gap:    True if the copies after the viewer's cursor were no longer kept
    """

    copies: list[PeekedCopy]
    after: int | None
    missed: int
    gap: bool


class TailViewer:
    """A bounded queue of one pipe's copies, between the reader and one browser."""

    def __init__(self, pipe: str, after: int | None = None) -> None:
        """`after`: the offset after which to begin; None to begin with new copies."""
        self._pipe, self._after = pipe, after
        self._missed = 0
        self._gap = False
        self._waiting = RecentCopies(WAITING, WAITING_BYTES)
        self._changed = threading.Condition()

    def place(self, first: int, end: int) -> None:
        """Set the position in a topic that is kept from `first` to `end`: after the cursor if kept, else with a gap."""
        with self._changed:
            if self._after is None:
                self._after = end - 1
            elif not first <= self._after + 1 <= end:
                self._gap = True
                self._after = first - 1 if self._after < first else end - 1

    def offer(self, copy: PeekedCopy) -> None:
        """Queue a copy if it is of the viewer's pipe and was not offered before. Never blocks."""
        with self._changed:
            if self._after is None or copy.offset <= self._after:
                return
            self._after = copy.offset
            if copy.peek.meta.pipe == self._pipe:
                self._missed += self._waiting.add(copy)
                self._changed.notify()

    def take(self, wait_s: float, *, copies: bool = True) -> TailChunk:
        """Return the queued copies, after a wait of at most `wait_s` for the first; reset `missed` and `gap`.

        With `copies=False` the copies stay in the queue, and it does not wait.
        """
        with self._changed:
            if copies:
                self._changed.wait_for(lambda: len(self._waiting), wait_s)
            taken = TailChunk(self._waiting.take() if copies else [], self._after, self._missed, self._gap)
            self._missed, self._gap = 0, False
            return taken


class TailTopic:
    """Buffer of one topic, and its viewers. Not thread-safe: the owner holds a lock."""

    def __init__(self) -> None:
        self.viewers: list[TailViewer] = []
        self._kept = RecentCopies(KEPT, KEPT_BYTES)
        self._first = 0  # all copies from this offset on are kept
        self._next: int | None = None  # the offset to be read next; None before reading has begun

    def begin(self, first: int, end: int) -> None:
        """Begin, or begin again, to read at `first`; `end`: the current end offset of the topic."""
        self._kept.take()
        self._first = self._next = first
        for viewer in self.viewers:
            viewer.place(first, end)

    def join(self, viewer: TailViewer) -> None:
        """Add a viewer: offer it the kept copies after its position, and from now on new ones."""
        self.viewers.append(viewer)
        if self._next is not None:
            viewer.place(self._first, self._next)
            for copy in self._kept:
                viewer.offer(copy)

    def add(self, copy: PeekedCopy) -> None:
        """Add the next copy of the topic; a copy from before the beginning is ignored."""
        if self._next is None or copy.offset < self._next:
            return
        self._next = copy.offset + 1
        if self._kept.add(copy):
            self._first = next(iter(self._kept)).offset
        for viewer in self.viewers:
            viewer.offer(copy)
