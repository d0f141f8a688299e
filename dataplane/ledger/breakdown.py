"""Latency breakdown: the time of delivered messages by slice, as mergeable sketches. Pure.

All slices of a breakdown are measured over the same messages, so that they can be compared and added up:

- means are exact: the sums of the slices add up to the sum of the whole;
- at a percentile, a slice is the difference between the cumulative time after it and before it, which is the talk's
  lag_out minus lag_in at that percentile. A message's cumulative time never falls from one slice to the next, so no
  such difference is negative (see dataplane.ledger.sketch), and the differences add up to the whole at that percentile.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dataplane.ledger.sketch import FEW, LagSketch, SketchWire

_Times = list[int] | NDArray[np.int64]


class Slice(IntEnum):
    """Part of a message's time. The numbers are part of the wire format: never change one; a new slice gets the next.

    INGEST:            from the arrival of the request's last byte until Kafka has stored the event
    PROCESS_QUEUE:     in Kafka, and waiting for a plan, until a process lane begins
    DEDUP:             in the dedup query
    NORMALIZE, ENRICH, ROUTE, TRANSFORM: the steps of a process lane
    TRANSMIT_QUEUE:    in Kafka until a transmit lane takes it
    DESTINATION_QUEUE: in the transmit lane until its first request: rate, concurrency, order, batch
    HELD:              while its destination or pipe is paused or suspended, or admits only a share of its keys
    RETRY:             between two requests: pauses in the lane and delay tiers
    DEAD_LETTER:       until a dead letter is redriven
    TRANSMIT:          requests to the destination, failed ones included
    LAKE:              on the lake's topic until its row is written
    WINDOW:            of a window's result: from the window's end until it closed
    """

    INGEST = 0
    PROCESS_QUEUE = 1
    DEDUP = 2
    NORMALIZE = 3
    ENRICH = 4
    ROUTE = 5
    TRANSFORM = 6
    TRANSMIT_QUEUE = 7
    DESTINATION_QUEUE = 8
    HELD = 9
    RETRY = 10
    DEAD_LETTER = 11
    TRANSMIT = 12
    LAKE = 13
    WINDOW = 14


SLICES: Final = len(Slice)
# The order in which slices are added up. A slice that occurs more than once (held, retry) is counted once, at its
# position here.
PATH: Final = (
    Slice.WINDOW,
    Slice.INGEST,
    Slice.PROCESS_QUEUE,
    Slice.DEDUP,
    Slice.NORMALIZE,
    Slice.ENRICH,
    Slice.ROUTE,
    Slice.TRANSFORM,
    Slice.TRANSMIT_QUEUE,
    Slice.DESTINATION_QUEUE,
    Slice.HELD,
    Slice.RETRY,
    Slice.DEAD_LETTER,
    Slice.TRANSMIT,
    Slice.LAKE,
)


_Own = TypeVar("_Own", SketchWire, msgspec.Raw)


class SliceWire(Struct, Generic[_Own], array_like=True):
    """Slice of an encoded breakdown; `own` is a SketchWire, or raw for a reader that does not need it."""

    number: int
    sum_us: int
    own: _Own
    cumulative: SketchWire


class BreakdownWire(Struct, Generic[_Own], array_like=True):
    """Content of an encoded breakdown."""

    count: int
    source: SketchWire
    slices: list[SliceWire[_Own]]


class Portion(NamedTuple):
    """Slice at a percentile: its part of the whole at that percentile, and its own distribution.

    took_us: cumulative time after the slice minus that before it, both at the percentile; never negative
    own:     durations of this slice alone, over all messages of the breakdown
    sum_us:  exact sum of these durations
    """

    slice: Slice
    took_us: int
    own: LagSketch
    sum_us: int


class _Part(Struct):
    sum_us: int
    own: LagSketch
    cumulative: LagSketch


class Breakdown:
    """Slices of the time of a set of deliveries. A slice that took no time in any of them is not stored.

    count:  number of deliveries
    source: source lag of each delivery (ingest_time - event_time), which is not part of the whole
    """

    def __init__(self) -> None:
        self.count = 0
        self.source = LagSketch()
        self._parts: dict[Slice, _Part] = {}  # in the order of PATH

    def add(self, source_us: Sequence[int], spent_us: Sequence[Sequence[int]]) -> None:
        """Add deliveries; `spent_us` has one row for each, indexed by the number of the Slice."""
        added = self if not self.count else Breakdown()
        added.count = len(spent_us)
        added.source.add(source_us)
        added._parts = (_measured_few if len(spent_us) <= FEW else _measured)(spent_us)
        if added is not self:
            self.merge(added)

    def merge(self, other: "Breakdown") -> None:
        """Add all deliveries of another breakdown."""
        mine, its = self._parts, other._parts
        before, of_other = zeros(self.count), zeros(other.count)
        parts: dict[Slice, _Part] = {}
        grown: list[tuple[_Part, _Part | None, LagSketch]] = []
        for slice_ in (one for one in PATH if one in mine or one in its):
            added = its.get(slice_)
            of_other = added.cumulative if added else of_other
            if part := mine.get(slice_):
                parts[slice_], before = part, part.cumulative
                grown.append((part, added, of_other))
            elif added:
                own = _together(zeros(self.count), added.own)
                parts[slice_] = _Part(added.sum_us, own, _together(before, of_other))
        for part, added, cumulative in grown:  # last, because slices that only `other` has start from `before`
            part.sum_us += added.sum_us if added else 0
            part.own.merge(added.own if added else zeros(other.count))
            part.cumulative.merge(cumulative)
        self._parts = parts
        self.count += other.count
        self.source.merge(other.source)

    @property
    def whole(self) -> LagSketch:
        """Return the sketch of the time from ingest to the destination's response."""
        return list(self._parts.values())[-1].cumulative if self._parts else zeros(self.count)

    @property
    def sum_us(self) -> int:
        """Return the exact sum of the time from ingest to the destination's response."""
        return sum(part.sum_us for part in self._parts.values())

    def portions(self, quantile: float) -> Iterator[Portion]:
        """Yield the slices in the order of PATH; their `took_us` add up to the whole at this quantile (0..1)."""
        reached_us = 0
        for slice_, part in self._parts.items():
            after_us = part.cumulative.quantile(quantile)
            yield Portion(slice_, after_us - reached_us, part.own, part.sum_us)
            reached_us = after_us

    def encode(self) -> bytes:
        """Return the breakdown as MessagePack; the same content gives the same bytes."""
        slices = [
            SliceWire(int(slice_), part.sum_us, part.own.to_wire(), part.cumulative.to_wire())
            for slice_, part in self._parts.items()
        ]
        return msgspec.msgpack.encode(BreakdownWire(self.count, self.source.to_wire(), slices))

    @classmethod
    def decode(cls, encoded: bytes) -> "Breakdown":
        """Decode a breakdown. Raises msgspec.DecodeError.

        At percentiles, the time of a slice that only a later release knows counts as part of the slice after it.
        """
        wire = _decoder.decode(encoded)
        breakdown = cls()
        breakdown.count = wire.count
        breakdown.source = LagSketch.from_wire(wire.source)
        by_slice = {Slice(one.number): one for one in wire.slices if one.number < SLICES}
        breakdown._parts = _parts(by_slice)
        return breakdown


