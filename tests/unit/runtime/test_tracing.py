"""OpenTelemetry's own variables enable tracing; spans that no collector accepts are dropped and counted."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from dataplane.runtime.telemetry.spans import CLOSE_S, BoundedSpanProcessor
from dataplane.runtime.telemetry.tracing import Tracing, traceparent_of, tracing_from
from localbox.settings import ROOT
from tests.support.traces import SENDER, TRACE, TRACE_ID, UNSAMPLED, Traced, parent_of, trace_of

NOWHERE = "http://127.0.0.1:9"


class Collector(SpanExporter):
    """Exporter that returns the given result, or hangs until `go_on` is set."""

    def __init__(self, *, answers: SpanExportResult = SpanExportResult.SUCCESS, hangs: bool = False) -> None:
        self.took: list[ReadableSpan] = []
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self._answers = answers
        if not hangs:
            self.go_on.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.go_on.wait(30)
        self.took += spans
        return self._answers


def kept(collector: Collector, most: int = 100, every_s: float = 0.01) -> tuple[Tracing, BoundedSpanProcessor]:
    provider, spans = (
        TracerProvider(shutdown_on_exit=False),
        BoundedSpanProcessor(collector, most=most, every_s=every_s),
    )
    provider.add_span_processor(spans)
    return Tracing(provider, spans), spans


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({}, id="nothing is set"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, id="empty, as containers set it"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": NOWHERE, "OTEL_SDK_DISABLED": "true"}, id="switched off"),
    ],
)
def test_tracing_is_off_without_an_endpoint(env: dict[str, str]):
    assert tracing_from("penstock-ingest", "ingest-1", env) is None


def test_sdk_is_not_imported_where_tracing_is_off():
    names = "dataplane.ingest.__main__, dataplane.jobs.lanes, dataplane.process.work, dataplane.transmit.work"
    script = f"import sys, {names}, dataplane.retrier.work; print([m for m in sys.modules if 'opentelemetry' in m])"
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_invalid_variables_disable_tracing_and_end_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", NOWHERE)
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "no number")
    assert tracing_from("penstock-ingest", "ingest-1") is None


def test_spans_name_the_process_and_environment_variables_have_precedence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", NOWHERE)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    tracing = tracing_from("penstock-process", "c1/process-0")
    assert tracing is not None
    who = tracing._provider.resource.attributes
    assert (who["service.name"], who["service.instance.id"]) == ("penstock-process", "c1/process-0")
    assert (who["service.namespace"], who["deployment.environment.name"]) == ("penstock", "staging")
    tracing.close()
    monkeypatch.setenv("OTEL_SERVICE_NAME", "streams")
    tracing = tracing_from("penstock-process", "c1/process-0")
    assert tracing is not None
    assert tracing._provider.resource.attributes["service.name"] == "streams"
    tracing.close()


def test_lane_joins_existing_traces_and_starts_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", NOWHERE)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    tracing = tracing_from("penstock-process", "c1/process-0", follows=True)
    assert tracing is not None
    assert [tracing.begin("x", "internal", {}, parent=p).is_recording() for p in (TRACE, UNSAMPLED, "")] == [
        True,
        False,
        False,
    ]
    tracing.close()


@pytest.mark.parametrize(("sampler", "recorded"), [("parentbased_always_off", False), ("parentbased_always_on", True)])
def test_process_that_starts_traces_samples_as_the_variables_say(
    monkeypatch: pytest.MonkeyPatch, sampler: str, recorded: bool
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", NOWHERE)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    tracing = tracing_from("penstock-ingest", "ingest-1")
    assert tracing is not None
    assert tracing.begin("x", "server", {}).is_recording() is recorded
    assert tracing.begin("x", "server", {}, parent=TRACE).is_recording()
    tracing.close()


def test_span_has_its_parent_and_is_propagated():
    traced = Traced()
    span = traced.tracing.begin("x", "client", {"a": 1}, parent=TRACE, start_us=1_790_000_000_000_000)
    span.end()
    (ended,) = traced.spans
    assert (trace_of(ended), parent_of(ended), ended.start_time) == (TRACE_ID, SENDER, 1_790_000_000_000_000_000)
    assert traceparent_of(span) == f"00-{TRACE_ID}-{span.get_span_context().span_id:016x}-01"


@pytest.mark.parametrize("parent", ["", "00-nonsense-01"])
def test_span_without_a_parent_is_the_root_of_a_new_trace(parent: str):
    traced = Traced()
    traced.tracing.begin("x", "server", {}, parent=parent).end()
    (ended,) = traced.spans
    assert (parent_of(ended), trace_of(ended) == TRACE_ID) == ("", False)


def test_unrecorded_span_propagates_an_unsampled_traceparent():
    span = Traced(ALWAYS_OFF).tracing.begin("x", "server", {}, parent=TRACE)
    assert traceparent_of(span).startswith(f"00-{TRACE_ID}-")
    assert traceparent_of(span).endswith("-00")


def test_queued_spans_are_sent_before_shutdown():
    collector = Collector()
    tracing, _ = kept(collector, every_s=60)
    for _ in range(3):
        tracing.begin("x", "internal", {}).end()
    tracing.close()
    assert len(collector.took) == 3
    assert tracing.dropped == 0


def test_hanging_collector_blocks_no_caller_and_dropped_spans_are_counted():
    collector = Collector(hangs=True)
    tracing, _ = kept(collector, most=10)
    tracing.begin("x", "internal", {}).end()
    assert collector.asked.wait(5)
    began = time.monotonic()
    for _ in range(1_000):
        tracing.begin("x", "internal", {}).end()
    assert time.monotonic() - began < 1.0
    assert tracing.dropped == 990
    began = time.monotonic()
    tracing.close()
    assert time.monotonic() - began < CLOSE_S + 1.0
    collector.go_on.set()


def test_spans_refused_by_the_collector_are_counted():
    tracing, spans = kept(Collector(answers=SpanExportResult.FAILURE), every_s=60)
    for _ in range(3):
        tracing.begin("x", "internal", {}).end()
    tracing.close()
    assert (tracing.dropped, spans.dropped) == (3, 3)


def test_export_thread_survives_an_exporter_that_raises():
    class Broken(Collector):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            if not self.asked.is_set():
                self.asked.set()
                raise ValueError("what it cannot encode")
            return super().export(spans)

    collector = Broken()
    tracing, _ = kept(collector)
    tracing.begin("first", "internal", {}).end()
    assert collector.asked.wait(5)
    tracing.begin("second", "internal", {}).end()
    tracing.close()
    assert [span.name for span in collector.took] == ["second"]
    assert tracing.dropped == 1
