"""An errand: bring these offsets of these places to retry-out, in order; before the steps, to the ingest topic.

Pure: what is read and what is stored comes in as calls.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from pyroaring import BitMap64

from dataplane.ledger.deadletter import alive_headers
from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.names import ENTRANCE, transmit_node
from dataplane.retrier.pace import Name
from dataplane.retrier.parcels import plain
from dataplane.runtime.window import AckWindow
from dataplane.tables.moves import Place

What = Literal["release", "redrive", "ahead"]
FAR: Final = 10_000  # offsets; a gap as wide is jumped over instead of read


class Errand:
    """Where an errand stands. Records are shown to `wants` in their order; what it wants is stored, or skipped."""

    def __init__(
        self,
        name: Name,
        what: What,
        wanted: Mapping[Place, BitMap64],
        reached: Mapping[Place, int],
        *,
        through: bool = False,
    ) -> None:
        self.name = name
        self.what = what
        self.through = through
        self.total = sum(len(offsets) for offsets in wanted.values())
        self._wanted = dict(wanted)
        self._ends = {place: offsets.max() + 1 for place, offsets in wanted.items() if offsets}
        self._left = {place: _from(offsets, reached.get(place, 0)) for place, offsets in sorted(wanted.items())}
        self._skipped = {place: BitMap64() for place in wanted}  # gone, or not what the errand is for
        self._windows = {place: AckWindow(reached.get(place, 0)) for place in wanted}

    def next_place(self) -> tuple[Place, int] | None:
        """Where to read on: a place and its first offset still wanted; None when everything has been read."""
        for place, offsets in self._left.items():
            if offsets:
                return place, offsets.min()
        return None

    def wants(self, place: Place, offset: int) -> bool:
        """Whether the record at this offset is wanted. Wanted ones before it that never came are gone."""
        left = self._left[place]
        while left and left.min() < offset:
            gone = left.min()
            left.remove(gone)
            self._skipped[place].add(gone)
        if offset not in left:
            return False
        left.remove(offset)
        self._windows[place].take(offset)
        return True

    def gone_below(self, place: Place, offset: int) -> None:
        """Skip what is wanted below an offset: it is there no more."""
        left = self._left[place]
        self._left[place] = _from(left, offset)
        self._skipped[place] |= left - self._left[place]

    def ended(self, place: Place) -> None:
        """The place has nothing more: what is still wanted of it is gone."""
        self._skipped[place] |= self._left[place]
        self._left[place] = BitMap64()

    def stored(self, place: Place, offset: int) -> None:
        """The record that was wanted is on retry-out."""
        self._windows[place].settle(offset)

    def useless(self, place: Place, offset: int) -> None:
        """The record was wanted and is not for this errand: another destination's, or unreadable."""
        self._skipped[place].add(offset)
        self._windows[place].settle(offset)

    @property
    def in_flight(self) -> int:
        """Records wanted and not stored yet."""
        return sum(window.unsettled for window in self._windows.values())

    @property
    def is_over(self) -> bool:
        """Everything has been read, and stored or given up."""
        return not any(self._left.values()) and not self.in_flight

    def reached(self) -> dict[Place, int]:
        """For each place the offset below which everything asked for is done."""
        return {place: self._reached(place, window) for place, window in self._windows.items()}

    def done_below(self, reached: Mapping[Place, int]) -> int:
        """How many of the offsets asked for lie below what was reached."""
        return _below(self._wanted, reached)

    def skipped_below(self, reached: Mapping[Place, int]) -> int:
        """How many below that were skipped since the errand began here; what lies above is read again after a kill."""
        return _below(self._skipped, reached)

    def _reached(self, place: Place, window: AckWindow) -> int:
        if window.unsettled or self._left[place]:
            return window.prefix
        return max(window.prefix, self._ends.get(place, 0))


def _below(offsets: Mapping[Place, BitMap64], reached: Mapping[Place, int]) -> int:
    return sum(found.rank(reached[place] - 1) for place, found in offsets.items() if reached.get(place))


def _from(offsets: BitMap64, first: int) -> BitMap64:
    left = offsets.copy()
    left.remove_range(0, first)
    return left


def is_for(errand: Errand, meta: Meta, node: str) -> bool:
    """Whether a record is what the errand asks for. Only what died at its destination can go there once more."""
    if (meta.pipe, meta.destination) != errand.name:
        return False
    return errand.what != "redrive" or node == transmit_node(meta.destination)


def brought_back(
    what: What, meta: Meta, headers: Headers, *, through: bool = False, as_of: int = 0
) -> tuple[Meta, Headers]:
    """Our header and all headers of a record as it goes to retry-out: same id, its next round.

    `through`: it is to go out although its destination is held.
    `as_of`: the version of the destination's control record under which it is brought back.

    The round is counted from the record's own, so doing it twice makes the same unit twice, which transmit has settled.
    Whoever was held or dead starts a new span; what comes ahead of its time goes on with its own.
    """
    if what == "ahead":
        meta = msgspec.structs.replace(meta, paced=False, as_of=as_of)
    else:
        fresh = {"not_before_us": 0, "first_us": 0, "tried": 0, "asked_us": 0, "paced": False}
        meta = msgspec.structs.replace(meta, **fresh, through=through, as_of=as_of)
    if what == "redrive":
        meta = msgspec.structs.replace(meta, attempt=meta.attempt + 1, life=meta.attempt + 1)
    return meta, [(META_HEADER, encode_meta(meta)), *alive_headers(plain(headers)[1:])]


def fact_of(what: What, meta: Meta) -> FactKey:
    """What is told of a unit that was brought back."""
    fact = Fact.REDRIVEN if what == "redrive" else Fact.RELEASED
    node = transmit_node(meta.destination) if meta.destination else ENTRANCE
    return FactKey(node, fact, str(meta.attempt), meta.child)
