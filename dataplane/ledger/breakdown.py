"""Latency breakdown: where the time of delivered messages went, slice by slice, mergeable. Pure.

Every slice of a breakdown is measured over the same messages, so slices can be compared and added up:

- means are exact: the sums of the slices add up to the sum of the whole;
- at a percentile, a slice is the difference between the cumulative time after it and before it, which is the talk's
  lag_out minus lag_in at that percentile. The cumulative time of no message falls from one slice to the next, so no
  such difference is negative (see dataplane.ledger.sketch), and they add up to the whole at that percentile.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dataplane.ledger.sketch import FEW, Sketch, SketchWire

_Times = list[int] | NDArray[np.int64]


class Slice(IntEnum):
    """Part of a message's time. The numbers belong to the wire: they never change, and a new slice gets the next one.

    INGEST:            from the arrival of the request's last byte until Kafka has stored the event
    PROCESS_QUEUE:     in Kafka, and for a plan, until a process lane begins
    DEDUP:             at the dedup query
    NORMALIZE, ENRICH, ROUTE, TRANSFORM: the steps of a process lane
    TRANSMIT_QUEUE:    in Kafka until a transmit lane takes it
    DESTINATION_QUEUE: in the transmit lane until its first request: rate, concurrency, order, batch
    HELD:              while its destination or pipe is paused, suspended or let in by shares
    RETRY:             between two requests: pauses of the lane and delay tiers
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
# The order in which slices are added up. A slice that happens more than once (held, retry) is counted at one place.
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


class _SliceWire(Struct, array_like=True):
    number: int
    sum_us: int
    own: SketchWire
    cumulative: SketchWire


class _Wire(Struct, array_like=True):
    count: int
    source: SketchWire
    slices: list[_SliceWire]


class Portion(NamedTuple):
    """Slice at a percentile: its share of the whole at that percentile, and its own distribution.

    took_us: cumulative time after the slice minus that before it, both at the percentile; never negative
    own:     durations of the slice alone, of every message of the breakdown
    sum_us:  of these durations, exact
    """

    slice: Slice
    took_us: int
    own: Sketch
    sum_us: int


class _Part(Struct):
    sum_us: int
    own: Sketch
    cumulative: Sketch


class Breakdown:
    """Slices of the time of some deliveries. A slice that took no time in any of them takes no room.

    count:  deliveries
    source: ingest_time - event_time of each: the source's clock and its way to us, no part of the whole
    """

    def __init__(self) -> None:
        self.count = 0
        self.source = Sketch()
        self._parts: dict[Slice, _Part] = {}  # in the order of PATH

    def add(self, source_us: Sequence[int], spent_us: Sequence[Sequence[int]]) -> None:
        """Add deliveries; `spent_us` has a row for each, with the time of a Slice at the place of its number."""
        added = self if not self.count else Breakdown()
        added.count = len(spent_us)
        added.source.add(source_us)
        added._parts = (_measured_few if len(spent_us) <= FEW else _measured)(spent_us)
        if added is not self:
            self.merge(added)

    def merge(self, other: "Breakdown") -> None:
        """Add all deliveries of the other."""
        present = [slice_ for slice_ in PATH if slice_ in self._parts or slice_ in other._parts]
        before, of_other = _zeros(self.count), _zeros(other.count)
        parts: dict[Slice, _Part] = {}
        for slice_ in present:
            mine, its = self._parts.get(slice_), other._parts.get(slice_)
            own = _together(mine.own if mine else _zeros(self.count), its.own if its else _zeros(other.count))
            before, of_other = mine.cumulative if mine else before, its.cumulative if its else of_other
            sum_us = (mine.sum_us if mine else 0) + (its.sum_us if its else 0)
            parts[slice_] = _Part(sum_us, own, _together(before, of_other))
        self._parts = parts
        self.count += other.count
        self.source.merge(other.source)

    @property
    def whole(self) -> Sketch:
        """Time of each delivery from ingest to the destination's answer."""
        return list(self._parts.values())[-1].cumulative if self._parts else _zeros(self.count)

    @property
    def sum_us(self) -> int:
        """Sum of the whole times, exact."""
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
            _SliceWire(int(slice_), part.sum_us, part.own.to_wire(), part.cumulative.to_wire())
            for slice_, part in self._parts.items()
        ]
        return msgspec.msgpack.encode(_Wire(self.count, self.source.to_wire(), slices))

    @classmethod
    def decode(cls, encoded: bytes) -> "Breakdown":
        """Return the breakdown that was encoded. Raises msgspec.DecodeError.

        The time of a slice that a later release has added counts, at percentiles, as part of the next one.
        """
        wire = _decoder.decode(encoded)
        breakdown = cls()
        breakdown.count = wire.count
        breakdown.source = Sketch.from_wire(wire.source)
        known = {Slice(one.number): one for one in wire.slices if one.number < SLICES}
        breakdown._parts = _parts(known)
        return breakdown


_decoder = msgspec.msgpack.Decoder(_Wire)


def _measured(rows: Sequence[Sequence[int]]) -> dict[Slice, _Part]:
    """Return the parts of some deliveries."""
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
    """Return the same without numpy, whose calls would cost more than the numbers."""
    parts, cumulative = {}, [0] * len(rows)
    for slice_ in PATH:
        own = [row[slice_] for row in rows]
        if sum_us := sum(own):
            cumulative = [before + took for before, took in zip(cumulative, own, strict=True)]
            parts[slice_] = _part(sum_us, own, cumulative)
    return parts


def _part(sum_us: int, own: _Times, cumulative: _Times) -> _Part:
    part = _Part(sum_us, Sketch(), Sketch())
    part.own.add(own)
    part.cumulative.add(cumulative)
    return part


def _parts(known: Mapping[Slice, _SliceWire]) -> dict[Slice, _Part]:
    return {
        slice_: _Part(one.sum_us, Sketch.from_wire(one.own), Sketch.from_wire(one.cumulative))
        for slice_ in PATH
        if (one := known.get(slice_)) is not None
    }


def _zeros(count: int) -> Sketch:
    sketch = Sketch()
    if count:
        sketch.add([0], [count])
    return sketch


def _together(one: Sketch, other: Sketch) -> Sketch:
    sketch = Sketch()
    sketch.merge(one)
    sketch.merge(other)
    return sketch
