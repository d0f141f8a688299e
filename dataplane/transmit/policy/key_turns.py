"""Keys of one ordered destination in one lane: one message of a key is sent at a time, later ones wait. Pure."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from dataplane.ledger.meta import MessageMeta

Unit = tuple[int, int]  # position and child


class OrderedMessage(Protocol):
    """Message of an ordered destination, as far as its turn is concerned."""

    meta: MessageMeta
    has_turn: bool


M = TypeVar("M", bound=OrderedMessage)


class KeyTurns(Generic[M]):
    """Turns per key. A message has its turn until it ends or leaves the lane; then the next one of its key has it."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[M]] = {}  # a key is here while one of its messages has its turn
        self._away: dict[bytes, set[Unit]] = {}
        self.count = 0

    def enter(self, send: M, key: bytes) -> bool:
        """Give a message its turn and return True, or let it wait behind its key and return False."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
            send.has_turn = True
            return True
        waiting.append(send)
        self.count += 1
        return False

    def leave(self, send: M, key: bytes) -> M | None:
        """End a message's turn; return the message whose turn it is now, or None."""
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
        """Return True if a message of this key has its turn."""
        return key in self._waiting

    def __iter__(self) -> Iterator[M]:
        """Iterate over the waiting messages, those of each key in order."""
        return (send for waiting in self._waiting.values() for send in waiting)

    def take_out(self, wanted: Callable[[M], bool]) -> list[M]:
        """Remove and return the waiting messages that `wanted` selects."""
        taken: list[M] = []
        for key, waiting in self._waiting.items():
            found = [send for send in waiting if wanted(send)]
            if found:
                self._waiting[key] = deque(send for send in waiting if not wanted(send))
                taken += found
        self.count -= len(taken)
        return taken

    # -- messages that take a round through the retrier, because too many wait in this lane ----------------------------

    def go_round(self, send: M, key: bytes) -> None:
        """Send a message through the retrier; all later ones of its key must follow until it is back."""
        self._away.setdefault(key, set()).add((send.meta.position, send.meta.child))

    def must_follow(self, send: M, key: bytes) -> bool:
        """Return True if the message must follow earlier ones of its key through the retrier, not to overtake them.

        A message that is back from there is noted, and returns False.
        """
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
