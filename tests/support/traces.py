"""Traces kept in memory by the real SDK: attributes, events and parents of a test's spans."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler

from dataplane.runtime.telemetry.tracing import Tracing

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"  # the specification's own example
SENDER = "00f067aa0ba902b7"
TRACE = f"00-{TRACE_ID}-{SENDER}-01"
UNSAMPLED = f"00-{TRACE_ID}-{SENDER}-00"


class Traced:
    """In-memory traces: the code under test gets `tracing`; ended spans are kept."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler or ParentBased(ALWAYS_ON), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """Return the ended spans, in that order."""
        return self._exporter.get_finished_spans()

    def only(self, name: str) -> ReadableSpan:
        """Return the only span of this name."""
        (span,) = (span for span in self.spans if span.name == name)
        return span


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    """Return a span's attributes."""
    return dict(span.attributes or {})


def events(span: ReadableSpan) -> list[str]:
    """Return the names of a span's events."""
    return [event.name for event in span.events]


def trace_of(span: ReadableSpan) -> str:
    """Return the trace id of a span."""
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def id_of(span: ReadableSpan) -> str:
    """Return a span's id."""
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def parent_of(span: ReadableSpan) -> str:
    """Return the id of a span's parent, "" of a root."""
    return f"{span.parent.span_id:016x}" if span.parent is not None else ""
