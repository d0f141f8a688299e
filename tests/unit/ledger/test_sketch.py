"""Lag sketches stay within 1 % of exact, merge in any order, and keep negative lags."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dataplane.ledger.sketch import Sketch

LAGS = st.lists(st.integers(-(10**9), 10**12), min_size=1, max_size=300)


def sketch_of(values: Sequence[int] | NDArray[np.int64]) -> Sketch:
    sketch = Sketch()
    sketch.add(values)
    return sketch


@given(LAGS, st.sampled_from([0.0, 0.5, 0.95, 0.99, 1.0]))
def test_every_quantile_is_within_one_percent_of_the_exact_one(values: list[int], q: float):
    exact = sorted(values)[int(q * (len(values) - 1))]
    assert abs(sketch_of(values).quantile(q) - exact) <= abs(exact) * 0.01 + 1  # whole microseconds


@given(LAGS, LAGS)
def test_merging_is_the_same_as_adding_everything_to_one(one: list[int], other: list[int]):
    merged = sketch_of(one)
    merged.merge(sketch_of(other))
    assert merged.encode() == sketch_of(other + one).encode()


@given(LAGS)
def test_a_decoded_sketch_is_the_encoded_one(values: list[int]):
    sketch = sketch_of(values)
    assert Sketch.decode(sketch.encode()).encode() == sketch.encode()


def test_the_maximum_is_exact():
    assert sketch_of([1, 7, 123_456_789]).max_us == 123_456_789


def test_a_source_clock_ahead_of_ours_is_kept_negative():
    assert sketch_of(np.array([-5_000, -4_000])).quantile(0.5) < 0


def test_an_empty_sketch_has_no_quantile():
    with pytest.raises(ValueError, match="empty"):
        Sketch().quantile(0.5)
