"""Stopwatch of a message: how much of its time each slice of a breakdown has taken so far. Pure.

It travels in our header. Whoever hands a message to Kafka stamps it with what was spent so far and with the slice that
the wait until the next arrival belongs to; whoever takes the message adds that wait. So where a message is delivered,
all slices of its time are known, and add up to the whole time since ingest.

Within one process durations come from the monotonic clock. Between processes they are differences of the wall clocks of
our own hosts, and a message's own time never runs backwards: an arrival that seems earlier than the departure before it
counts as no wait. The clock of the message's source takes no part.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from dataplane.ledger.breakdown import SLICES, Slice
from dataplane.ledger.meta import Meta
from dataplane.spec.windows import WINDOW_SOURCE

_INGEST: Final = int(Slice.INGEST)
_PROCESS_QUEUE: Final = int(Slice.PROCESS_QUEUE)
_WINDOW: Final = int(Slice.WINDOW)
_HALF_MS_US: Final = 500


class Stamp(Struct, array_like=True, frozen=True):
    """Content of a stopwatch as it travels.

    waiting:  number of the slice that the time from `left_us` on belongs to
    left_us:  wall clock of the host that stamped
    spent_us: by number of the slice; zeros at the end are left out
    """

    waiting: int
    left_us: int
    spent_us: list[int]


class _Read(Struct, frozen=True):
    """A stamp with a place for every slice, and their sum."""

    waiting: int
    left_us: int
    spent_us: list[int]
    total_us: int


_decoder = msgspec.msgpack.Decoder(Stamp)
_encode = msgspec.msgpack.Encoder().encode


def stamp(waiting: Slice, left_us: int, spent_us: Sequence[int]) -> bytes:
    """Return the stamp of a message that is handed on at `left_us`; `spent_us` has a number for every slice.

    What is missing between ingest and `left_us` is ingest and the wait for process: many messages that were processed
    together share one stamp, whenever each of them came.
    """
    spent = list(spent_us)
    while spent and not spent[-1]:
        spent.pop()
    return _encode(Stamp(int(waiting), left_us, spent))


def spent_until(meta: Meta, arrived_us: int) -> list[int] | None:
    """Return the message's time by slice up to its arrival; None if an earlier release has handed it on unstamped."""
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


def handed_on(meta: Meta, spent_us: Sequence[int] | None, waiting: Slice) -> bytes:
    """Return the stamp of a message of which all is known that it has spent; b"" if it came unstamped."""
    if spent_us is None:
        return b""
    return stamp(waiting, meta.ingest_time_us + sum(spent_us), spent_us)


def delivery(meta: Meta, spent_us: list[int]) -> tuple[int, list[int]]:
    """Return the time before ingest (the source's clock and its way to us), and the time by slice since then.

    A window's result was made by us: the time from the window's end to ingest is a slice.
    """
    source_us = meta.ingest_time_us - meta.event_time_us
    if meta.source.startswith(WINDOW_SOURCE) and source_us >= 0:
        spent_us[_WINDOW] = source_us
        return 0, spent_us
    return source_us, spent_us


def passed_on(meta: Meta, now_us: int, waiting: Slice) -> bytes:
    """Return the stamp of a message that is passed on as it came: from now on it waits for something else."""
    return handed_on(meta, spent_until(meta, now_us), waiting)


def decode_stamp(encoded: bytes) -> Stamp:
    """Return the stamp that was encoded. Raises msgspec.DecodeError."""
    return _decoder.decode(encoded)


@lru_cache(maxsize=64)
def _read(encoded: bytes) -> _Read | None:
    """Messages that were processed together carry the same stamp. A slice of a later release is left out."""
    try:
        found = decode_stamp(encoded)
    except msgspec.DecodeError:
        return None  # no message stops for its timing
    spent = found.spent_us[:SLICES]
    spent += [0] * (SLICES - len(spent))
    waiting = found.waiting if found.waiting < SLICES else int(Slice.RETRY)
    return _Read(waiting, found.left_us, spent, sum(found.spent_us))
