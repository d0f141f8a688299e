"""Bins of units diverted to the slow lane: queued until it has passed them, then processed or lost."""

from pyroaring import BitMap64

from controlplane.observer.seal import why_open
from controlplane.observer.sealing import _progress
from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, SLOW, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import ENTRANCE

ONE, TWO, THREE = PLACES = [position_of(1, 0, offset) for offset in (1, 2, 3)]
SLOW_AT, IN_AT = ("process-slow", 0), ("in", 0)
DIVERTED = FactKey(ENTRANCE, Fact.SENT, SLOW)


def books(more: dict[FactKey, list[int]], *, slow: int) -> BucketFacts:
    """Return the facts of three messages (to ingest offset 3); diverted ones reach offset 7, read to `slow`."""
    facts = {FactKey(INGEST, Fact.SENT, ACKED): PLACES, FactKey(INGEST, Fact.SENT, SEEN): PLACES, **more}
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics = {"ingest": [("in", 1)], "process-slow": [("process-slow", 1)], "egress": [("out", 1)]}
    return BucketFacts(bitmaps, {SLOW_AT: 7}, {SLOW_AT: slow, IN_AT: 4}, topics)  # type: ignore[arg-type]


def derived(more: dict[FactKey, list[int]], *, slow: int) -> BucketAccount:
    return derive(books(more, slow=slow))


def through(*positions: int) -> dict[FactKey, list[int]]:
    """Return the facts of units that passed the route and were sent to crm."""
    return {FactKey(PROCESS, Fact.SENT): [*positions], FactKey("transform:crm", Fact.SENT): [*positions]}


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


def test_diverted_units_are_queued_until_the_slow_lane_has_passed_them():
    account = derived({DIVERTED: [ONE, TWO], **through(THREE)}, slow=7)
    assert account.upstream[Bin.QUEUED] == at(ONE, TWO)
    assert account.count(Bin.LOST) == 0


def test_diverted_unit_that_the_slow_lane_has_passed_is_processed_or_lost_by_position():
    account = derived({DIVERTED: [ONE, TWO], **through(ONE, THREE)}, slow=8)
    assert account.upstream[Bin.LOST] == at(TWO)
    assert account.upstream[Bin.QUEUED] == at()


def test_minute_is_open_until_the_slow_lane_has_passed_it():
    ends = {IN_AT: 4}
    assert "7 of 8 on process-slow/0" in why_open(_progress(books({DIVERTED: [ONE]}, slow=7), ends))
    assert why_open(_progress(books({DIVERTED: [ONE]}, slow=8), ends)) == ""


def test_minute_without_diverted_units_does_not_wait_for_the_slow_lane():
    assert why_open(_progress(books({}, slow=0), {IN_AT: 4})) == ""
