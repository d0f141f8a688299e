"""Sequence of a key: the number or TimeUuid of each event, compared with the earlier ones. Pure.

The source's key decides the partition of an event, so positions give the order in which the events of a key arrived.
Numbers count by one, so a missing one shows; TimeUuids (UUIDs of version 1 or 7) only order events by their clock.
"""

from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from dataplane.ledger.facts import GAP, OUT_OF_ORDER, REPEATED
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.sequence_breaks import BreakKind, SequenceBreak
from dataplane.ledger.units import place_of
from dataplane.schemas.standard import time_uuid_clock_us, uuid_bytes, uuid_problem
from dataplane.stages.paths import Segments, get

MOST_GAPS: Final = 16  # of a key, that wait for their numbers
MOST_RANGES: Final = 16  # of missing numbers in one gap
_LONG: Final = 1 << 63
_LONG_DIGITS: Final = 19


class SequenceNumber(NamedTuple):
    """Number of an event, or the clock of its TimeUuid in microseconds since 1970."""

    is_clock: bool
    number: int


class SequenceTap(Struct, array_like=True, frozen=True):
    """One event of a sequence, as a process lane passes it to the query; the fields are those of SequenceBreak.

    revision: stamped at ingest
    """

    pipe: str
    revision: int
    source: str
    key: str
    bucket: int
    position: int
    at_us: int
    is_clock: bool
    number: int


class OpenGap(Struct, array_like=True):
    """Gap whose numbers have not all arrived.

    after:  the event that came before its turn
    first:  the first missing number at that time; the last one is the number before that event's
    ranges: first and last number of each run that is still missing
    """

    after: SequenceTap
    first: int
    ranges: list[tuple[int, int]]

    @property
    def missing(self) -> int:
        """Return how many numbers are missing."""
        return sum(last - first + 1 for first, last in self.ranges)


class SequenceState(Struct, array_like=True):
    """Memory of one key.

    revision: of the newest event
    last:     the highest number so far
    position: of the newest event
    floor:    below it, it is not known which numbers have arrived: before the first event, or in a forgotten gap
    gaps:     the newest MOST_GAPS
    """

    is_clock: bool
    revision: int
    last: int
    position: int
    floor: int
    gaps: list[OpenGap]


class SequenceJudgement(NamedTuple):
    """Result for one event.

    state:  memory of the key from now on
    kind:   how the event breaks the sequence; None if it does not
    breaks: what to report: the event, and a gap that it closes or makes smaller
    """

    state: SequenceState
    kind: BreakKind | None
    breaks: list[SequenceBreak]


_taps = msgspec.msgpack.Decoder(SequenceTap)
_states = msgspec.msgpack.Decoder(SequenceState)
_breaks = msgspec.msgpack.Decoder(SequenceBreak)
encode = msgspec.msgpack.Encoder().encode


def decode_sequence_tap(value: bytes) -> SequenceTap:
    """Return the tap in a record's value. Raises msgspec.DecodeError for any other bytes."""
    return _taps.decode(value)


def decode_sequence_state(value: bytes) -> SequenceState:
    """Return the state in a value of the state store."""
    return _states.decode(value)


def decode_sequence_break(value: bytes) -> SequenceBreak:
    """Return a break that the query's workers encoded."""
    return _breaks.decode(value)


def sequence_number(value: Any) -> SequenceNumber | None:
    """Return the number in a JSON value: an integer of 64 bits, as number or text, or a TimeUuid; None for others."""
    if type(value) is int:
        return SequenceNumber(is_clock=False, number=value) if -_LONG <= value < _LONG else None
    if type(value) is not str:
        return None
    digits = value.removeprefix("-")
    if len(digits) <= _LONG_DIGITS and digits.isascii() and digits.isdecimal():
        return sequence_number(int(value))
    if uuid_problem(value):
        return None
    clock_us = time_uuid_clock_us(uuid_bytes(value))
    return None if clock_us is None else SequenceNumber(is_clock=True, number=clock_us)


def sequence_tap(meta: MessageMeta, key: bytes, body: Any, path: Segments) -> SequenceTap | None:
    """Return the tap of an event; None if it has no number at the path.

    key: key of its record, which begins with the pipe and a zero byte
    """
    found = sequence_number(get(body, path))
    if found is None:
        return None
    name = key.partition(b"\0")[2].decode(errors="replace")
    return SequenceTap(
        meta.pipe, meta.revision, meta.source, name, meta.bucket, meta.position, meta.ingest_time_us, *found
    )


