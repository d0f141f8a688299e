"""Places where the sequence of a key is broken, as the sequence query reports them."""

from typing import Literal

from msgspec import Struct

BreakKind = Literal["gap", "out-of-order", "repeated"]  # details of the facts of the same position


class SequenceBreak(Struct, array_like=True, frozen=True):
    """One event that does not follow the earlier ones of its key. A later report of a gap replaces the earlier one.

    revision: stamped at ingest
    key:      value of the source's key, at most 256 bytes
    bucket:   minutes since the epoch, as stamped at ingest
    position: of the event
    at_us:    its ingest time, in microseconds since 1970
    is_clock: True if `number` and `previous` are clocks of TimeUuids, in microseconds since 1970
    number:   the number of the event
    previous: the highest earlier number of its key
    ranges:   of a gap, first and last number of each run between `previous` and `number` that has not arrived so far
    is_tracked: False for a gap with too many runs: later numbers no longer close it
    """

    pipe: str
    revision: int
    source: str
    key: str
    kind: BreakKind
    bucket: int
    position: int
    at_us: int
    is_clock: bool
    number: int
    previous: int
    ranges: list[tuple[int, int]] = []
    is_tracked: bool = True

    @property
    def missing(self) -> int:
        """Number of a gap's numbers that have not arrived so far."""
        return sum(last - first + 1 for first, last in self.ranges)

    @property
    def is_update(self) -> bool:
        """True for a later report of a gap: some of its numbers have arrived since it was found."""
        return self.kind == "gap" and self.missing < self.number - self.previous - 1
