"""Spans of a transmit lane: one per attempt, the parent that its request names, and no secrets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import TRACEPARENT, carried
from dataplane.spec import BatchSettings, RetryPolicy
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, message
from tests.support.traces import SENDER, TRACE, TRACE_ID, UNSAMPLED, Traced, attributes_of, id_of, parent_of, trace_of
from tests.support.transmitting import MemorySender, destination, opened, without_kafka

SAMPLED: Headers = [(TRACEPARENT, TRACE.encode())]


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


Opened = tuple[MemoryLane, TransmitWork, MemorySender]
Open = Callable[..., Opened]


@pytest.fixture
def lane_to(tmp_path: Path) -> Iterator[Open]:
    """Open a lane to a destination, and close it after the test."""
    works: list[TransmitWork] = []

    def opens(to: DestinationRecord, traced: Traced | None) -> Opened:
        lane, work, sender = opened(tmp_path, to, tracing=traced.tracing if traced else None)
        works.append(work)
        return lane, work, sender

    yield opens
    for work in works:
        work.close()


def asked_with(sender: MemorySender) -> list[str]:
    """Return the traceparent of each request; an empty text where there is none."""
    named = [[line[13:] for line in headers if line.startswith("traceparent: ")] for _, headers, *_ in sender.requests]
    return [found[0] if found else "" for found in named]


def test_attempt_records_a_span_and_its_request_names_it(lane_to: Open):
    traced = Traced()
    url = "https://me:word@hooks.example:8443/services/T0/secret?token=secret"
    lane, work, sender = lane_to(destination(url=url), traced)
    lane.take(message(5, b'{"secret":1}', more=SAMPLED))
    work.poll()
    sender.answer(204)
    work.poll()
    (span,) = traced.spans
    assert (span.name, span.kind, trace_of(span), parent_of(span)) == ("POST", SpanKind.CLIENT, TRACE_ID, SENDER)
    assert asked_with(sender) == [f"00-{TRACE_ID}-{id_of(span)}-01"]
    assert attributes_of(span) == {
        "http.request.method": "POST",
        "http.response.status_code": 204,
        "server.address": "hooks.example",
        "server.port": 8443,
        "url.scheme": "https",
        "messaging.message.id": "id-0-5",
        "penstock.position": "0-0-5",
        "penstock.pipe": "p",
        "penstock.revision": 1,
        "penstock.destination": "crm",
        "penstock.attempt": 1,
        "penstock.round": 0,
        "penstock.outcome": "delivered",
    }
    assert not {"secret", "word"} & set(span.to_json().replace('"', " ").split())
    assert "secret" not in span.to_json()


def test_attempts_of_one_message_are_numbered_siblings_and_a_scheduled_retry_keeps_its_parent(lane_to: Open):
    traced = Traced()
    lane, work, sender = lane_to(destination(retry=RetryPolicy(local_tries=1)), traced)
    lane.take(message(5, more=SAMPLED))
    work.poll()
    sender.answer(500)
    work.poll()
    (first,) = traced.spans
    assert (first.status.status_code, attributes_of(first)["error.type"], attributes_of(first)["penstock.outcome"]) == (
        StatusCode.ERROR, "500", "parked",
    )  # fmt: skip
    assert attributes_of(first)["penstock.next_us"] > (first.start_time or 0) / 1_000
    (parked,) = lane.producer.of(lane.cell.topics["retry-in"].name)
    assert carried(parked["headers"]) == TRACE, "the next attempt joins the trace as this one did"
    lane.take(message(6, more=SAMPLED, position=5, attempt=1, tried=1))
    work.poll()
    sender.answer(204)
    work.poll()
    second = traced.spans[1]
    assert (trace_of(second), parent_of(second)) == (TRACE_ID, SENDER)
    assert (attributes_of(second)["penstock.attempt"], attributes_of(second)["http.request.resend_count"]) == (2, 1)
    assert asked_with(sender) == [f"00-{TRACE_ID}-{id_of(span)}-01" for span in (first, second)]


def test_missing_response_is_an_error_with_its_cause(lane_to: Open):
    traced = Traced()
    lane, work, sender = lane_to(destination(), traced)
    lane.take(message(5, more=SAMPLED))
    work.poll()
    sender.answer(0, 28)
    work.poll()
    (span,) = traced.spans
    assert attributes_of(span)["error.type"] == "timeout"
    assert "http.response.status_code" not in attributes_of(span)


def test_batch_names_no_trace_and_each_sampled_message_of_it_gets_a_span(lane_to: Open):
    traced = Traced()
    batch = BatchSettings(max_events=3, max_wait_ms=1)
    lane, work, sender = lane_to(destination(batch=batch), traced)
    lane.take(message(5, more=SAMPLED), message(6), message(7, more=SAMPLED))
    work.poll()
    sender.answer(204)
    work.poll()
    assert asked_with(sender) == [""]
    assert [attributes_of(span)["penstock.position"] for span in traced.spans] == ["0-0-5", "0-0-7"]
    assert all((parent_of(span), span.kind) == (SENDER, SpanKind.CLIENT) for span in traced.spans)


@pytest.mark.parametrize("more", [[], [(TRACEPARENT, UNSAMPLED.encode())]], ids=["none", "not recorded"])
def test_unsampled_message_records_no_span_and_keeps_its_traceparent(lane_to: Open, more: Headers):
    traced = Traced()
    lane, work, sender = lane_to(destination(), traced)
    lane.take(message(5, more=more))
    work.poll()
    sender.answer(204)
    work.poll()
    assert not traced.spans
    assert asked_with(sender) == [UNSAMPLED if more else ""]


def test_request_names_the_trace_of_the_sender_without_tracing(lane_to: Open):
    lane, work, sender = lane_to(destination(), None)
    lane.take(message(5, more=SAMPLED))
    work.poll()
    assert asked_with(sender) == [TRACE]
