"""One who looks on, and the copies of one topic on their way to all who do. No Kafka here."""

import threading
from typing import Final, NamedTuple

from mgmt.tail.copies import Copy, Newest

KEPT: Final = 2_000  # copies of one topic that somebody who comes back finds
KEPT_BYTES: Final = 16 * 1024 * 1024
WAITING: Final = 500  # copies that wait for one viewer
WAITING_BYTES: Final = 4 * 1024 * 1024


class Taken(NamedTuple):
    """What a viewer has not seen yet; `after` is the offset behind which the next ones come, None if none is known.

    missed: copies that had to go because they were not taken in time
    gap:    what this viewer asked to go on from was no longer kept
    """

    copies: list[Copy]
    after: int | None
    missed: int
    gap: bool


class Viewer:
    """A bounded queue of one pipe's copies, between the reader and one browser."""

    def __init__(self, pipe: str, after: int | None = None) -> None:
        """`after`: the offset behind which to begin; None to begin with what comes."""
        self._pipe, self._after = pipe, after
        self._missed = 0
        self._gap = False
        self._waiting = Newest(WAITING, WAITING_BYTES)
        self._changed = threading.Condition()

    def place(self, first: int, end: int) -> None:
        """The topic is kept from `first` and ends at `end`: go on behind the cursor if that is kept."""
        with self._changed:
            if self._after is None:
                self._after = end - 1
            elif not first <= self._after + 1 <= end:
                self._gap = True
                self._after = first - 1 if self._after < first else end - 1

    def offer(self, copy: Copy) -> None:
        """Take note of a copy of any pipe; one that was offered before is passed over. Never waits."""
        with self._changed:
            if self._after is None or copy.offset <= self._after:
                return
            self._after = copy.offset
            if copy.peek.meta.pipe == self._pipe:
                self._missed += self._waiting.add(copy)
                self._changed.notify()

    def take(self, wait_s: float, *, copies: bool = True) -> Taken:
        """Return what has come, after waiting so long for something. What it counts, it counts once.

        Without `copies` they stay in the queue, and it does not wait.
        """
        with self._changed:
            if copies:
                self._changed.wait_for(lambda: len(self._waiting), wait_s)
            taken = Taken(self._waiting.take() if copies else [], self._after, self._missed, self._gap)
            self._missed, self._gap = 0, False
            return taken


class Feed:
    """What has been read of one topic, and who looks on. Its owner sees to it that one thread at a time is in here."""

    def __init__(self) -> None:
        self.viewers: list[Viewer] = []
        self._kept = Newest(KEPT, KEPT_BYTES)
        self._first = 0  # all copies from this offset on are kept
        self._next: int | None = None  # the offset to be read next; None before reading has begun

    def begin(self, first: int, end: int) -> None:
        """Reading begins at `first`, maybe for the second time; `end` is where the topic ends at this moment."""
        self._kept.take()
        self._first = self._next = first
        for viewer in self.viewers:
            viewer.place(first, end)

    def join(self, viewer: Viewer) -> None:
        """Offer what is kept behind the viewer's place, and from now on what comes."""
        self.viewers.append(viewer)
        if self._next is not None:
            viewer.place(self._first, self._next)
            for copy in self._kept:
                viewer.offer(copy)

    def add(self, copy: Copy) -> None:
        """The next copy of the topic; one from before the beginning, still on its way, is passed over."""
        if self._next is None or copy.offset < self._next:
            return
        self._next = copy.offset + 1
        if self._kept.add(copy):
            self._first = next(iter(self._kept)).offset
        for viewer in self.viewers:
            viewer.offer(copy)
