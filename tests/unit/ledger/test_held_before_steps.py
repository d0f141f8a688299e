"""Bins of units held before the steps: held, queued after release, passed or lost."""

from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import ENTRANCE

ONE, TWO = PLACES = [position_of(1, 0, offset) for offset in (1, 2)]
HELD_AT, BACK_AT = ("held", 0), ("in", 0)
HELD, RELEASED, AGAIN = (
    FactKey(ENTRANCE, fact, number) for fact, number in ((Fact.HELD, "1"), (Fact.RELEASED, "1"), (Fact.HELD, "2"))
)


def derived(more: dict[FactKey, list[int]], *, back: int, kept_from: int = 0) -> BucketAccount:
    """Derive the account of two held messages (to offset 7); releases reach ingest offset 5, read to `back`."""
    facts = {FactKey(INGEST, Fact.SENT, ACKED): PLACES, FactKey(INGEST, Fact.SENT, SEEN): PLACES, HELD: PLACES, **more}
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics = {"ingest": [("in", 1)], "held": [("held", 1)], "egress": [("out", 1)]}
    reach = {HELD_AT: 7} | ({BACK_AT: 5} if RELEASED in facts else {})
    return derive(BucketFacts(bitmaps, reach, {HELD_AT: kept_from, BACK_AT: back}, topics))  # type: ignore[arg-type]


def through(*positions: int) -> dict[FactKey, list[int]]:
    """Return the facts of units that passed the route and were sent to crm."""
    return {FactKey(PROCESS, Fact.SENT): [*positions], FactKey("transform:crm", Fact.SENT): [*positions]}


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


def test_units_are_held_until_they_are_released():
    account = derived({}, back=9)
    assert account.upstream[Bin.HELD] == at(ONE, TWO)
    assert account.count(Bin.LOST) == 0


def test_unit_below_the_low_watermark_of_the_held_topic_is_lost_by_position():
    assert derived({}, back=9, kept_from=8).upstream[Bin.LOST] == at(ONE, TWO)


def test_released_unit_is_queued_until_the_lanes_have_passed_it():
    account = derived({RELEASED: [ONE]}, back=5)
    assert (account.upstream[Bin.QUEUED], account.upstream[Bin.HELD]) == (at(ONE), at(TWO))


def test_released_unit_that_the_lanes_have_passed_is_processed_or_lost_by_position():
    account = derived({RELEASED: PLACES, **through(ONE)}, back=6)
    assert account.upstream[Bin.LOST] == at(TWO)
    assert account.upstream[Bin.HELD] == at()


DIED, RETURNED = FactKey("route", Fact.DEAD, "route"), FactKey(ENTRANCE, Fact.REDRIVEN, "2")


def redriven(more: dict[FactKey, list[int]], *, back: int) -> BucketAccount:
    """Derive the account of two events that died at the route; ONE was redriven to ingest offset 5, read to `back`."""
    facts = {FactKey(INGEST, Fact.SENT, ACKED): PLACES, FactKey(INGEST, Fact.SENT, SEEN): PLACES, DIED: PLACES}
    bitmaps = {key: BitMap64(positions) for key, positions in (facts | {RETURNED: [ONE]} | more).items()}
    topics = {"ingest": [("in", 1)], "held": [("held", 1)], "egress": [("out", 1)]}
    return derive(BucketFacts(bitmaps, {BACK_AT: 5}, {BACK_AT: back}, topics))  # type: ignore[arg-type]


def test_redriven_event_is_queued_and_not_dead_until_the_lanes_have_passed_it():
    account = redriven({}, back=5)
    assert (account.upstream[Bin.QUEUED], account.upstream[Bin.DEAD]) == (at(ONE), at(TWO))


def test_redriven_event_that_the_lanes_have_passed_without_a_result_is_lost_by_position():
    account = redriven({}, back=6)
    assert (account.upstream[Bin.LOST], account.upstream[Bin.DEAD]) == (at(ONE), at(TWO))


def test_redriven_event_that_fails_again_is_dead():
    account = redriven({FactKey("route", Fact.DEAD, "route/2"): [ONE]}, back=6)
    assert account.upstream[Bin.DEAD] == at(ONE, TWO)


def test_redriven_event_that_passed_the_steps_has_arrived_at_later_nodes():
    account = redriven(through(ONE), back=6)
    assert account.upstream[Bin.DEAD] == at(TWO)
    assert account.count(Bin.LOST) == 0


def test_unit_held_again_is_held():
    account = derived({RELEASED: PLACES, AGAIN: [TWO], **through(ONE)}, back=6)
    assert account.upstream[Bin.HELD] == at(TWO)
    assert account.count(Bin.LOST) == 0


def test_released_unit_that_passed_the_steps_has_arrived_at_later_nodes():
    account = derived({RELEASED: [ONE], **through(ONE)}, back=6)
    lines = {line.node: line for line in account.nodes}
    assert lines[ENTRANCE].arrived == at(ONE, TWO)
    assert lines["route"].arrived == at(ONE)
