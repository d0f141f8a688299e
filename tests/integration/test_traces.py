"""Traces on real services: one message from its sender's trace to its destination, through Kafka; and a collector
that hangs and delays nobody."""

import json
import os
from asyncio import StreamWriter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyroaring import BitMap64

from dataplane.names import HEARTBEAT_TOPIC
from dataplane.tables.records import RedriveRecord
from dataplane.tables.redrives import encode_offsets
from loadgen.scripted import Behaviour, status
from tests.support.collector import Collector, ReceivedSpan
from tests.support.kafka import admin_consumer
from tests.support.lane_plane import LanePlane
from tests.support.patience import until
from tests.support.watch import Heartbeats

QUEUE = 50  # span limit of a process's queue


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture(scope="module")
def plane(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePlane]:
    traced = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_TRACES_SAMPLER": "parentbased_always_off",
        "OTEL_BSP_MAX_QUEUE_SIZE": str(QUEUE),
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    plane = LanePlane(tmp_path_factory.mktemp("plane"), more=traced)
    plane.wait_ready()
    yield plane
    plane.close()


def senders_trace() -> tuple[str, str, str]:
    """Return a trace that a sender has begun and records: its id, the sender's span, the header."""
    trace, span = os.urandom(16).hex(), os.urandom(8).hex()
    return trace, span, f"00-{trace}-{span}-01"


def in_turn(*statuses: int) -> Behaviour:
    """Answer with each of these statuses once, in order."""
    left = iter(statuses)

    async def behave(writer: StreamWriter, received: Any) -> bool:
        return await status(next(left))(writer, received)

    return behave


def named(spans: list[ReceivedSpan], name: str) -> list[ReceivedSpan]:
    return [span for span in spans if span.name == name]


def test_one_trace_connects_the_sender_and_the_destination(plane: LanePlane, collector: Collector):
    path = "/traced?token=secret"
    plane.receiver.answers[path] = in_turn(503, 503, 200)
    key = plane.add_pipe("traced", {"crm": {"url": plane.receiver.url(path), "retry": {"local_tries": 5}}})
    trace, sender, traceparent = senders_trace()
    code, _, body = plane.post(key, b'{"n":"payload"}', traceparent=traceparent)
    verdict = json.loads(body)
    assert code == 202
    until(lambda: len(collector.of(trace)) == 5, "five spans", 60, seen=lambda: collector.of(trace))
    spans = collector.of(trace)
    (ingest,), (process,), attempts = (named(spans, name) for name in ("POST /v1/events", "process", "POST"))
    assert [span.service for span in (ingest, process, *attempts)] == [
        "penstock-ingest", "penstock-process", *["penstock-transmit"] * 3,
    ]  # fmt: skip
    assert (ingest.parent, process.parent) == (sender, ingest.id)
    assert {span.parent for span in attempts} == {process.id}
    requests = plane.receiver.got[path]
    assert [one.headers["traceparent"] for one in requests] == [f"00-{trace}-{span.id}-01" for span in attempts]
    assert [span.attributes["http.response.status_code"] for span in attempts] == [503, 503, 200]
    assert [span.attributes["penstock.attempt"] for span in attempts] == [1, 2, 3]
    assert [span.attributes["penstock.outcome"] for span in attempts] == ["retry", "retry", "delivered"]
    assert process.events == ["normalize in", "normalize out", "transform:crm in", "sent"]
    for span in spans:
        assert span.attributes["messaging.message.id"] == verdict["id"]
        assert span.attributes["penstock.position"] == verdict["position"]
        assert span.attributes["penstock.pipe"] == "traced"
        assert span.ended_ns >= span.began_ns
        assert "secret" not in str(span)
        assert "payload" not in str(span)
    assert ingest.ended_ns >= ingest.began_ns <= process.began_ns <= attempts[0].began_ns


