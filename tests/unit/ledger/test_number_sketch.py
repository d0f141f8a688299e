"""Sketch of numbers: exact counts, a bounded size, and the same result for any order of values and merges."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.number_sketch import MOST_BINS, NumberSketch

numbers = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)
lists = st.lists(numbers, max_size=300)


def sketch(values: Sequence[float]) -> NumberSketch:
    found = NumberSketch()
    for value in values:
        found.add(value)
    return found


@given(lists, st.randoms(use_true_random=False))
def test_sketch_is_the_same_for_any_order_of_values_and_merges(values: list[float], chance: random.Random):
    whole = sketch(values).encode()
    chance.shuffle(values)
    parts = [sketch(values[first : first + 70]) for first in range(0, len(values), 70)]
    chance.shuffle(parts)
    merged = NumberSketch()
    for part in parts:
        merged.merge(NumberSketch.decode(part.encode()))
    assert merged.encode() == sketch(values).encode() == whole


@given(lists)
def test_counts_are_exact_and_every_value_is_in_its_bin(values: list[float]):
    found = sketch(values)
    bins = list(found.bins())
    assert found.count == sum(one.count for one in bins) == len(values)
    assert len(bins) <= MOST_BINS
    assert [one.low for one in bins] == sorted(one.low for one in bins)
    rest = sorted(values)
    for one in bins:
        held, rest = rest[: one.count], rest[one.count :]
        tiny = 1e-290  # numbers around zero share its bin once bins are very wide
        assert one.low - tiny <= held[0] <= held[-1] <= one.high + tiny


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([number / 1_000 for number in range(1_000)], id="shares"),
        pytest.param([900 + number / 10 for number in range(1_000)], id="far from zero"),
        pytest.param([1.01**number for number in range(1_000)], id="of all magnitudes"),
        pytest.param([-(1.01**number) for number in range(1_000)], id="negative"),
    ],
)
def test_quantiles_are_within_ten_percent_and_those_of_one_value_within_a_thousandth(values: list[float]):
    found, values = sketch(values), sorted(values)
    for percent in (10, 25, 50, 75, 90):
        assert found.quantile(percent / 100) == pytest.approx(values[len(values) * percent // 100], rel=0.1)
    assert sketch(values[20:21] * 9).quantile(0.5) == pytest.approx(values[20], rel=0.001)


def test_zero_and_negative_numbers_have_their_own_bins():
    assert [(one.low, one.count) for one in sketch([0, -0.0, -2, 2, 2]).bins() if one.low >= 0] == [(0, 2), (2, 2)]
    assert sketch([-2, -2, 1]).quantile(0.5) == pytest.approx(-2, rel=0.001)


def test_numbers_are_known_to_three_digits_only():
    assert sketch([123_456_789]).encode() == sketch([123_430_000]).encode()
    assert sketch([0.1234]).encode() != sketch([0.1244]).encode()


def test_empty_sketch_has_no_quantile():
    with pytest.raises(ValueError, match="empty"):
        NumberSketch().quantile(0.5)


def test_encoded_sketch_of_any_numbers_is_small():
    chance = random.Random(7)
    widest = sketch([chance.choice((-1, 1)) * 10 ** chance.uniform(-300, 8.9) for _ in range(10_000)])
    assert len(widest.encode()) < 300
