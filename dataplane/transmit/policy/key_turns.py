"""Keys of one ordered destination in one lane: one message of a key is sent at a time, later ones wait. Pure."""

import heapq
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
        self._away: dict[bytes, _AwayUnits] = {}
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
        self._away.setdefault(key, _AwayUnits()).leave((send.meta.position, send.meta.child))

    def must_follow(self, send: M, key: bytes) -> bool:
        """Return True if the message must follow earlier ones of its key through the retrier, not to overtake them.

        A message that is back from there is noted, and returns False unless an earlier one has left again meanwhile.
        """
        away = self._away.get(key)
        if away is None:
            return False
        must_follow = away.must_follow((send.meta.position, send.meta.child))
        if not away:
            del self._away[key]
        return must_follow


class _AwayUnits:
    """Units of one key that are in the retrier. They come back in the order in which they left, or end there."""

    def __init__(self) -> None:
        self._left: dict[Unit, int] = {}  # number of its departure by unit, in the order of departure
        self._lowest: list[tuple[Unit, int]] = []  # heap of the same, with units that have come back
        self._count = 0

    def __len__(self) -> int:
        return len(self._left)

    def leave(self, unit: Unit) -> None:
        """Note that a unit leaves."""
        self._count += 1
        self._left.pop(unit, None)
        self._left[unit] = self._count
        heapq.heappush(self._lowest, (unit, self._count))
        if len(self._lowest) > 2 * len(self._left) + 100:
            self._lowest = list(self._left.items())
            heapq.heapify(self._lowest)

    def must_follow(self, unit: Unit) -> bool:
        """Note that a unit came; return True if it must leave, because an earlier one is away."""
        number = self._left.pop(unit, None)
        if number is None:
            return True
        while self._left and self._left[first := next(iter(self._left))] < number:
            del self._left[first]  # it ended in the retrier, or another lane got it
        while self._lowest and self._left.get(self._lowest[0][0]) != self._lowest[0][1]:
            heapq.heappop(self._lowest)
        return bool(self._lowest) and self._lowest[0][0] < unit
