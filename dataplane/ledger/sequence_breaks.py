"""Places where the sequence of a key is broken, as the sequence query reports them."""

from typing import Literal

from msgspec import Struct

BreakKind = Literal["gap", "out-of-order", "repeated"]  # details of the facts of the same position


class SequenceBreak(Struct, array_like=True, frozen=True):
    """One event that does not follow the earlier ones of its key. A later report of a gap replaces the earlier one.

    key:      value of the source's key, at most 256 bytes
    bucket:   minutes since the epoch, as stamped at ingest
    position: of the event
    at_us:    its ingest time, in microseconds since 1970
    is_clock: True if `number` and `previous` are clocks of TimeUuids, in microseconds since 1970
    number:   the number of the event
    previous: the highest earlier number of its key
    missing:  of a gap, how many numbers between `previous` and `number` have not arrived so far
    """

    pipe: str
    source: str
    key: str
    kind: BreakKind
    bucket: int
    position: int
    at_us: int
    is_clock: bool
    number: int
    previous: int
    missing: int = 0
