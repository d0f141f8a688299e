"""Latency breakdowns: slices add up, none is negative at any quantile, and merging equals adding."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.breakdown import PATH, SLICES, Breakdown, Slice

MS = 1_000
DURATIONS = st.one_of(st.just(0), st.integers(0, 5_000), st.integers(0, 3_600_000_000))
ROWS = st.lists(st.lists(DURATIONS, min_size=SLICES, max_size=SLICES), min_size=1, max_size=40)
QUANTILES = st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1.0])


def breakdown_of(rows: Sequence[Sequence[int]], source_us: int = 0) -> Breakdown:
    breakdown = Breakdown()
    breakdown.add([source_us] * len(rows), rows)
    return breakdown


def row(**slices_us: int) -> list[int]:
    numbers = [0] * SLICES
    for name, took_us in slices_us.items():
        numbers[Slice[name.upper()]] = took_us
    return numbers


def test_every_slice_has_exactly_one_place_on_the_path():
    assert sorted(PATH) == sorted(Slice)
    assert [slice_.value for slice_ in Slice] == list(range(SLICES))


@given(ROWS, QUANTILES)
def test_portions_are_never_negative_and_add_up_to_the_whole(rows: list[list[int]], q: float):
    breakdown = breakdown_of(rows)
    portions = list(breakdown.portions(q))
    assert all(portion.took_us >= 0 for portion in portions)
    assert sum(portion.took_us for portion in portions) == breakdown.whole.quantile(q)


@given(ROWS)
def test_sums_are_exact(rows: list[list[int]]):
    breakdown = breakdown_of(rows)
    assert breakdown.sum_us == sum(map(sum, rows))
    assert {portion.slice: portion.sum_us for portion in breakdown.portions(0.5)} == {
        slice_: took_us for slice_ in PATH if (took_us := sum(numbers[slice_] for numbers in rows))
    }


@given(ROWS, QUANTILES)
def test_quantile_of_the_whole_is_within_one_percent_of_the_exact_one(rows: list[list[int]], q: float):
    exact = sorted(map(sum, rows))[int(q * (len(rows) - 1))]
    assert abs(breakdown_of(rows).whole.quantile(q) - exact) <= exact * 0.01 + 1


@given(st.lists(ROWS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merge_in_any_order_equals_adding_all_rows_to_one(parts: list[list[list[int]]], rng: random.Random):
    shuffled = rng.sample(parts, len(parts))
    merged = Breakdown()
    for rows in shuffled:
        merged.merge(Breakdown.decode(breakdown_of(rows, 7).encode()))
    together = breakdown_of([numbers for rows in parts for numbers in rows], 7)
    assert merged.encode() == together.encode()


@given(ROWS)
def test_durations_of_a_slice_include_every_delivery(rows: list[list[int]]):
    for portion in breakdown_of(rows).portions(0.5):
        durations = [numbers[portion.slice] for numbers in rows]
        assert (portion.own.count, portion.own.max_us) == (len(rows), max(durations))
        assert 0 <= portion.own.quantile(0.5) <= portion.own.quantile(0.99) <= portion.own.max_us


@given(ROWS)
def test_breakdown_is_unchanged_by_encoding_and_decoding(rows: list[list[int]]):
    breakdown = breakdown_of(rows, -5)
    assert Breakdown.decode(breakdown.encode()).encode() == breakdown.encode()


def test_slice_without_duration_is_not_encoded():
    short = breakdown_of([row(ingest=1), row(ingest=2)])
    assert [portion.slice for portion in short.portions(0.5)] == [Slice.INGEST]
    assert len(short.encode()) < len(breakdown_of([row(ingest=1, lake=1), row(ingest=2)]).encode())


def test_few_retries_are_not_part_of_p95_but_many_are():
    def at_p95(retried: int) -> dict[Slice, int]:
        rows = [row(ingest=MS, transmit=4 * MS)] * (100 - retried)
        rows += [row(ingest=MS, retry=60_000 * MS, transmit=4 * MS)] * retried
        return {portion.slice: portion.took_us for portion in breakdown_of(rows).portions(0.95)}

    assert at_p95(3)[Slice.RETRY] == 0
    assert at_p95(10)[Slice.RETRY] == pytest.approx(60_000 * MS, rel=0.02)


def test_breakdown_without_deliveries_has_no_slices():
    empty = Breakdown()
    assert list(empty.portions(0.95)) == []
    assert (empty.count, empty.sum_us, empty.whole.count) == (0, 0, 0)
    empty.merge(Breakdown())
    assert empty.count == 0


def test_deliveries_without_duration_are_counted():
    breakdown = breakdown_of([row()] * 3)
    breakdown.merge(breakdown_of([row(transmit=5)]))
    (portion,) = breakdown.portions(0.5)
    assert (portion.took_us, portion.own.count, breakdown.whole.count, breakdown.whole.max_us) == (0, 4, 4, 5)
