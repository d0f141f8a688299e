"""Encoded breakdowns of many groups, merged at once for pages that read hundreds of them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from dataplane.ledger.breakdown import PATH, BreakdownWire, Slice, zeros
from dataplane.ledger.sketch import SketchGrid, SketchWire


class SliceTime(NamedTuple):
    """Slice at a percentile; see dataplane.ledger.breakdown.

    took_us: cumulative time after the slice minus that before it, both at the percentile
    sum_us:  exact sum of the durations of the slice
    """

    slice: Slice
    took_us: int
    sum_us: int


class GroupTimes(NamedTuple):
    """Number of deliveries of one group, and the slices that took time in any of them, in the order of PATH."""

    deliveries: int
    slices: Sequence[SliceTime]


_Wire = BreakdownWire[msgspec.Raw]
_decoder: Final = msgspec.msgpack.Decoder(_Wire)


class BreakdownGrid:
    """Breakdowns by group. Every figure is that of the Breakdown that merges the same ones.

    count:  number of deliveries of all groups
    source: one group: the source lags of all deliveries
    whole:  one group: the times from ingest to the destination's answer of all deliveries
    """

    def __init__(self, groups: int, breakdowns: Iterable[tuple[int, bytes | memoryview]]) -> None:
        """Merge each breakdown, given with its group's number. Raises msgspec.DecodeError."""
        wires = [(group, _decoder.decode(encoded)) for group, encoded in breakdowns]
        known = {one.number for _, wire in wires for one in wire.slices}
        self._slices = [slice_ for slice_ in PATH if slice_ in known]
        self._counts = [0] * groups
        self._sums_us = [[0] * len(self._slices) for _ in range(groups)]
        self._size = max(1, len(self._slices))  # columns of the grid
        reached: list[tuple[int, SketchWire]] = []
        wholes: list[tuple[int, SketchWire]] = []
        for group, wire in wires:
            self._counts[group] += wire.count
            steps = list(self._add(group, wire)) or [zeros(wire.count).to_wire()]
            reached += enumerate(steps, group * self._size)
            wholes.append((0, steps[-1]))
        self._reached = SketchGrid(groups * self._size, reached)
        self.count = sum(self._counts)
        self.source = SketchGrid(1, [(0, wire.source) for _, wire in wires])
        self.whole = SketchGrid(1, wholes)

    def _add(self, group: int, wire: _Wire) -> Iterator[SketchWire]:
        """Add the sums of a breakdown; yield its cumulative times after each slice of the grid."""
        by_slice = {one.number: one for one in wire.slices}
        reached = zeros(wire.count).to_wire()
        for column, slice_ in enumerate(self._slices):
            if one := by_slice.get(slice_):
                self._sums_us[group][column] += one.sum_us
                reached = one.cumulative
            yield reached

    @property
    def sum_us(self) -> int:
        """Exact sum of the time from ingest to the destination's response, of all groups."""
        return sum(map(sum, self._sums_us))

    def of_groups(self, quantile: float) -> list[GroupTimes]:
        """Return the slices of each group at this quantile (0..1)."""
        found = self._reached.quantiles(quantile)
        rows = (found[at : at + self._size] for at in range(0, len(found), self._size))
        return list(map(self._times, self._counts, rows, self._sums_us))

    def of_all(self, quantile: float) -> GroupTimes:
        """Return the slices of all groups together at this quantile (0..1)."""
        sums_us = [sum(column) for column in zip(*self._sums_us, strict=True)]
        return self._times(self.count, self._reached.of_all(self._size).quantiles(quantile), sums_us)

    def _times(self, count: int, reached_us: Sequence[int | None], sums_us: Sequence[int]) -> GroupTimes:
        took_us = [after - before for before, after in pairwise((0, *(us or 0 for us in reached_us)))]
        slices = zip(self._slices, took_us, sums_us, strict=False)  # without slices, there is one empty column
        return GroupTimes(count, [SliceTime(*one) for one in slices if one[2]])
