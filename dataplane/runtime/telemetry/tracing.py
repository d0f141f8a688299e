"""OpenTelemetry tracing, configured by OTel's own variables; off, with its SDK not imported, if they set no endpoint.

A `Tracing` is created at the start of a process or lane and closed at its end: Spark forks and reuses its workers, and
threads do not survive a fork. Spans describe what happened to a message and never contain its content: no bodies, no
secrets, and only the host of a URL, because webhooks carry secrets in their paths.
"""

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakSet

from dataplane.ledger.traceparent import is_sampled, is_traceparent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

    from dataplane.runtime.telemetry.spans import BoundedSpanProcessor

log = logging.getLogger(__name__)

SpanKind = Literal["internal", "server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int | bool]
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
NAMESPACE: Final = "penstock"
QUEUE: Final = 2_048  # spans, the default of the OTel specification; one is about 2 kB
EVERY_MS: Final = 1_000
_MADE: Final["WeakSet[Tracing]"] = WeakSet()


class Tracing:
    """Tracer of one process or lane; safe for use by several threads."""

    def __init__(self, provider: "TracerProvider", spans: "BoundedSpanProcessor | None" = None) -> None:
        from opentelemetry import context, trace

        self._api, self._empty = trace, context.Context()
        self._provider, self._spans = provider, spans
        self._tracer = provider.get_tracer("penstock")
        _MADE.add(self)
        self._kinds = {kind.name.lower(): kind for kind in trace.SpanKind}

    @property
    def dropped(self) -> int:
        """Number of spans so far that did not reach the collector."""
        return self._spans.dropped if self._spans is not None else 0

    def begin(
        self, name: str, kind: SpanKind, attributes: Attributes, *, parent: str = "", start_us: int | None = None
    ) -> "Span":
        """Begin a span below the traceparent `parent`, or a new trace without one. The sampler may not record it."""
        return self._tracer.start_span(
            name,
            self._context(parent),
            self._kinds[kind],
            attributes,
            start_time=start_us * 1_000 if start_us is not None else None,
        )

    def fail(self, span: "Span", why: str) -> None:
        """Mark a span as failed; `why` is a value of low cardinality for `error.type`."""
        span.set_attribute("error.type", why)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR))

    def close(self) -> None:
        """Export the remaining spans, for two seconds at most."""
        self._provider.shutdown()

    def _context(self, parent: str) -> Any:
        """Return the parent's context, or an empty one, so that nothing is inherited from the thread."""
        api = self._api
        if not is_traceparent(parent):
            return self._empty
        flags = api.TraceFlags(api.TraceFlags.SAMPLED if is_sampled(parent) else api.TraceFlags.DEFAULT)
        _, trace_id, span_id, _ = parent.split("-")[:4]
        context = api.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)
        return api.set_span_in_context(api.NonRecordingSpan(context), self._empty)


def dropped_spans() -> int:
    """Return the number of spans that the whole process has dropped."""
    return sum(tracing.dropped for tracing in list(_MADE))


def traceparent_of(span: "Span") -> str:
    """Return the traceparent header value of a span, which may be recorded or not."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def tracing_from(
    service: str, instance: str, env: Mapping[str, str] = os.environ, *, follows: bool = False
) -> Tracing | None:
    """Return tracing as configured by OpenTelemetry's variables in `env`, or None if it is off or cannot be set up.

    `follows`: begin no traces, and follow the sampling decision of the parent.
    """
    if not any(env.get(name) for name in ENDPOINTS) or env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        return _build_tracing(service, instance, env, follows=follows)
    except Exception:  # whatever the variables cause in the library: messages continue without traces
        log.exception("tracing is off: setup failed")
        return None


def _build_tracing(service: str, instance: str, env: Mapping[str, str], *, follows: bool) -> Tracing:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

    from dataplane.runtime.telemetry.spans import BoundedSpanProcessor

    names: dict[str, Any] = {"service.name": service, "service.namespace": NAMESPACE, "service.instance.id": instance}
    provider = TracerProvider(
        sampler=ParentBased(ALWAYS_OFF) if follows else None,  # None: OTEL_TRACES_SAMPLER decides
        resource=Resource.create(names).merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
    )
    max_queue = _number(env, "OTEL_BSP_MAX_QUEUE_SIZE", QUEUE)
    every_ms = _number(env, "OTEL_BSP_SCHEDULE_DELAY", EVERY_MS)
    spans = BoundedSpanProcessor(OTLPSpanExporter(), most=max_queue, every_s=every_ms / 1_000)
    provider.add_span_processor(spans)
    return Tracing(provider, spans)


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    """Return a positive integer variable; anything else counts as unset, as in OpenTelemetry."""
    text = env.get(name, "")
    return int(text) if text.isdecimal() and int(text) else default
