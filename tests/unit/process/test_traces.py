"""Spans of a process lane: one for each sampled message, with its stages, its outcome and its context."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import TRACEPARENT, carried
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan
from tests.support.traces import (
    SENDER,
    TRACE,
    TRACE_ID,
    UNSAMPLED,
    Traced,
    attributes_of,
    events,
    id_of,
    parent_of,
    trace_of,
)

SAMPLED: Headers = [(TRACEPARENT, TRACE.encode())]
ROUTES = {
    "mode": "all",
    "rules": [{"when": "body.n > 10", "to": ["crm"]}, {"when": "body.n > 20", "to": ["fraud"]}],
}
CAST = {"op": "cast", "path": "n", "to": "int"}


def lane_of(var: Path, traced: Traced | None, **fields: Any) -> MemoryLane:
    return opened(var, plan(**fields), tracing=traced.tracing if traced else None)


def test_message_has_one_span_below_that_of_ingest_with_its_position_and_revision(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced)
    lane.take(arrived(5, more=SAMPLED))
    assert not traced.spans, "not before all its records are stored"
    lane.store()
    (span,) = traced.spans
    assert (span.name, span.kind, trace_of(span), parent_of(span)) == ("process", SpanKind.CONSUMER, TRACE_ID, SENDER)
    assert attributes_of(span) == {
        "messaging.system": "kafka",
        "messaging.operation.type": "process",
        "messaging.destination.name": "penstock.c1.ingest.g1",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 5,
        "messaging.message.id": "id-0-5",
        "penstock.position": "1-0-5",
        "penstock.pipe": "p",
        "penstock.revision": 1,
        "penstock.source": "shop",
    }
    assert events(span) == ["normalize in", "normalize out", "transform:crm in", "sent"]
    assert carried(egress(lane)[0]["headers"]) == f"00-{TRACE_ID}-{id_of(span)}-01"


def test_all_destinations_get_the_same_parent_span(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced, destinations=("crm", "audit"))
    lane.take(arrived(5, more=SAMPLED))
    lane.store()
    assert {carried(record["headers"]) for record in egress(lane)} == {f"00-{TRACE_ID}-{id_of(traced.spans[0])}-01"}


def test_only_sampled_messages_have_spans_and_others_keep_their_traceparent(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced)
    lane.take(arrived(0), arrived(1, more=SAMPLED), arrived(2, more=[(TRACEPARENT, UNSAMPLED.encode())]))
    lane.store()
    assert [attributes_of(span)["penstock.position"] for span in traced.spans] == ["1-0-1"]
    assert [carried(record["headers"]) for record in egress(lane)][::2] == ["", UNSAMPLED]


@pytest.mark.parametrize(
    ("body", "happened"),
    [
        pytest.param(b'{"n":30}', ["transform:crm in", "transform:fraud in", "sent", "sent"], id="to both"),
        pytest.param(b'{"n":15}', ["transform:crm in", "sent"], id="to one"),
        pytest.param(b'{"n":5}', ["filtered"], id="to none"),
    ],
)
def test_span_has_only_the_events_of_its_own_message(tmp_path: Path, body: bytes, happened: list[str]):
    """Other messages of its run have other routes."""
    traced = Traced()
    lane = lane_of(tmp_path, traced, destinations=("crm", "fraud"), routes=ROUTES)
    lane.take(arrived(0, b'{"n":99}'), arrived(1, body, more=SAMPLED), arrived(2, b'{"n":1}'))
    lane.store()
    (span,) = traced.spans
    came = ["normalize in", "normalize out", "route in"]
    assert events(span) == [*came, *(["route out"] if happened != ["filtered"] else []), *happened]


def test_span_of_a_dead_message_is_an_error_with_its_cause_and_ends_at_its_stage(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced, normalize=[CAST])
    lane.take(arrived(0, b'{"n":"7"}'), arrived(1, b'{"n":"secret"}', more=SAMPLED))
    lane.store()
    (span,) = traced.spans
    assert events(span) == ["normalize in", "dead"]
    assert (span.status.status_code, attributes_of(span)["error.type"]) == (StatusCode.ERROR, "step")
    assert "secret" not in span.to_json()
    assert carried(dead(lane)[0]["headers"]) == f"00-{TRACE_ID}-{id_of(span)}-01", "a redrive joins the trace"


def test_children_of_an_explode_carry_the_span_of_their_message(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced, normalize=[{"op": "explode", "path": "lines"}])
    lane.take(arrived(0, b'{"lines":[1,2,3]}', more=SAMPLED))
    lane.store()
    (span,) = traced.spans
    assert {carried(record["headers"]) for record in egress(lane)} == {f"00-{TRACE_ID}-{id_of(span)}-01"}
    assert events(span)[:3] == ["normalize in", "normalize out", "transform:crm in"]


def test_senders_trace_is_passed_on_unchanged_without_tracing(tmp_path: Path):
    lane = lane_of(tmp_path, None)
    lane.take(arrived(5, more=SAMPLED))
    lane.store()
    assert carried(egress(lane)[0]["headers"]) == TRACE