def sequence_key(tap: SequenceTap, path: Segments) -> bytes:
    """Return a 16-byte digest of (pipe, source, path, kind of number, key): taps with the same one share a sequence."""
    kind = b"clock" if tap.is_clock else b"number"
    parts = (tap.pipe.encode(), tap.source.encode(), ".".join(path).encode(), kind, tap.key.encode())
    return blake2b(b"\0".join(parts), digest_size=16).digest()


def judge_sequence(state: SequenceState | None, tap: SequenceTap) -> SequenceJudgement:
    """Compare an event with the earlier ones of its key.

    An event at or before the newest position was read again, or was held up in Penstock: it breaks nothing, and fills
    a gap that it is part of. The first event of another revision opens no gap: between the two, revisions without the
    sequence may have processed events of the key.
    """
    if state is None:
        first = SequenceState(tap.is_clock, tap.revision, tap.number, tap.position, tap.number, [])
        return SequenceJudgement(first, None, [])
    gap = next((one for one in state.gaps if any(low <= tap.number <= high for low, high in one.ranges)), None)
    if not _is_newer(tap.position, state.position):
        return SequenceJudgement(state, None, [] if gap is None else [_filled(state, gap, tap.number)])
    state.position, previous = tap.position, state.last
    state.last = max(previous, tap.number)
    if state.revision != tap.revision:
        state.revision = tap.revision
        if tap.number > previous:
            state.floor = tap.number
            return SequenceJudgement(state, None, [])
    kind = _kind_of(tap, previous, may_be_late=gap is not None or tap.number < state.floor)
    breaks: list[SequenceBreak] = []
    if kind is not None:
        breaks.append(_opened(state, tap, previous) if kind == GAP else _break(kind, tap, previous))
    if gap is not None:
        breaks.append(_filled(state, gap, tap.number))
    return SequenceJudgement(state, kind, breaks)


def _kind_of(tap: SequenceTap, previous: int, *, may_be_late: bool) -> BreakKind | None:
    """Return how a newer event breaks the sequence. `may_be_late`: it is not known that its number has arrived."""
    if tap.number > previous:
        return None if tap.is_clock or tap.number == previous + 1 else GAP
    if tap.is_clock:
        return OUT_OF_ORDER if tap.number < previous else None
    return OUT_OF_ORDER if may_be_late else REPEATED


def _is_newer(position: int, newest: int) -> bool:
    """Return True if an event was stored after the newest one. Positions in two partitions have no order."""
    one, other = place_of(position), place_of(newest)
    if (one.generation, one.partition) == (other.generation, other.partition):
        return position > newest
    return one.generation >= other.generation


def _opened(state: SequenceState, tap: SequenceTap, last: int) -> SequenceBreak:
    gap = OpenGap(tap, last + 1, [(last + 1, tap.number - 1)])
    state.gaps.append(gap)
    if len(state.gaps) > MOST_GAPS:
        forgotten = state.gaps.pop(0)
        state.floor = max(state.floor, forgotten.after.number)
    return _gap(gap)


def _filled(state: SequenceState, gap: OpenGap, number: int) -> SequenceBreak:
    """Take a number out of a gap; return the gap's report. A gap with too many ranges is forgotten."""
    rest: list[tuple[int, int]] = []
    for first, last in gap.ranges:
        if not first <= number <= last:
            rest.append((first, last))
            continue
        rest += [(low, high) for low, high in ((first, number - 1), (number + 1, last)) if low <= high]
    gap.ranges = rest
    if not rest or len(rest) > MOST_RANGES:
        state.gaps.remove(gap)
        if rest:
            state.floor = max(state.floor, gap.after.number)
    return _gap(gap)


def _gap(gap: OpenGap) -> SequenceBreak:
    return _break(GAP, gap.after, gap.first - 1, gap.missing)


def _break(kind: BreakKind, tap: SequenceTap, previous: int, missing: int = 0) -> SequenceBreak:
    own = (tap.bucket, tap.position, tap.at_us, tap.is_clock, tap.number)
    return SequenceBreak(tap.pipe, tap.source, tap.key, kind, *own, previous, min(missing, _LONG - 1))
