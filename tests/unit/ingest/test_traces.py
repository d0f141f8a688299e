"""Ingest's spans: from the arrival of a request to its ACK, and the trace context that events carry."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from dataplane.ingest.event_results import EventResult, status_of
from dataplane.ingest.events import Item, ReceivedEvent
from dataplane.ingest.traces import IngestTracing
from dataplane.ledger.traceparent import TRACEPARENT, carried, sampled
from tests.support.traces import SENDER, TRACE, TRACE_ID, UNSAMPLED, Traced, attributes_of, id_of, parent_of, trace_of

JSON = ("content-type", b"application/json")
ROUTE: Any = SimpleNamespace(pipe=SimpleNamespace(pipe="p", cell="c1"), source="shop", webhook=None)
TAKEN = EventResult(202, "id-1", "1-0-5", 29_833_333)
AWAY = EventResult(503, code="unavailable")
BEGAN_US = 1_790_000_000_000_000


def events(count: int = 1, trace: str = "") -> list[Any]:
    headers = [JSON, (TRACEPARENT, trace.encode())] if trace else [JSON]
    return [ReceivedEvent(b"{}", {}, headers) for _ in range(count)]


def taken(traced: Traced, items: list[Item], verdicts: list[EventResult], trace: str = "") -> None:
    async def take(_route: Any, given: Iterable[Item]) -> list[EventResult]:
        assert list(given) == items
        return verdicts

    asyncio.run(IngestTracing(traced.tracing, take).posted(ROUTE, items, trace, BEGAN_US))


def read(traced: Traced, items: list[Any]) -> list[ReadableSpan]:
    async def take(_route: Any, given: Iterable[Item]) -> list[EventResult]:
        return [EventResult(202, str(number)) for number, _ in enumerate(given)]

    asyncio.run(IngestTracing(traced.tracing, take).read(ROUTE, items))
    return list(traced.spans)


def test_request_span_is_a_child_of_the_senders_and_the_event_carries_its_context():
    traced, items = Traced(), events()
    taken(traced, items, [TAKEN], TRACE)
    (span,) = traced.spans
    assert (span.name, span.kind, trace_of(span), parent_of(span)) == (
        "POST /v1/events", SpanKind.SERVER, TRACE_ID, SENDER,
    )  # fmt: skip
    assert span.start_time == BEGAN_US * 1_000
    assert attributes_of(span) == {
        "http.request.method": "POST",
        "http.route": "/v1/events",
        "http.response.status_code": 202,
        "messaging.message.id": "id-1",
        "penstock.position": "1-0-5",
        "penstock.pipe": "p",
        "penstock.source": "shop",
        "penstock.cell": "c1",
    }
    assert items[0].headers == [JSON, (TRACEPARENT, f"00-{TRACE_ID}-{id_of(span)}-01".encode())]


def test_span_of_a_webhook_names_its_route_without_the_secret_part(monkeypatch: pytest.MonkeyPatch):
    traced, items = Traced(), events()
    monkeypatch.setattr(ROUTE, "webhook", object())
    taken(traced, items, [TAKEN])
    (span,) = traced.spans
    assert (span.name, attributes_of(span)["http.route"]) == ("POST /v1/hooks/{secret}", "/v1/hooks/{secret}")


def test_request_without_a_trace_starts_a_new_one():
    traced, items = Traced(), events()
    taken(traced, items, [TAKEN])
    (span,) = traced.spans
    assert parent_of(span) == ""
    assert carried(items[0].headers).startswith(f"00-{trace_of(span)}-{id_of(span)}-")
    assert sampled(items[0].headers)


def test_unsampled_request_adds_no_header_to_its_events():
    traced, items = Traced(ALWAYS_OFF), events()
    taken(traced, items, [TAKEN])
    assert not traced.spans
    assert items[0].headers == [JSON]


def test_senders_trace_is_propagated_as_unsampled_if_not_recorded_here():
    for traced, trace in ((Traced(ALWAYS_OFF), TRACE), (Traced(), UNSAMPLED)):
        items = events()
        taken(traced, items, [TAKEN], trace)
        assert not traced.spans
        assert carried(items[0].headers).startswith(f"00-{TRACE_ID}-")
        assert carried(items[0].headers).endswith("-00")


def test_events_of_a_batch_share_one_span_that_reports_their_number():
    traced, items = Traced(), events(3)
    taken(traced, items, [TAKEN, TAKEN, EventResult(400)], TRACE)
    (span,) = traced.spans
    told = attributes_of(span)
    assert len({carried(item.headers) for item in items}) == 1
    assert (told["messaging.batch.message_count"], told["penstock.accepted"]) == (3, 2)
    assert told["http.response.status_code"] == 207
    assert "messaging.message.id" not in told


def test_span_is_an_error_if_events_are_not_stored_but_not_if_they_are_refused():
    traced = Traced()
    taken(traced, events(), [AWAY])
    taken(traced, events(), [EventResult(413, code="event-too-large")])
    unavailable, refused = traced.spans
    assert (unavailable.status.status_code, attributes_of(unavailable)["error.type"]) == (
        StatusCode.ERROR,
        "unavailable",
    )
    assert (refused.status.status_code, attributes_of(refused)["http.response.status_code"]) == (StatusCode.UNSET, 413)


def test_records_of_a_kafka_source_continue_the_trace_that_each_carries():
    traced = Traced()
    items = [*events(1, TRACE), *events(2)]
    of_sender, ours = read(traced, items)
    assert (of_sender.name, of_sender.kind, parent_of(of_sender)) == ("receive", SpanKind.CONSUMER, SENDER)
    assert parent_of(ours) == ""
    assert attributes_of(of_sender)["messaging.message.id"] == "0"
    assert attributes_of(ours)["messaging.batch.message_count"] == 2
    assert [carried(item.headers).split("-")[2] for item in items] == [id_of(of_sender), id_of(ours), id_of(ours)]


@pytest.mark.parametrize(
    ("statuses", "status"),
    [([202, 202], 202), ([202, 400], 207), ([503, 202], 207), ([413, 413], 413), ([400, 503], 400), ([], 202)],
)
def test_status_of_a_batch_combines_the_statuses_of_its_events(statuses: list[int], status: int):
    assert status_of([EventResult(one) for one in statuses]) == status
