"""What a ramping revision made of its messages: its booked set, met with the ledger's bins."""

from datetime import UTC, datetime, timedelta

from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, Books, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, Fact, FactKey
from mgmt.queries.ramps import Figures, add_up, figures, taken_units

BUCKET = 100
SOON = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=BUCKET, seconds=30)
LATER = SOON + timedelta(minutes=3)
OURS, THEIRS = "ramp:5:8", "ramp:5:7"


def at(*offsets: int) -> BitMap64:
    return BitMap64(offsets)


def books(ours: BitMap64, theirs: BitMap64, **changes: BitMap64) -> Books:
    """Messages of both revisions, all ACKed and seen, delivered where nothing else is said. Offset 9 is not settled."""
    sent = ours | theirs
    ended = BitMap64().union(*changes.values()) if changes else BitMap64()
    delivered = sent - ended
    facts = {
        FactKey(INGEST, Fact.SENT, ACKED): sent,
        FactKey(INGEST, Fact.SENT, SEEN): sent,
        FactKey(OURS, Fact.SENT): ours,
        FactKey(THEIRS, Fact.SENT): theirs,
        FactKey(PROCESS, Fact.SENT): delivered | changes.get("parked", at()) | changes.get("lost", at()),
        FactKey("transform:crm", Fact.SENT): delivered | changes.get("parked", at()) | changes.get("lost", at()),
        FactKey("transmit:crm", Fact.DELIVERED): delivered,
        FactKey("transmit:crm", Fact.PARKED, "1"): changes.get("parked", at()),
        FactKey("normalize", Fact.DEAD, "step"): changes.get("dead", at()),
        FactKey("normalize", Fact.FILTERED, "filter"): changes.get("filtered", at()),
    }
    topics = {"ingest": [("in", 0)], "egress": [("out", 0)]}
    reach, passed = {("out", 0): 3}, {("in", 0): 9, ("out", 0): 4}
    return Books(facts=facts, reach=reach, passed=passed, topics=topics)  # type: ignore[arg-type]


def of(known: Books, node: str = OURS, now: datetime = SOON) -> Figures:
    return figures(known, derive(known), node, BUCKET, now)


def test_each_message_counts_for_the_revision_that_took_it():
    known = books(at(1, 2, 3), at(4, 5, 6, 7), dead=at(1, 4), parked=at(2), filtered=at(5))
    assert of(known) == Figures(taken=3, failed=2)
    assert of(known, THEIRS) == Figures(taken=4, failed=1, filtered=1)


def test_what_everybody_is_past_and_nobody_settled_is_lost_by_its_revision():
    known = books(at(1, 2), at(4), lost=at(2))
    assert (of(known).lost, of(known, THEIRS).lost) == (1, 0)


def test_what_waits_before_the_route_is_stuck_when_its_minute_is_well_over():
    known = books(at(1, 9), at(4), waits=at(9))
    assert of(known, now=SOON).stuck == 0
    assert of(known, now=LATER).stuck == 1
    assert of(known, THEIRS, LATER).stuck == 0


def test_minutes_add_up():
    total = add_up([Figures(taken=3, failed=1), Figures(taken=2, lost=1)], 7)
    assert total == Figures(taken=5, failed=1, lost=1, p95_us=7)


def test_what_a_revision_took_is_listed_with_where_it_is_now():
    known = books(at(1, 2), at(4), dead=at(1))
    found = {(unit.position, unit.destination, unit.bin) for unit in taken_units(BUCKET, known, [OURS])}
    assert found == {(1, "", Bin.DEAD), (2, "crm", Bin.DELIVERED)}
