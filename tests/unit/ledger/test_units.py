"""Positions: one integer that names a message for good, also when a topic is deleted and made anew under its name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, Books, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, Fact, FactKey
from dataplane.ledger.units import Place, format_position, parse_position, partition_base, place_of, position_of

places = st.builds(Place, st.integers(0, 1_023), st.integers(0, 16_383), st.integers(0, (1 << 40) - 1))


@given(one=places, other=places)
def test_two_places_have_one_position_only_if_they_are_one(one: Place, other: Place):
    assert (position_of(*one) == position_of(*other)) == (one == other)


@given(place=places)
def test_a_position_is_taken_apart_and_read_back_from_its_text(place: Place):
    position = position_of(*place)
    assert place_of(position) == place
    assert parse_position(format_position(position)) == position


@pytest.mark.parametrize(("generation", "partition"), [(1_024, 0), (0, 16_384), (-1, 0)])
def test_what_does_not_fit_is_refused(generation: int, partition: int):
    with pytest.raises(ValueError, match="needed"):
        partition_base(generation, partition)


def test_what_an_older_topic_of_the_name_delivered_hides_no_loss_in_the_new_one():
    old, new = position_of(1, 0, 7), position_of(2, 0, 7)
    facts = {
        FactKey(INGEST, Fact.SENT, ACKED): BitMap64([old, new]),
        FactKey(PROCESS, Fact.SENT): BitMap64([old]),
        FactKey("transform:crm", Fact.SENT): BitMap64([old]),
        FactKey("transmit:crm", Fact.DELIVERED): BitMap64([old]),
    }
    topics = {"ingest": [("in.g1", 1), ("in.g2", 2)]}
    account = derive(Books(facts, {}, {("in.g1", 0): 8, ("in.g2", 0): 8}, topics))  # type: ignore[arg-type]
    assert set(account.upstream[Bin.LOST]) == {(new, 0)}
    assert set(account.destinations["crm"][Bin.DELIVERED]) == {(old, 0)}
