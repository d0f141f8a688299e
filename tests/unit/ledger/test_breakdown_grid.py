"""Breakdowns of many groups merged at once: the same figures as merging them one by one."""

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.breakdown import PATH, SLICES, Breakdown, Slice
from dataplane.ledger.breakdown_grid import BreakdownGrid, GroupTimes, SliceTime
from dataplane.ledger.sketch import LagSketch, SketchGrid

GROUPS = 3
DURATIONS = st.one_of(st.just(0), st.just(0), st.integers(0, 5_000), st.integers(0, 3_600_000_000))
ROWS = st.lists(st.lists(DURATIONS, min_size=SLICES, max_size=SLICES), min_size=1, max_size=6)
MANY = st.lists(st.tuples(st.integers(0, GROUPS - 1), ROWS, st.integers(-5_000, 5_000)), max_size=8)
QUANTILES = st.sampled_from([0.0, 0.5, 0.95, 1.0])


def breakdown_of(rows: Sequence[Sequence[int]], source_us: int = 0) -> Breakdown:
    breakdown = Breakdown()
    breakdown.add([source_us] * len(rows), rows)
    return breakdown


def times_of(breakdowns: Sequence[Breakdown], q: float) -> GroupTimes:
    merged = merged_of(breakdowns)
    return GroupTimes(merged.count, [SliceTime(one.slice, one.took_us, one.sum_us) for one in merged.portions(q)])


def merged_of(breakdowns: Sequence[Breakdown]) -> Breakdown:
    merged = Breakdown()
    for breakdown in breakdowns:
        merged.merge(breakdown)
    return merged


def figures(sketch: LagSketch, q: float) -> tuple[int | None, int]:
    return (sketch.quantile(q) if sketch.count else None, sketch.count)


def grid_figures(grid: SketchGrid, q: float) -> tuple[int | None, int]:
    return (grid.quantiles(q)[0], grid.counts()[0])


@given(MANY, QUANTILES)
def test_grid_has_the_figures_of_the_merged_breakdowns(many: list[tuple[int, list[list[int]], int]], q: float):
    found = [(group, breakdown_of(rows, source_us)) for group, rows, source_us in many]
    grid = BreakdownGrid(GROUPS, [(group, one.encode()) for group, one in found])
    every = merged_of([one for _, one in found])
    assert grid.of_groups(q) == [times_of([one for its, one in found if its == group], q) for group in range(GROUPS)]
    assert grid.of_all(q) == times_of([one for _, one in found], q)
    assert (grid.count, grid.sum_us) == (every.count, every.sum_us)
    assert grid_figures(grid.whole, q) == figures(every.whole, q)
    assert grid_figures(grid.source, q) == figures(every.source, q)
    if every.count:
        assert grid.whole.maxima() == [every.whole.max_us]


def test_slice_of_a_later_release_counts_in_none_but_the_one_after_it():
    numbers = [0] * SLICES
    numbers[Slice.INGEST], numbers[Slice.TRANSMIT] = 1_000, 5_000
    count, source, slices = msgspec.msgpack.decode(breakdown_of([numbers]).encode())
    later = [SLICES, 2_000, slices[0][2], slices[0][3]]
    grid = BreakdownGrid(1, [(0, msgspec.msgpack.encode([count, source, [slices[0], later, slices[1]]]))])
    assert [one.slice for one in grid.of_all(0.5).slices] == [Slice.INGEST, Slice.TRANSMIT]
    assert grid.sum_us == 6_000
    assert list(PATH).index(Slice.INGEST) < list(PATH).index(Slice.TRANSMIT)
