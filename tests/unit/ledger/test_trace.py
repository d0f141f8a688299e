"""A unit's journey, as the ledger knows it, has the order in which it happened, for any order of reports."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketFacts
from dataplane.ledger.facts import ACKED, EXPLODED, INGEST, PROCESS, SEEN, Fact, FactKey, dead_detail
from dataplane.ledger.trace import bins_of, facts_in_order

TRANSFORM, TRANSMIT = "transform:crm", "transmit:crm"
UP_TO_THE_ROUTE = [FactKey(INGEST, Fact.SENT, ACKED), FactKey(INGEST, Fact.SENT, SEEN), FactKey(PROCESS, Fact.SENT)]
LEFT = [*UP_TO_THE_ROUTE, FactKey(TRANSFORM, Fact.SENT)]
PARKED, RELEASED = FactKey(TRANSMIT, Fact.PARKED, "1"), FactKey(TRANSMIT, Fact.RELEASED, "1")
WAYS = {
    "ACKed and never seen": UP_TO_THE_ROUTE[:1],
    "dead upstream": [*UP_TO_THE_ROUTE[:2], FactKey("normalize", Fact.DEAD, "step")],
    "delivered at the second try": [*LEFT, PARKED, RELEASED, FactKey(TRANSMIT, Fact.DELIVERED)],
    "held and released": [
        *LEFT,
        FactKey(TRANSMIT, Fact.HELD, "1"),
        RELEASED,
        FactKey(TRANSMIT, Fact.PARKED, "2"),
    ],
    "dead twice, redriven twice": [
        *LEFT,
        PARKED,
        RELEASED,
        FactKey(TRANSMIT, Fact.DEAD, "expired"),
        FactKey(TRANSMIT, Fact.REDRIVEN, "2"),
        FactKey(TRANSMIT, Fact.PARKED, "3"),
        FactKey(TRANSMIT, Fact.DEAD, dead_detail("rejected", 2)),
        FactKey(TRANSMIT, Fact.REDRIVEN, "4"),
        FactKey(TRANSMIT, Fact.DELIVERED),
    ],
}


def books_of(way: list[FactKey], *, passed: int = 0) -> BucketFacts:
    others = {FactKey("transmit:audit", Fact.DELIVERED): BitMap64([7])}
    topics = {"ingest": [("in", 0)], "egress": [("out", 0)]}
    facts = {**others, **{key: BitMap64([7]) for key in way}}
    return BucketFacts(facts, {("out", 0): 7}, {("in", 0): passed, ("out", 0): passed}, topics)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(chance=st.randoms())
def test_journey_is_in_chronological_order(way: list[FactKey], chance: random.Random):
    mixed = list(way)
    chance.shuffle(mixed)
    assert facts_in_order(books_of(mixed), 7, 0, "crm") == way


def test_journey_contains_no_other_unit_and_no_other_destination():
    books = books_of(LEFT)
    assert facts_in_order(books, 8, 0, "crm") == []
    assert facts_in_order(books, 7, 0, "") == UP_TO_THE_ROUTE
    assert facts_in_order(books, 7, 0, "audit")[-1] == FactKey("transmit:audit", Fact.DELIVERED)


def test_journey_of_a_child_is_that_of_its_message_followed_by_its_own():
    exploded = [FactKey("normalize", Fact.SENT, EXPLODED, 2), FactKey(TRANSFORM, Fact.SENT, "", 2)]
    books = books_of([*LEFT, *exploded])
    assert facts_in_order(books, 7, 2, "crm") == [*UP_TO_THE_ROUTE[:2], *exploded]


def test_unit_is_in_one_bin_at_each_destination_or_upstream():
    assert bins_of(books_of(LEFT, passed=8), 7) == {"audit": Bin.DELIVERED, "crm": Bin.LOST}
    assert bins_of(books_of(UP_TO_THE_ROUTE[:1], passed=7), 7)[""] == Bin.QUEUED
    assert bins_of(books_of(UP_TO_THE_ROUTE[:1], passed=8), 7)[""] == Bin.LOST
