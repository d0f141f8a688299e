"""Positions: one integer identifies a message for good, also if its topic is deleted and created again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketFacts, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, Fact, FactKey
from dataplane.ledger.units import UnitPosition, format_position, parse_position, partition_base, place_of, position_of

places = st.builds(UnitPosition, st.integers(0, 1_023), st.integers(0, 16_383), st.integers(0, (1 << 40) - 1))


@given(one=places, other=places, part=st.integers(0, 2), bit=st.integers(0, 39))
def test_different_places_have_different_positions(one: UnitPosition, other: UnitPosition, part: int, bit: int):
    assert (position_of(*one) == position_of(*other)) == (one == other)
    near = list(one)
    near[part] ^= 1 << bit % (10, 14, 40)[part]
    assert position_of(*near) != position_of(*one), "they differ in one bit"


@given(place=places)
def test_position_is_unpacked_and_parsed_back_from_its_text(place: UnitPosition):
    position = position_of(*place)
    assert place_of(position) == place
    assert parse_position(format_position(position)) == position


@pytest.mark.parametrize(("generation", "partition"), [(1_024, 0), (0, 16_384), (-1, 0)])
def test_value_out_of_range_is_refused(generation: int, partition: int):
    with pytest.raises(ValueError, match="must be below"):
        partition_base(generation, partition)


def test_deliveries_of_an_older_topic_generation_hide_no_loss_in_the_new_one():
    old, new = position_of(1, 0, 7), position_of(2, 0, 7)
    facts = {
        FactKey(INGEST, Fact.SENT, ACKED): BitMap64([old, new]),
        FactKey(PROCESS, Fact.SENT): BitMap64([old]),
        FactKey("transform:crm", Fact.SENT): BitMap64([old]),
        FactKey("transmit:crm", Fact.DELIVERED): BitMap64([old]),
    }
    topics = {"ingest": [("in.g1", 1), ("in.g2", 2)]}
    account = derive(BucketFacts(facts, {}, {("in.g1", 0): 8, ("in.g2", 0): 8}, topics))  # type: ignore[arg-type]
    assert set(account.upstream[Bin.LOST]) == {(new, 0)}
    assert set(account.destinations["crm"][Bin.DELIVERED]) == {(old, 0)}
