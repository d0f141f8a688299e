"""Units that dedup was asked about: queued while somebody may have them, then through, a repeat, or lost by name."""

from pyroaring import BitMap64

from dataplane.ledger.bins import Account, Bin, Books, derive
from dataplane.ledger.facts import ACKED, ASKED, DEDUP, INGEST, JUDGED, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet

PLACES = [position_of(1, 0, offset) for offset in (1, 2, 3)]
ONE, TWO, THREE = PLACES
ASK, BACK = ("ask", 0), ("in", 0)


def derived(more: dict[FactKey, list[int]], *, asked: int, back: int) -> Account:
    """Three messages that dedup was asked about (up to offset 2) and that came back (up to offset 5 of ingest)."""
    facts = {
        FactKey(INGEST, Fact.SENT, ACKED): PLACES,
        FactKey(INGEST, Fact.SENT, SEEN): PLACES,
        FactKey(DEDUP, Fact.SENT, ASKED): PLACES,
        FactKey(DEDUP, Fact.SENT, JUDGED): PLACES,
        **more,
    }
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics = {"ingest": [("in", 1)], "dedup": [("ask", 1)], "egress": [("out", 1)]}
    return derive(Books(bitmaps, {ASK: 2, BACK: 5}, {ASK: asked, BACK: back}, topics))  # type: ignore[arg-type]


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


def test_while_the_query_has_not_passed_them_they_are_queued_although_process_has():
    account = derived({}, asked=2, back=6)
    assert account.upstream[Bin.QUEUED] == at(*PLACES)
    assert account.count(Bin.LOST) == 0


def test_judged_and_not_yet_read_again_they_are_queued():
    assert derived({}, asked=3, back=5).upstream[Bin.QUEUED] == at(*PLACES)


def test_in_the_end_each_is_through_or_a_repeat_and_what_is_neither_is_lost_and_named():
    more = {FactKey(PROCESS, Fact.SENT): [ONE], FactKey(DEDUP, Fact.DUPLICATE, "1-0-1"): [TWO]}
    account = derived(more, asked=3, back=6)
    assert account.upstream[Bin.DUPLICATE] == at(TWO)
    assert account.upstream[Bin.LOST] == at(THREE)
    assert account.upstream[Bin.QUEUED] == at()


def test_the_node_stands_between_ingest_and_normalize():
    more = {FactKey(PROCESS, Fact.SENT): [ONE], FactKey(DEDUP, Fact.DUPLICATE, "1-0-1"): [TWO]}
    lines = {line.node: line for line in derived(more, asked=3, back=6).nodes}
    assert list(lines)[:3] == ["ingest", "dedup", "normalize"]
    assert lines["dedup"].arrived == at(ONE, TWO)
    assert lines["normalize"].arrived == at(ONE)
