"""Sequence of a key: the number or TimeUuid of each event, compared with the earlier ones. Pure.

The source's key decides the partition of an event, so positions give the order in which the events of a key arrived.
Numbers increase by one with each event, so a missing one shows; the clocks of TimeUuids (UUIDs of version 1 or 7) only
order events.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from dataplane.ledger.facts import GAP, OUT_OF_ORDER, REPEATED
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.sequence_breaks import BreakKind, SequenceBreak
from dataplane.ledger.units import place_of
from dataplane.schemas.standard import time_uuid_clock_us, time_uuid_problem, uuid_bytes, uuid_problem
from dataplane.spec import KafkaSource, SourceSpec
from dataplane.stages.paths import Segments, compile_path, get

MOST_GAPS: Final = 16  # of a key, that wait for their numbers
MOST_RANGES: Final = 64  # of missing numbers in one gap
_LONG: Final = 1 << 63
_REPLACED: Final = "\ufffd"
_LONG_DIGITS: Final = 19


class SequenceNumber(NamedTuple):
    """Number of an event, or the clock of its TimeUuid in microseconds since 1970."""

    is_clock: bool
    number: int


class CompiledSequence(NamedTuple):
    """Sequence of a source. `origin`: where numbers and keys come from; sequences of another origin are separate."""

    path: Segments
    origin: bytes


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

    after:  the event whose arrival revealed the gap
    first:  the first missing number at that time; the last one is the number before that event's
    ranges: first and last number of each run that is still missing
    """

    after: SequenceTap
    first: int
    ranges: list[tuple[int, int]]


class SequenceState(Struct, array_like=True):
    """State of one key's sequence.

    revision: of the newest event
    last:     the highest number so far
    position: of the newest event
    low_watermark: numbers below it may or may not have arrived: before the first event, or in a forgotten gap
    gaps:     the newest MOST_GAPS
    """

    is_clock: bool
    revision: int
    last: int
    position: int
    low_watermark: int
    gaps: list[OpenGap]


class SequenceComparison(NamedTuple):
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


def compile_sequence(source: SourceSpec) -> CompiledSequence | None:
    """Return the sequence of a source; None if it has none."""
    if not source.sequence:
        return None
    topic = (source.cluster, source.topic) if isinstance(source, KafkaSource) else ("", "")
    origin = "\0".join((source.sequence, source.key or "", *topic))
    return CompiledSequence(compile_path(source.sequence), origin.encode())


def sequence_number(value: Any, now_us: int) -> SequenceNumber | None:
    """Return the number in a JSON value: an integer of 64 bits, as number or text, or a TimeUuid; None for others.

    now_us: time of ingest; a TimeUuid whose clock is implausible then is none
    """
    if type(value) is int:
        return SequenceNumber(is_clock=False, number=value) if -_LONG <= value < _LONG else None
    if type(value) is not str:
        return None
    digits = value.removeprefix("-")
    if len(digits) <= _LONG_DIGITS and digits.isascii() and digits.isdecimal():
        return sequence_number(int(value), now_us)
    if uuid_problem(value):
        return None
    binary = uuid_bytes(value)
    clock_us = None if time_uuid_problem(binary, now_us) else time_uuid_clock_us(binary)
    return None if clock_us is None else SequenceNumber(is_clock=True, number=clock_us)


def sequence_tap(meta: MessageMeta, key: bytes, body: Any, path: Segments) -> SequenceTap | None:
    """Return the tap of an event; None if it has no number at the path, or if its key is not UTF-8.

    key: key of its record, which begins with the pipe and a zero byte
    """
    found = sequence_number(get(body, path), meta.ingest_time_us)
    name = key.partition(b"\0")[2].decode(errors="replace")
    if found is None or _REPLACED in name:  # different keys that are not UTF-8 may look equal
        return None
    return SequenceTap(
        meta.pipe, meta.revision, meta.source, name, meta.bucket, meta.position, meta.ingest_time_us, *found
    )


