"""A process lane's spans: one a sampled message, its stages as events, what became of it, and who carries it on."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import TRACEPARENT, carried
from tests.rig.memory_lane import MemoryLane
from tests.rig.process_lane import arrived, dead, egress, opened, plan
from tests.rig.traces import SENDER, TRACE, TRACE_ID, UNSAMPLED, Traced, events, id_of, parent_of, said, trace_of

SAMPLED: Headers = [(TRACEPARENT, TRACE.encode())]
ROUTES = {
    "mode": "all",
    "rules": [{"when": "body.n > 10", "to": ["crm"]}, {"when": "body.n > 20", "to": ["fraud"]}],
}
CAST = {"op": "cast", "path": "n", "to": "int"}


def lane_of(var: Path, traced: Traced | None, **fields: Any) -> MemoryLane:
    return opened(var, plan(**fields), tracing=traced.tracing if traced else None)


def test_a_message_has_one_span_below_ingests_that_names_it_and_its_revision(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced)
    lane.take(arrived(5, more=SAMPLED))
    assert not traced.spans, "not before everything it led to is stored"
    lane.store()
    (span,) = traced.spans
    assert (span.name, span.kind, trace_of(span), parent_of(span)) == ("process", SpanKind.CONSUMER, TRACE_ID, SENDER)
    assert said(span) == {
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


def test_all_destinations_get_the_same_parent(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced, destinations=("crm", "audit"))
    lane.take(arrived(5, more=SAMPLED))
    lane.store()
    assert {carried(record["headers"]) for record in egress(lane)} == {f"00-{TRACE_ID}-{id_of(traced.spans[0])}-01"}


def test_of_many_only_the_sampled_ones_leave_spans_and_the_others_go_on_as_they_came(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced)
    lane.take(arrived(0), arrived(1, more=SAMPLED), arrived(2, more=[(TRACEPARENT, UNSAMPLED.encode())]))
    lane.store()
    assert [said(span)["penstock.position"] for span in traced.spans] == ["1-0-1"]
    assert [carried(record["headers"]) for record in egress(lane)][::2] == ["", UNSAMPLED]


@pytest.mark.parametrize(
    ("body", "happened"),
    [
        pytest.param(b'{"n":30}', ["transform:crm in", "transform:fraud in", "sent", "sent"], id="to both"),
        pytest.param(b'{"n":15}', ["transform:crm in", "sent"], id="to one"),
        pytest.param(b'{"n":5}', ["filtered"], id="to none"),
    ],
)
def test_the_events_are_those_of_its_own_way(tmp_path: Path, body: bytes, happened: list[str]):
    """Others of its run go everywhere."""
    traced = Traced()
    lane = lane_of(tmp_path, traced, destinations=("crm", "fraud"), routes=ROUTES)
    lane.take(arrived(0, b'{"n":99}'), arrived(1, body, more=SAMPLED), arrived(2, b'{"n":1}'))
    lane.store()
    (span,) = traced.spans
    came = ["normalize in", "normalize out", "route in"]
    assert events(span) == [*came, *(["route out"] if happened != ["filtered"] else []), *happened]


def test_one_that_dies_is_an_error_with_its_cause_and_ends_at_its_stage(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced, normalize=[CAST])
    lane.take(arrived(0, b'{"n":"7"}'), arrived(1, b'{"n":"secret"}', more=SAMPLED))
    lane.store()
    (span,) = traced.spans
    assert events(span) == ["normalize in", "dead"]
    assert (span.status.status_code, said(span)["error.type"]) == (StatusCode.ERROR, "step")
    assert "secret" not in span.to_json()
    assert carried(dead(lane)[0]["headers"]) == f"00-{TRACE_ID}-{id_of(span)}-01", "a redrive joins the trace"


def test_children_of_an_explode_carry_their_messages_span(tmp_path: Path):
    traced = Traced()
    lane = lane_of(tmp_path, traced, normalize=[{"op": "explode", "path": "lines"}])
    lane.take(arrived(0, b'{"lines":[1,2,3]}', more=SAMPLED))
    lane.store()
    (span,) = traced.spans
    assert {carried(record["headers"]) for record in egress(lane)} == {f"00-{TRACE_ID}-{id_of(span)}-01"}
    assert events(span)[:3] == ["normalize in", "normalize out", "transform:crm in"]


def test_without_tracing_the_senders_trace_goes_on_as_it_came(tmp_path: Path):
    lane = lane_of(tmp_path, None)
    lane.take(arrived(5, more=SAMPLED))
    lane.store()
    assert carried(egress(lane)[0]["headers"]) == TRACE
