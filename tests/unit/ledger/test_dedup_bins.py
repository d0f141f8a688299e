"""Bins of units at dedup: queued while the query or a lane may have them, then passed, duplicate or lost."""

from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, ASKED, DEDUP, INGEST, JUDGED, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet

PLACES = [position_of(1, 0, offset) for offset in (1, 2, 3)]
ONE, TWO, THREE = PLACES
ASK, BACK = ("ask", 0), ("in", 0)


def derived(more: dict[FactKey, list[int]], *, asked: int, back: int) -> BucketAccount:
    """Derive the account of three messages sent to dedup (up to offset 2) and returned (up to ingest offset 5)."""
    facts = {
        FactKey(INGEST, Fact.SENT, ACKED): PLACES,
        FactKey(INGEST, Fact.SENT, SEEN): PLACES,
        FactKey(DEDUP, Fact.SENT, ASKED): PLACES,
        FactKey(DEDUP, Fact.SENT, JUDGED): PLACES,
        **more,
    }
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics = {"ingest": [("in", 1)], "dedup": [("ask", 1)], "egress": [("out", 1)]}
    return derive(BucketFacts(bitmaps, {ASK: 2, BACK: 5}, {ASK: asked, BACK: back}, topics))  # type: ignore[arg-type]


def through(*positions: int) -> dict[FactKey, list[int]]:
    """Return the facts of units that passed the route and were sent to crm."""
    return {FactKey(PROCESS, Fact.SENT): [*positions], FactKey("transform:crm", Fact.SENT): [*positions]}


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


def test_units_are_queued_until_the_dedup_query_has_passed_them_although_process_has():
    account = derived({}, asked=2, back=6)
    assert account.upstream[Bin.QUEUED] == at(*PLACES)
    assert account.count(Bin.LOST) == 0


def test_judged_units_are_queued_until_process_reads_them_again():
    assert derived({}, asked=3, back=5).upstream[Bin.QUEUED] == at(*PLACES)


def test_each_unit_has_finally_passed_or_is_a_duplicate_or_is_lost_by_position():
    more = {**through(ONE), FactKey(DEDUP, Fact.DUPLICATE, "1-0-1"): [TWO]}
    account = derived(more, asked=3, back=6)
    assert account.upstream[Bin.DUPLICATE] == at(TWO)
    assert account.upstream[Bin.LOST] == at(THREE)
    assert account.upstream[Bin.QUEUED] == at()


def test_dedup_node_is_between_ingest_and_normalize():
    more = {**through(ONE), FactKey(DEDUP, Fact.DUPLICATE, "1-0-1"): [TWO]}
    lines = {line.node: line for line in derived(more, asked=3, back=6).nodes}
    assert list(lines)[:3] == ["ingest", "dedup", "normalize"]
    assert lines["dedup"].arrived == at(ONE, TWO)
    assert lines["normalize"].arrived == at(ONE)