def sequence_key(tap: SequenceTap, origin: bytes) -> bytes:
    """Return a 16-byte digest of (pipe, source, origin, kind of number, key): taps with the same share a sequence."""
    kind = b"clock" if tap.is_clock else b"number"
    parts = (tap.pipe.encode(), tap.source.encode(), origin, kind, tap.key.encode())
    return blake2b(b"\0".join(parts), digest_size=16).digest()


def compare_event(state: SequenceState | None, tap: SequenceTap) -> SequenceComparison:
    """Compare an event with the earlier ones of its key. Changes `state` and returns it.

    An event at or before the newest position was read again, or was held up in Penstock: it breaks nothing, and fills
    a gap that it is part of. The first event of another revision opens no gap: between the two, revisions without the
    sequence may have processed events of the key.
    """
    if state is None:
        first = SequenceState(tap.is_clock, tap.revision, tap.number, tap.position, tap.number, [])
        return SequenceComparison(first, None, [])
    gap = next((one for one in state.gaps if any(low <= tap.number <= high for low, high in one.ranges)), None)
    if not _is_newer(tap.position, state.position):
        return SequenceComparison(state, None, [] if gap is None else [_filled(state, gap, tap.number)])
    previous = state.last
    state.position = tap.position
    state.last = max(previous, tap.number)
    if state.revision != tap.revision:
        state.revision = tap.revision
        if tap.number > previous + 1:
            state.low_watermark = tap.number
            return SequenceComparison(state, None, [])
    kind = _kind_of(tap, previous, may_be_late=gap is not None or tap.number < state.low_watermark)
    breaks: list[SequenceBreak] = []
    if kind is not None:
        breaks.append(_opened(state, tap, previous) if kind == GAP else _break(kind, tap, previous))
    if gap is not None:
        breaks.append(_filled(state, gap, tap.number))
    return SequenceComparison(state, kind, breaks)


def _kind_of(tap: SequenceTap, previous: int, *, may_be_late: bool) -> BreakKind | None:
    """Return how a newer event breaks the sequence. `may_be_late`: it is not known that its number has arrived."""
    if tap.number > previous:
        return None if tap.is_clock or tap.number == previous + 1 else GAP
    if tap.is_clock:
        return OUT_OF_ORDER if tap.number < previous else None
    return OUT_OF_ORDER if may_be_late else REPEATED


def _is_newer(position: int, newest: int) -> bool:
    """Return True if an event was stored after the newest one. A key is in one partition of a generation."""
    one, other = place_of(position), place_of(newest)
    if (one.generation, one.partition) == (other.generation, other.partition):
        return position > newest
    return one.generation >= other.generation


def _opened(state: SequenceState, tap: SequenceTap, last: int) -> SequenceBreak:
    gap = OpenGap(tap, last + 1, [(last + 1, tap.number - 1)])
    state.gaps.append(gap)
    if len(state.gaps) > MOST_GAPS:
        forgotten = state.gaps.pop(0)
        state.low_watermark = max(state.low_watermark, forgotten.after.number)
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
    is_tracked = len(rest) <= MOST_RANGES
    if not rest or not is_tracked:
        state.gaps.remove(gap)
    if not is_tracked:
        state.low_watermark = max(state.low_watermark, gap.after.number)
    return msgspec.structs.replace(_gap(gap), is_tracked=is_tracked)


def _gap(gap: OpenGap) -> SequenceBreak:
    return _break(GAP, gap.after, gap.first - 1, gap.ranges)


def _break(kind: BreakKind, tap: SequenceTap, previous: int, ranges: Sequence[tuple[int, int]] = ()) -> SequenceBreak:
    own = (tap.bucket, tap.position, tap.at_us, tap.is_clock, tap.number)
    return SequenceBreak(tap.pipe, tap.revision, tap.source, tap.key, kind, *own, previous, list(ranges))
