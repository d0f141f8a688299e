"""Skew is detected from sets of positions and from a sample of keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ingest.stamp import key_bytes
from dataplane.ledger.units import partition_base
from mgmt.ledger.queries.heavy_keys import FEWEST, HOT, HotPartition, heavy, judged


def taken(*counts: int, generation: int = 1) -> BitMap64:
    """Return the given number of positions in each partition."""
    found = BitMap64()
    for partition, count in enumerate(counts):
        base = partition_base(generation, partition)
        found.add_range(base + 10, base + 10 + count)
    return found


def test_partition_with_much_more_than_its_share_is_hot():
    assert judged(taken(100, 2_700, 100, 100), 4) == HotPartition(1, 1, 0.9, 0.25)


@pytest.mark.parametrize(
    ("positions", "partitions"),
    [
        pytest.param(taken(400, 350, 300, 380), 4, id="spread well"),
        pytest.param(taken(FEWEST - 1, 0, 0, 0), 4, id="too few to tell"),
        pytest.param(taken(5_000), 1, id="one partition is all there is"),
        pytest.param(BitMap64(), 4, id="none"),
    ],
)
def test_even_spread_small_sample_or_single_partition_is_not_hot(positions: BitMap64, partitions: int):
    assert judged(positions, partitions) is None


def test_older_generation_of_the_topic_does_not_count():
    assert judged(taken(9_000, 0) | taken(600, 500, generation=2), 2) is None


@given(st.lists(st.integers(0, 3_000), min_size=2, max_size=8))
def test_hot_partition_is_the_fullest_one_with_its_share(counts: list[int]):
    found = judged(taken(*counts), len(counts))
    whole = sum(counts)
    hot = whole >= FEWEST and max(counts) / whole >= HOT / len(counts)
    assert (found is not None) == hot
    if found is not None:
        assert counts[found.partition] == max(counts)
        assert found.share == max(counts) / whole


def test_heavy_keys_are_reported_as_the_customer_knows_them():
    keys = (
        [key_bytes("p", "acme")] * 60 + [key_bytes("p", n) for n in range(30)] + [None] * 5 + [key_bytes("q", "x")] * 5
    )
    assert [(one.key, one.share) for one in heavy(keys, "p")] == [("acme", 0.6)]


def test_keys_of_other_pipes_and_missing_keys_are_not_heavy_keys():
    assert heavy([key_bytes("q", "x")] * 80 + [None] * 20, "p") == []
    assert heavy([], "p") == []