def redrive_all(plane: LanePlane, pipe: str) -> None:
    """Request the redrive of everything on the dead topic; records of other pipes are skipped."""
    topic, numbers = plane.cluster.topics["dead"].name, range(plane.cluster.partitions)
    consumer = admin_consumer({"bootstrap.servers": plane.broker.address, "group.id": "rig-dead", "log_level": 3})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] for number in numbers]
    consumer.close()
    offsets = encode_offsets({(topic, number): BitMap64(range(end)) for number, end in enumerate(ends) if end})
    version, cell = plane.cluster.version(), plane.cluster.cell
    plane.cluster.publish(RedriveRecord("m-traced", version, cell, pipe, "crm", "redrive", offsets, 1_000.0, "running"))


def test_redriven_dead_letter_joins_its_trace(plane: LanePlane, collector: Collector):
    path = "/redriven"
    plane.receiver.answers[path] = in_turn(400, 200)
    key = plane.add_pipe("redriven", {"crm": {"url": plane.receiver.url(path)}})
    trace, _, traceparent = senders_trace()
    _, _, body = plane.post(key, b"{}", traceparent=traceparent)
    plane.settled("redriven", {json.loads(body)["position"]})
    redrive_all(plane, "redriven")
    until(lambda: len(collector.of(trace)) == 5, "five spans", 60, seen=lambda: collector.of(trace))
    spans = collector.of(trace)
    (process,), (redrive,), (refused, taken) = (named(spans, name) for name in ("process", "redrive", "POST"))
    assert (refused.parent, redrive.parent, taken.parent) == (process.id, process.id, redrive.id)
    assert (refused.attributes["penstock.outcome"], taken.attributes["penstock.outcome"]) == ("dead", "delivered")
    assert (redrive.service, taken.service) == ("penstock-retrier", "penstock-transmit-retry")
    requests = plane.receiver.got[path]
    assert [one.headers["traceparent"] for one in requests] == [f"00-{trace}-{s.id}-01" for s in (refused, taken)]


def test_message_without_a_trace_that_the_sampler_skips_leaves_no_trace(plane: LanePlane, collector: Collector):
    plane.receiver.answers["/untraced"] = 200
    key = plane.add_pipe("untraced", {"crm": {"url": plane.receiver.url("/untraced")}})
    _, _, body = plane.post(key, b"{}")
    plane.settled("untraced", {json.loads(body)["position"]})
    (request,) = plane.receiver.got["/untraced"]
    assert "traceparent" not in request.headers


def test_hanging_collector_delays_nobody_and_dropped_spans_are_counted(plane: LanePlane, collector: Collector):
    plane.receiver.answers["/many"] = 200
    key = plane.add_pipe("many", {"crm": {"url": plane.receiver.url("/many")}})
    heartbeats = Heartbeats(plane.broker.address)
    collector.hangs.set()
    try:
        trace, _, traceparent = senders_trace()
        events = json.dumps([{"n": number} for number in range(QUEUE * 20)]).encode()
        _, _, body = plane.post(key, events, traceparent=traceparent)
        positions = {item["position"] for item in json.loads(body)["items"]}
        assert len(positions) == QUEUE * 20
        whole = plane.settled("many", positions)
        assert whole.acked >= positions
        assert not collector.of(trace), "the collector hangs throughout"

        kept = 2 * QUEUE  # at most: the spans of one request to the collector, and a full queue

        def dropped() -> dict[str, int]:
            heartbeats.refresh()
            return {name: beat.dropped_spans for name, beat in heartbeats.latest.items()}

        def are_counted() -> bool:
            told = dropped()
            return all(told.get(name, 0) >= len(positions) - kept for name in ("process-0", "transmit-0"))

        until(are_counted, f"drops told on {HEARTBEAT_TOPIC}", 30, seen=dropped)
    finally:
        collector.hangs.clear()
        heartbeats.close()
    until(lambda: collector.of(trace), "spans again, once it answers", 30)