_decoder = msgspec.msgpack.Decoder(BreakdownWire[SketchWire])


def _measured(rows: Sequence[Sequence[int]]) -> dict[Slice, _Part]:
    numbers = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * SLICES)
    columns = np.ascontiguousarray(numbers.reshape(len(rows), SLICES).T)
    parts, cumulative = {}, np.zeros(len(rows), dtype=np.int64)
    for slice_ in PATH:
        own = columns[slice_]
        if sum_us := int(own.sum()):
            cumulative = cumulative + own
            parts[slice_] = _part(sum_us, own, cumulative)
    return parts


def _measured_few(rows: Sequence[Sequence[int]]) -> dict[Slice, _Part]:
    """Return the same as `_measured` without numpy, whose calls cost more than the arithmetic for few rows."""
    parts, cumulative = {}, [0] * len(rows)
    for slice_ in PATH:
        own = [row[slice_] for row in rows]
        if sum_us := sum(own):
            cumulative = [before + took for before, took in zip(cumulative, own, strict=True)]
            parts[slice_] = _part(sum_us, own, cumulative)
    return parts


def _part(sum_us: int, own: _Times, cumulative: _Times) -> _Part:
    part = _Part(sum_us, LagSketch(), LagSketch())
    part.own.add(own)
    part.cumulative.add(cumulative)
    return part


def _parts(by_slice: Mapping[Slice, SliceWire[SketchWire]]) -> dict[Slice, _Part]:
    return {
        slice_: _Part(one.sum_us, LagSketch.from_wire(one.own), LagSketch.from_wire(one.cumulative))
        for slice_ in PATH
        if (one := by_slice.get(slice_)) is not None
    }


def zeros(count: int) -> LagSketch:
    """Return the sketch of so many times of 0."""
    sketch = LagSketch()
    if count:
        sketch.add([0], [count])
    return sketch


def _together(one: LagSketch, other: LagSketch) -> LagSketch:
    sketch = LagSketch()
    sketch.merge(one)
    sketch.merge(other)
    return sketch
