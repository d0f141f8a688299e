"""Buckets of a replay: all of one day, found by position, and each small."""

import random

import pytest
from pyroaring import BitMap64

from dataplane.ledger.replay_buckets import BUCKETS, SPAN_BITS, replay_bucket, replay_buckets, spread
from dataplane.ledger.units import position_of

DAY = 1_440
MINUTE = 29_760_000 + 23 * 60 + 59


def test_buckets_are_minutes_of_the_day_of_the_replay():
    for minute in range(MINUTE - DAY, MINUTE + DAY):
        buckets = replay_buckets(minute)
        assert minute in buckets
        assert {bucket // DAY for bucket in buckets} == {minute // DAY}


@pytest.mark.parametrize("partition", [0, 1, 7])
def test_every_position_has_one_bucket_whatever_it_is_reported_with(partition: int):
    chance = random.Random(partition)
    positions = BitMap64(position_of(3, partition, chance.randrange(600 << SPAN_BITS)) for _ in range(2_000))
    found = spread(MINUTE, positions)
    assert BitMap64().union(*found.values()) == positions
    assert sum(map(len, found.values())) == len(positions)
    for bucket, some in found.items():
        assert bucket in replay_buckets(MINUTE)
        assert {replay_bucket(MINUTE, position) for position in some} == {bucket}


def test_events_next_to_each_other_share_a_bucket_and_many_spans_are_spread():
    assert len(spread(MINUTE, BitMap64(range(position_of(1, 0, 0), position_of(1, 0, 1 << SPAN_BITS))))) == 1
    firsts = BitMap64(position_of(1, 0, number << SPAN_BITS) for number in range(BUCKETS))
    assert {len(some) for some in spread(MINUTE, firsts).values()} == {1}
