"""Gate of one pipe in one partition of the ingest topic: messages pass, are kept for a moment, or are held. Pure.

A pipe's keys are divided into a hundred lots. Messages that are not admitted are held, and return later on the same
partition. Until a lot's last held message has returned, the lot is shut: so no message of a key overtakes an earlier
held one, no matter how the admitted share changes in between.

The shut lots are noted with each committed offset. A new owner of the partition reads from the note only that a message
of the lot is held: it holds the lot's next message as well, and waits for the return of that one.

No message is held before the messages of its lot that passed are settled: if the owner were killed in between, the
message would stay held, and the next owner might hold an earlier one behind it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from dataplane.names import ALL_KEYS_PERCENT

UNKNOWN: Final = 1 << 64  # above every position: an earlier owner has held a message
T = TypeVar("T")


class GatePassage(NamedTuple, Generic[T]):
    """Messages to run now and messages to hold, each in order."""

    run: list[T]
    hold: list[T]


class WaitingMessage(NamedTuple, Generic[T]):
    """Message kept in memory, unsettled, so that a new owner would read it again."""

    lot: int
    position: int
    offset: int
    message: T


class OrderGate(Generic[T]):
    """Gate that takes all messages of the pipe in the order of the partition, with rising positions and offsets.

    near: returning messages are recent, so kept messages wait for a moment only
    """

    def __init__(
        self,
        shut: Iterable[int],
        is_unsettled: Callable[[int], bool],
        has_earlier_unsettled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create a gate.

        shut:         lots of which an earlier owner held messages that may not have returned
        is_unsettled:         True if the message at an offset is not settled yet
        has_earlier_unsettled: True if a message from before this gate's first one is not settled yet
        """
        self.near = False
        self.kept: list[WaitingMessage[T]] = []
        self._is_unsettled = is_unsettled
        self._has_earlier_unsettled = has_earlier_unsettled
        self._last: dict[int, int] = dict.fromkeys(shut, UNKNOWN)  # by lot: position of the last held message
        self._opened: dict[int, int] = {}  # by lot: offset at which that message returned
        self._ran: dict[int, list[int]] = defaultdict(list)  # by lot: offsets that passed and may not be settled

    def arrives(self, lot: int, position: int, offset: int, message: T, *, admitted: int, room: bool) -> GatePassage[T]:
        """Take a message that has not been held, read for the first time or again."""
        last, is_admitted = self._last.get(lot), lot < admitted
        if is_admitted and last is None and all(kept.lot != lot for kept in self.kept):
            self._ran[lot].append(offset)
            return GatePassage([message], [])
        self.kept.append(WaitingMessage(lot, position, offset, message))
        waits_for_a_moment = is_admitted and room and self.near and last is not None and last != UNKNOWN
        return GatePassage([], [] if waits_for_a_moment else self.give_up([lot]))

    def returns(self, lot: int, position: int, offset: int, message: T) -> GatePassage[T]:
        """Take a held message that returns at `offset`. It always runs: it was admitted when it was released."""
        if position < self._last.get(lot, UNKNOWN):
            return GatePassage([message], [])
        del self._last[lot]
        self._opened[lot] = offset
        follow = self._take([lot])
        self._ran[lot] += [kept.offset for kept in follow]
        return GatePassage([message, *(kept.message for kept in follow)], [])

    def give_up(self, lots: Iterable[int] = range(ALL_KEYS_PERCENT)) -> list[T]:
        """Return the kept messages of these lots, to be held; each lot is shut until its last held message returns.

        Messages stay kept while an earlier message of their lot is not settled.
        """
        held = self._take([lot for lot in lots if not self._has_unsettled(lot)])
        for kept in held:
            last = self._last.get(kept.lot, UNKNOWN)
            self._last[kept.lot] = kept.position if last == UNKNOWN else max(last, kept.position)
        return [kept.message for kept in held]

    def not_run(self, offsets: Collection[int]) -> None:
        """Forget that the messages at these offsets passed; the caller passes them to the gate again."""
        for lot, ran in self._ran.items():
            self._ran[lot] = [offset for offset in ran if offset not in offsets]

    def overdue(self) -> list[T]:
        """Return the kept messages that only waited for earlier ones to settle, and are to be held now."""
        lots = {kept.lot for kept in self.kept} - self._last.keys()
        return self.give_up(lots) if lots else []

    def abandon(self) -> None:
        """Drop the kept messages of a revoked partition; its next owner reads them. The shut lots are still noted."""
        self.kept = []

    def shut_at(self, prefix: int) -> int:
        """Return the set of lots, as bits, that are shut for a reader that continues at offset `prefix`."""
        self._opened = {lot: offset for lot, offset in self._opened.items() if offset >= prefix}
        return sum(1 << lot for lot in {*self._last, *self._opened})

    @property
    def is_idle(self) -> bool:
        """True if the gate has no state that must be kept."""
        return not (self._last or self._opened or self.kept or any(map(self._has_unsettled, list(self._ran))))

    def _take(self, lots: Iterable[int]) -> list[WaitingMessage[T]]:
        wanted = set(lots)
        taken = [kept for kept in self.kept if kept.lot in wanted]
        self.kept = [kept for kept in self.kept if kept.lot not in wanted]
        return taken

    def _has_unsettled(self, lot: int) -> bool:
        left = [offset for offset in self._ran.pop(lot, ()) if self._is_unsettled(offset)]
        if left:
            self._ran[lot] = left
        return bool(left) or self._has_earlier_unsettled()


def lots_in(bits: int) -> list[int]:
    """Return the lots whose bits are set."""
    return [lot for lot in range(ALL_KEYS_PERCENT) if bits >> lot & 1]
