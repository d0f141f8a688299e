"""The keys of one ordered destination in one lane: one message of a key at a time, the others wait behind it. Pure."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.transmit.sends import Send

Unit = tuple[int, int]  # position and child


class Keys:
    """Whose turn it is. A message has its turn until it ends or goes aside; then the next one of its key has it."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[Send]] = {}  # a key is here while one of its messages has its turn
        self._away: dict[bytes, set[Unit]] = {}
        self.count = 0

    def enter(self, send: "Send", key: bytes) -> bool:
        """Whether it is this message's turn at once; else it waits."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
            send.has_turn = True
            return True
        waiting.append(send)
        self.count += 1
        return False

    def leave(self, send: "Send", key: bytes) -> "Send | None":
        """Its turn is over: whose it is now."""
        if not send.has_turn:
            return None
        send.has_turn = False
        waiting = self._waiting[key]
        if not waiting:
            del self._waiting[key]
            return None
        self.count -= 1
        following = waiting.popleft()
        following.has_turn = True
        return following

    def is_busy(self, key: bytes) -> bool:
        """Whether a message of this key has its turn."""
        return key in self._waiting

    def __iter__(self) -> "Iterator[Send]":
        """Those that wait, each key's in its order."""
        return (send for waiting in self._waiting.values() for send in waiting)

    def take_out(self, wanted: "Callable[[Send], bool]") -> "list[Send]":
        """Those among the waiting that are wanted wait no more."""
        taken: list[Send] = []
        for key, waiting in self._waiting.items():
            found = [send for send in waiting if wanted(send)]
            if found:
                self._waiting[key] = deque(send for send in waiting if not wanted(send))
                taken += found
        self.count -= len(taken)
        return taken

    # -- messages that go round through the retrier, for want of room here ---------------------------------------------

    def go_round(self, send: "Send", key: bytes) -> None:
        """It goes round, and all that come after it have to, until it is back."""
        self._away.setdefault(key, set()).add((send.meta.position, send.meta.child))

    def must_follow(self, send: "Send", key: bytes) -> bool:
        """Whether earlier ones of its key are away, so that it must not overtake them. One that is back is noted."""
        away = self._away.get(key)
        if away is None:
            return False
        unit = (send.meta.position, send.meta.child)
        if unit not in away:
            return True
        away.discard(unit)
        if not away:
            del self._away[key]
        return False
