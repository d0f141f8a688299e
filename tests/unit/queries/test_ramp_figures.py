"""Figures of a ramping revision: its ramp facts combined with the ledger's bins."""

from datetime import UTC, datetime, timedelta

from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketFacts, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, Fact, FactKey
from mgmt.ramps.queries import RampFigures, add_up, figures, ramped_units

BUCKET = 100
SOON = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=BUCKET, seconds=30)
LATER = SOON + timedelta(minutes=3)
OURS, THEIRS = "ramp:5:8", "ramp:5:7"


def at(*offsets: int) -> BitMap64:
    return BitMap64(offsets)


def books(ours: BitMap64, theirs: BitMap64, **changes: BitMap64) -> BucketFacts:
    """Return facts of both revisions: all ACKed and seen, delivered by default. Offset 9 is not settled."""
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
    return BucketFacts(facts=facts, reach=reach, passed=passed, topics=topics)  # type: ignore[arg-type]


def of(known: BucketFacts, node: str = OURS, now: datetime = SOON) -> RampFigures:
    return figures(known, derive(known), node, BUCKET, now)


def test_each_message_counts_for_the_revision_that_processed_it():
    known = books(at(1, 2, 3), at(4, 5, 6, 7), dead=at(1, 4), parked=at(2), filtered=at(5))
    assert of(known) == RampFigures(taken=3, failed=2)
    assert of(known, THEIRS) == RampFigures(taken=4, failed=1, filtered=1)


def test_unit_that_every_node_passed_without_a_final_fact_is_lost_by_its_revision():
    known = books(at(1, 2), at(4), lost=at(2))
    assert (of(known).lost, of(known, THEIRS).lost) == (1, 0)


def test_message_waiting_before_the_route_is_stuck_once_its_minute_is_well_over():
    known = books(at(1, 9), at(4), waits=at(9))
    assert of(known, now=SOON).stuck == 0
    assert of(known, now=LATER).stuck == 1
    assert of(known, THEIRS, LATER).stuck == 0


def test_figures_of_minutes_add_up():
    total = add_up([RampFigures(taken=3, failed=1), RampFigures(taken=2, lost=1)], 7)
    assert total == RampFigures(taken=5, failed=1, lost=1, p95_us=7)


def test_units_of_a_revision_are_listed_with_their_bins():
    known = books(at(1, 2), at(4), dead=at(1))
    found = {(unit.position, unit.destination, unit.bin) for unit in ramped_units(BUCKET, known, [OURS])}
    assert found == {(1, "", Bin.DEAD), (2, "crm", Bin.DELIVERED)}
