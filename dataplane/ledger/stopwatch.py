"""Stopwatch of a message: the time that each slice of a breakdown has taken so far. Pure.

It travels in the Meta header. The process that produces a message to Kafka stamps it with the time spent so far and
with the slice to which the wait until the next arrival belongs; the process that consumes the message adds that wait.
At the delivery, all slices of the message's time are known, and they add up to the whole time since ingest.

Within one process durations come from the monotonic clock. Between processes they are differences of the wall clocks of
Penstock's own hosts, and a message's time never runs backwards: an arrival that seems earlier than the departure before
it counts as no wait. The clock of the message's source is not used.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from dataplane.ledger.breakdown import SLICES, Slice
from dataplane.ledger.meta import MessageMeta
from dataplane.spec.windows import WINDOW_SOURCE

_INGEST: Final = int(Slice.INGEST)
_PROCESS_QUEUE: Final = int(Slice.PROCESS_QUEUE)
_WINDOW: Final = int(Slice.WINDOW)
_HALF_MS_US: Final = 500


class Stamp(Struct, array_like=True, frozen=True):
    """Content of an encoded stopwatch.

    waiting:  number of the slice to which the time from `left_us` on belongs
    left_us:  departure, by the wall clock of the host that stamped the message
    spent_us: time by number of the slice; trailing zeros are left out
    """

    waiting: int
    left_us: int
    spent_us: list[int]


class _Read(Struct, frozen=True):
    """Stamp with an entry for every slice, and the sum of the entries."""

    waiting: int
    left_us: int
    spent_us: list[int]
    total_us: int


_decoder = msgspec.msgpack.Decoder(Stamp)
_encode = msgspec.msgpack.Encoder().encode


def stamp(waiting: Slice, left_us: int, spent_us: Sequence[int]) -> bytes:
    """Return the stamp of a message that departs at `left_us`; `spent_us` has an entry for every slice.

    Time between ingest and `left_us` that no entry covers counts as ingest and as the wait for process. So messages
    that were processed together can share one stamp although they arrived at different times.
    """
    spent = list(spent_us)
    while spent and not spent[-1]:
        spent.pop()
    return _encode(Stamp(int(waiting), left_us, spent))


def spent_until(meta: MessageMeta, arrived_us: int) -> list[int] | None:
    """Return the message's time by slice up to its arrival; None if an earlier release produced it without a stamp."""
    read, ingest_us = _read(meta.stopwatch) if meta.stopwatch else None, meta.ingest_time_us
    if read is None:
        return None
    spent, total_us = read.spent_us.copy(), read.total_us
    missing_us = read.left_us - total_us - ingest_us
    if missing_us > 0:
        stored_us = meta.stored_ms * 1_000 + _HALF_MS_US - ingest_us
        stored_us = 0 if stored_us < 0 else min(stored_us, missing_us)
        spent[_INGEST] += stored_us
        spent[_PROCESS_QUEUE] += missing_us - stored_us
        total_us += missing_us
    waited_us = arrived_us - ingest_us - total_us
    if waited_us > 0:
        spent[read.waiting] += waited_us
    return spent


def departure_stamp(meta: MessageMeta, spent_us: Sequence[int] | None, waiting: Slice) -> bytes:
    """Return the stamp of a message whose time is known in full; b"" if it arrived without a stamp."""
    if spent_us is None:
        return b""
    return stamp(waiting, meta.ingest_time_us + sum(spent_us), spent_us)


def delivery(meta: MessageMeta, spent_us: list[int]) -> tuple[int, list[int]]:
    """Return the source lag in microseconds (time before ingest), and the time by slice since then.

    Penstock itself makes a window's result, so the time from the window's end to ingest is a slice, not source lag.
    Writes that slice into `spent_us`.
    """
    source_us = meta.ingest_time_us - meta.event_time_us
    if meta.source.startswith(WINDOW_SOURCE) and source_us >= 0:
        spent_us[_WINDOW] = source_us
        return 0, spent_us
    return source_us, spent_us


def forward_stamp(meta: MessageMeta, now_us: int, waiting: Slice) -> bytes:
    """Return the stamp of a message that is forwarded unchanged and waits in slice `waiting` from now on."""
    return departure_stamp(meta, spent_until(meta, now_us), waiting)


def decode_stamp(encoded: bytes) -> Stamp:
    """Decode a stamp. Raises msgspec.DecodeError."""
    return _decoder.decode(encoded)


@lru_cache(maxsize=64)
def _read(encoded: bytes) -> _Read | None:
    """Decode a stamp, cached: messages that were processed together share one. Drop slices of a later release."""
    try:
        found = decode_stamp(encoded)
    except msgspec.DecodeError:
        return None  # an unreadable stamp must not stop a message
    spent = found.spent_us[:SLICES]
    spent += [0] * (SLICES - len(spent))
    waiting = found.waiting if found.waiting < SLICES else int(Slice.RETRY)
    return _Read(waiting, found.left_us, spent, sum(found.spent_us))
