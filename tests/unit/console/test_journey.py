"""A message's journey in words: changes, their order, and where a lost message was last seen."""

from datetime import UTC, datetime, timedelta

import pytest

from dataplane.ledger.facts import ACKED, DEDUP, INGEST, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.dryrun import DryRunResult
from mgmt.deliveries.queries.attempts import AttemptLine
from mgmt.ledger.last_seen import last_seen
from mgmt.messages.presenters import arrival_of, leg_line, stage_line, summary
from mgmt.messages.queries.journey import Journey, JourneyLeg
from mgmt.messages.queries.recompute import RecomputedStage
from mgmt.messages.queries.records import StoredRecord
from tests.support.traces import TRACE, TRACE_ID

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TRANSMIT = "transmit:crm"
ACK, SEE = FactKey(INGEST, Fact.SENT, ACKED), FactKey(INGEST, Fact.SENT, SEEN)


def attempt(after_s: float, outcome: str, status: int) -> AttemptLine:
    at, reason = NOON + timedelta(seconds=after_s), "" if status < 300 else "server-error"
    return AttemptLine(
        1,
        "m",
        "1-0-7",
        1,
        "crm",
        1,
        1,
        at,
        status,
        outcome,
        reason,
        "203.0.113.9",
        31_000,
        (("first byte", 30_000),),
        None,
    )


def leg(
    bin_: str, *facts: FactKey, told: dict[FactKey, datetime] | None = None, attempts: tuple[AttemptLine, ...] = ()
):
    return JourneyLeg("crm", bin_, list(facts), told or {}, list(attempts), left_at=NOON)


def journey_of(*legs: JourneyLeg, bin_: str = "") -> Journey:
    return Journey(1, 0, "m", 1, bin_, [], list(legs))


@pytest.mark.parametrize(
    ("result", "words", "colour"),
    [
        (DryRunResult("m", "passed", '{"a":2}'), "lines: 1 removed, 1 added", "fine"),
        (DryRunResult("m", "passed", '{"a":1}'), "passed unchanged", "fine"),
        (DryRunResult("m", "dead", cause="step", detail="normalize[0] set a: no"), "(normalize[0] set a: no)", "bad"),
        (DryRunResult("m", "filtered", cause="filter"), "ended here", "off"),
    ],
)
def test_stage_line_describes_the_change_of_the_message(result: DryRunResult, words: str, colour: str):
    line = stage_line(RecomputedStage("normalize", '{"a":1}', result, 12))
    assert words in line.words
    assert line.colour == colour


def test_steps_are_in_order_of_time_without_duplicates():
    parked, released = FactKey(TRANSMIT, Fact.PARKED, "1"), FactKey(TRANSMIT, Fact.RELEASED, "1")
    delivered = FactKey(TRANSMIT, Fact.DELIVERED)
    told = {released: NOON + timedelta(seconds=11), parked: NOON + timedelta(seconds=1)}
    found = leg(
        "delivered",
        parked,
        released,
        delivered,
        told=told,
        attempts=(attempt(12, "delivered", 204), attempt(1, "parked", 503)),
    )
    line = leg_line(found, NOON - timedelta(seconds=1))
    assert [step.words for step in line.steps] == ["failed, retry scheduled", "released", "delivered"]
    assert (line.left_us, line.took_us) == (1_000_000, 12_031_000)


def test_delivery_without_a_stored_attempt_is_known_from_the_ledger():
    delivered = FactKey(TRANSMIT, Fact.DELIVERED)
    (step,) = leg_line(leg("delivered", delivered, told={delivered: NOON}), NOON).steps
    assert (step.words, step.is_about, step.at) == ("delivered", True, NOON)


@pytest.mark.parametrize(
    ("facts", "node", "words"),
    [
        ((), "ingest", "not reported"),
        ((ACK,), "ingest", "accepted by ingest"),
        ((ACK, SEE), "ingest", "read by a process lane"),
        ((ACK, FactKey(DEDUP, Fact.SENT, "asked")), "dedup", "handed to deduplication"),
        ((ACK, SEE, FactKey(PROCESS, Fact.SENT)), "route", "processed up to the route"),
        ((ACK, SEE, FactKey("transform:crm", Fact.SENT)), "transform:crm", "processed for the destination"),
        ((FactKey(TRANSMIT, Fact.PARKED, "3"),), TRANSMIT, "The retrier passed its offset"),
        ((FactKey(TRANSMIT, Fact.RELEASED, "3"),), TRANSMIT, "The retry lane passed its offset"),
        ((FactKey(TRANSMIT, Fact.REDRIVEN, "3"),), TRANSMIT, "redriven from the dead letters"),
        ((FactKey(TRANSMIT, Fact.HELD, "1"),), TRANSMIT, "no longer in the held topic"),
    ],
)
def test_lost_message_names_where_it_was_last_seen(facts: tuple[FactKey, ...], node: str, words: str):
    found = last_seen(facts)
    assert found.node == node
    assert words in found.words


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (journey_of(leg("delivered")), "delivered"),
        (journey_of(leg("delivered"), leg("delivered")), "delivered to all 2"),
        (journey_of(leg("delivered"), leg("dead")), "delivered to 1 of 2"),
        (journey_of(leg("retrying")), "retrying"),
        (journey_of(bin_="filtered"), "filtered"),
        (journey_of(), "not in the ledger yet"),
    ],
)
def test_summary_describes_the_journey_in_one_phrase(found: Journey, words: str):
    assert summary(found)[1] == words


@pytest.mark.parametrize("event_time_us", [0, -(1 << 60), 1 << 60])
def test_extreme_event_time_does_not_break_the_page(event_time_us: int):
    meta = MessageMeta(1, "m", "p", 1, "shop", event_time_us, 1_790_000_000_000_000, 1)
    arrival = arrival_of(StoredRecord(meta, (), b"{}", 2, NOON))
    assert arrival.age_us == 1_790_000_000_000_000 - event_time_us


@pytest.mark.parametrize(("header", "trace"), [(TRACE, TRACE_ID), ("00-nonsense-01", "")])
def test_arrival_names_the_trace_that_the_message_carries(header: str, trace: str):
    meta = MessageMeta(1, "m", "p", 1, "shop", 0, 1_790_000_000_000_000, 1)
    assert arrival_of(StoredRecord(meta, (("traceparent", header),), b"{}", 2, NOON)).trace == trace
