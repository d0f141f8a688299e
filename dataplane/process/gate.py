"""The gate of one pipe in one partition of the ingest topic: what may pass, is kept a moment, or is held. Pure.

A pipe's keys fall into a hundred lots. What is not admitted is held, and comes back later on the same partition. From
then on a lot is shut until its last held message has come back: so nothing of a key overtakes what was held before it,
whatever share was asked for in between, and whoever asked.

What of a lot is shut is noted beside each committed offset. A new owner of the partition reads that, and knows no more
than that something is held: it holds the lot's next message as well, and waits for that one.

Nothing is held before what passed of its lot is settled: an owner killed in between would leave it held, and the next
one might hold the other behind it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from dataplane.names import WHOLE

UNKNOWN: Final = 1 << 64  # beyond every position: something is held, by an earlier owner
T = TypeVar("T")


class Passage(NamedTuple, Generic[T]):
    """What is to be run now, in this order; and what is to be held, in this order."""

    run: list[T]
    hold: list[T]


class Kept(NamedTuple, Generic[T]):
    """A message that waits in memory; unsettled, so a new owner would read it again."""

    lot: int
    position: int
    offset: int
    message: T


class Gate(Generic[T]):
    """Shown every message of the pipe in the order of the partition. Positions and offsets grow with each new one.

    near: what comes back is recent, so what is kept meanwhile waits for a moment only
    """

    def __init__(
        self, shut: Iterable[int], owes: Callable[[int], bool], owes_earlier: Callable[[], bool] = lambda: False
    ) -> None:
        """`shut`: lots of which an earlier owner has held something that may not have come back.

        `owes`: whether the message at an offset is not settled yet. `owes_earlier`: whether one is not that passed
        before this gate was shown anything.
        """
        self.near = False
        self.kept: list[Kept[T]] = []
        self._owes = owes
        self._owes_earlier = owes_earlier
        self._last: dict[int, int] = dict.fromkeys(shut, UNKNOWN)  # by lot, the position of the last that was held
        self._opened: dict[int, int] = {}  # by lot, the offset at which that came back
        self._ran: dict[int, list[int]] = defaultdict(list)  # by lot, what has passed and may not be settled

    def arrives(self, lot: int, position: int, offset: int, message: T, *, admitted: int, room: bool) -> Passage[T]:
        """One from a sender, read for the first time or again."""
        last, inside = self._last.get(lot), lot < admitted
        if inside and last is None and all(kept.lot != lot for kept in self.kept):
            self._ran[lot].append(offset)
            return Passage([message], [])
        self.kept.append(Kept(lot, position, offset, message))
        waits_for_a_moment = inside and room and self.near and last is not None and last != UNKNOWN
        return Passage([], [] if waits_for_a_moment else self.give_up([lot]))

    def returns(self, lot: int, position: int, offset: int, message: T) -> Passage[T]:
        """One that was held, at `offset`. It runs in any case: it was admitted when it was released."""
        if position < self._last.get(lot, UNKNOWN):
            return Passage([message], [])
        del self._last[lot]
        self._opened[lot] = offset
        follow = self._take([lot])
        self._ran[lot] += [kept.offset for kept in follow]
        return Passage([message, *(kept.message for kept in follow)], [])

    def give_up(self, lots: Iterable[int] = range(WHOLE)) -> list[T]:
        """What is kept of these lots, to be held; each of them waits for its last one now.

        It stays as long as something that passed before it is not settled.
        """
        held = self._take([lot for lot in lots if not self._has_unsettled(lot)])
        for kept in held:
            last = self._last.get(kept.lot, UNKNOWN)
            self._last[kept.lot] = kept.position if last == UNKNOWN else max(last, kept.position)
        return [kept.message for kept in held]

    def not_run(self, offsets: Collection[int]) -> None:
        """Take back that the messages at these offsets have passed: they are shown once more."""
        for lot, ran in self._ran.items():
            self._ran[lot] = [offset for offset in ran if offset not in offsets]

    def overdue(self) -> list[T]:
        """What is to be held as soon as what passed before it is settled."""
        lots = {kept.lot for kept in self.kept} - self._last.keys()
        return self.give_up(lots) if lots else []

    def abandon(self) -> None:
        """The partition goes: its next owner reads what is kept. What is shut is still to be noted."""
        self.kept = []

    def shut_at(self, prefix: int) -> int:
        """The lots, as bits, that are shut for whoever reads on from this offset."""
        self._opened = {lot: offset for lot, offset in self._opened.items() if offset >= prefix}
        return sum(1 << lot for lot in {*self._last, *self._opened})

    @property
    def is_idle(self) -> bool:
        """Whether it knows nothing that another gate would have to know."""
        return not (self._last or self._opened or self.kept or any(map(self._has_unsettled, list(self._ran))))

    def _take(self, lots: Iterable[int]) -> list[Kept[T]]:
        wanted = set(lots)
        taken = [kept for kept in self.kept if kept.lot in wanted]
        self.kept = [kept for kept in self.kept if kept.lot not in wanted]
        return taken

    def _has_unsettled(self, lot: int) -> bool:
        left = [offset for offset in self._ran.pop(lot, ()) if self._owes(offset)]
        if left:
            self._ran[lot] = left
        return bool(left) or self._owes_earlier()


def lots_in(bits: int) -> list[int]:
    """The lots that these bits say."""
    return [lot for lot in range(WHOLE) if bits >> lot & 1]
