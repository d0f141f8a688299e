"""Lag sketches are within 1 % of the exact quantiles, merge in any order and keep negative lags."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dataplane.ledger.sketch import FEW, LagSketch, SketchGrid

LAGS = st.lists(st.integers(-(10**9), 10**12), min_size=1, max_size=300)


def sketch_of(values: Sequence[int] | NDArray[np.int64]) -> LagSketch:
    sketch = LagSketch()
    sketch.add(values)
    return sketch


@given(LAGS, st.sampled_from([0.0, 0.5, 0.95, 0.99, 1.0]))
def test_every_quantile_is_within_one_percent_of_the_exact_one(values: list[int], q: float):
    exact = sorted(values)[int(q * (len(values) - 1))]
    assert abs(sketch_of(values).quantile(q) - exact) <= abs(exact) * 0.01 + 1  # whole microseconds


@given(LAGS, LAGS)
def test_merge_equals_adding_all_values_to_one_sketch(one: list[int], other: list[int]):
    merged = sketch_of(one)
    merged.merge(sketch_of(other))
    assert merged.encode() == sketch_of(other + one).encode()


@given(LAGS)
def test_sketch_is_unchanged_by_encoding_and_decoding(values: list[int]):
    sketch = sketch_of(values)
    assert LagSketch.decode(sketch.encode()).encode() == sketch.encode()


@given(LAGS)
def test_few_and_many_values_are_counted_alike(values: list[int]):
    many = values * (FEW // len(values) + 1)
    one_by_one = LagSketch()
    for value in many:
        one_by_one.add([value])
    assert one_by_one.encode() == sketch_of(many).encode()
    assert sketch_of(np.array(values)).encode() == sketch_of(values).encode()


@given(st.lists(st.tuples(st.integers(-(10**9), 10**12), st.integers(1, 50)), min_size=1, max_size=60))
def test_repeated_value_equals_a_value_with_a_count(pairs: list[tuple[int, int]]):
    repeated = LagSketch()
    repeated.add([value for value, _ in pairs], [count for _, count in pairs])
    assert repeated.encode() == sketch_of([value for value, count in pairs for _ in range(count)]).encode()


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**12), st.integers(0, 10**9)), min_size=1, max_size=100),
    st.integers(0, 100),
    st.sampled_from([0.0, 0.1, 0.5, 0.95, 0.99, 1.0]),
)
def test_quantile_never_falls_if_no_value_does_also_after_merging(pairs: list[tuple[int, int]], cut: int, q: float):
    """The values before and after are lags of the same messages at two times."""
    before, after = sketch_of([value for value, _ in pairs[:cut]]), sketch_of([a + b for a, b in pairs[:cut]])
    before.merge(sketch_of([value for value, _ in pairs[cut:]]))
    after.merge(sketch_of([a + b for a, b in pairs[cut:]]))
    assert before.quantile(q) <= after.quantile(q)


def test_maximum_is_exact():
    assert sketch_of([1, 7, 123_456_789]).max_us == 123_456_789


def test_negative_lag_of_a_source_clock_ahead_of_ours_is_kept():
    assert sketch_of(np.array([-5_000, -4_000])).quantile(0.5) < 0


def test_quantile_of_an_empty_sketch_raises_an_error():
    with pytest.raises(ValueError, match="empty"):
        LagSketch().quantile(0.5)


@given(st.lists(st.tuples(st.integers(0, 5), LAGS), max_size=12), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_grid_has_the_quantiles_of_the_merged_sketches(parts: list[tuple[int, list[int]]], q: float):
    def merged(groups: set[int]) -> int | None:
        sketch = LagSketch()
        for group, values in parts:
            if group in groups:
                sketch.merge(sketch_of(values))
        return sketch.quantile(q) if sketch.count else None

    grid = SketchGrid(6, [(group, sketch_of(values).encode()) for group, values in parts])
    assert grid.quantiles(q) == [merged({group}) for group in range(6)]
    assert grid.merged(3).quantiles(q) == [merged({0, 1, 2}), merged({3, 4, 5})]
    assert grid.of_all(3).quantiles(q) == [merged({0, 3}), merged({1, 4}), merged({2, 5})]


def test_grid_of_empty_sketches_or_no_groups_has_no_quantiles():
    assert SketchGrid(2, [(0, LagSketch().encode())]).quantiles(0.5) == [None, None]
    assert SketchGrid(0, []).merged(3).quantiles(0.5) == []
    assert SketchGrid(0, []).of_all(3).quantiles(0.5) == [None] * 3
