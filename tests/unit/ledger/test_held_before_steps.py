"""Units that were held before the steps: held, on their way back, through, or lost by name."""

from pyroaring import BitMap64

from dataplane.ledger.bins import Account, Bin, Books, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import ENTRANCE

ONE, TWO = PLACES = [position_of(1, 0, offset) for offset in (1, 2)]
HELD_AT, BACK_AT = ("held", 0), ("in", 0)
HELD, RELEASED, AGAIN = (
    FactKey(ENTRANCE, fact, number) for fact, number in ((Fact.HELD, "1"), (Fact.RELEASED, "1"), (Fact.HELD, "2"))
)


def derived(more: dict[FactKey, list[int]], *, back: int, kept_from: int = 0) -> Account:
    """Two messages that were held (up to offset 7); what is released reaches offset 5 of ingest, read up to `back`."""
    facts = {FactKey(INGEST, Fact.SENT, ACKED): PLACES, FactKey(INGEST, Fact.SENT, SEEN): PLACES, HELD: PLACES, **more}
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics = {"ingest": [("in", 1)], "held": [("held", 1)], "egress": [("out", 1)]}
    reach = {HELD_AT: 7} | ({BACK_AT: 5} if RELEASED in facts else {})
    return derive(Books(bitmaps, reach, {HELD_AT: kept_from, BACK_AT: back}, topics))  # type: ignore[arg-type]


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


def test_they_are_held_while_nobody_has_let_them_go():
    account = derived({}, back=9)
    assert account.upstream[Bin.HELD] == at(ONE, TWO)
    assert account.count(Bin.LOST) == 0


def test_what_the_topic_no_longer_keeps_is_lost_and_named():
    assert derived({}, back=9, kept_from=8).upstream[Bin.LOST] == at(ONE, TWO)


def test_what_is_released_is_queued_until_the_lanes_are_past_it():
    account = derived({RELEASED: [ONE]}, back=5)
    assert (account.upstream[Bin.QUEUED], account.upstream[Bin.HELD]) == (at(ONE), at(TWO))


def test_then_it_is_through_or_lost_and_named():
    account = derived({RELEASED: PLACES, FactKey(PROCESS, Fact.SENT): [ONE]}, back=6)
    assert account.upstream[Bin.LOST] == at(TWO)
    assert account.upstream[Bin.HELD] == at()


def test_what_is_held_again_is_held():
    account = derived({RELEASED: PLACES, AGAIN: [TWO], FactKey(PROCESS, Fact.SENT): [ONE]}, back=6)
    assert account.upstream[Bin.HELD] == at(TWO)
    assert account.count(Bin.LOST) == 0


def test_what_was_released_and_is_through_has_come_to_the_later_nodes():
    account = derived({RELEASED: [ONE], FactKey(PROCESS, Fact.SENT): [ONE]}, back=6)
    lines = {line.node: line for line in account.nodes}
    assert lines[ENTRANCE].arrived == at(ONE, TWO)
    assert lines["route"].arrived == at(ONE)
