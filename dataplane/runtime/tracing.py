"""OpenTelemetry's traces, by its own variables: off, and its SDK not even imported, unless they name an endpoint.

A `Tracing` is made where a process or a lane begins and closed where it ends: Spark forks and reuses its workers, and
threads do not outlive a fork. Spans say what happened to a message and never what is in it: no bodies, no secrets, and
of URLs the host alone, for webhooks keep their secrets in paths.
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

    from dataplane.runtime.spans import Spans

log = logging.getLogger(__name__)

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int | bool]
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
NAMESPACE: Final = "penstock"
QUEUE: Final = 2_048  # spans, as the specification has it; one is about 2 kB
EVERY_MS: Final = 1_000
_MADE: Final["WeakSet[Tracing]"] = WeakSet()


class Tracing:
    """Begins spans, for as many threads as there are."""

    def __init__(self, provider: "TracerProvider", spans: "Spans | None" = None) -> None:
        from opentelemetry import context, trace

        self._api, self._empty = trace, context.Context()
        self._provider, self._spans = provider, spans
        self._tracer = provider.get_tracer("penstock")
        _MADE.add(self)
        self._kinds = {kind.name.lower(): kind for kind in trace.SpanKind}

    @property
    def dropped(self) -> int:
        """Spans that did not reach the collector, so far."""
        return self._spans.dropped if self._spans is not None else 0

    def begin(
        self, name: str, kind: Kind, attributes: Attributes, *, parent: str = "", start_us: int | None = None
    ) -> "Span":
        """A span below `parent`, the root of a new trace without one. Whether it is recorded, the sampler decides."""
        return self._tracer.start_span(
            name,
            self._context(parent),
            self._kinds[kind],
            attributes,
            start_time=start_us * 1_000 if start_us is not None else None,
        )

    def fail(self, span: "Span", why: str) -> None:
        """It went wrong; `why` is one of few words."""
        span.set_attribute("error.type", why)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR))

    def close(self) -> None:
        """Send what is left, for two seconds at the most."""
        self._provider.shutdown()

    def _context(self, parent: str) -> Any:
        """An empty one where there is no parent: nothing is taken from the thread."""
        api = self._api
        if not is_traceparent(parent):
            return self._empty
        flags = api.TraceFlags(api.TraceFlags.SAMPLED if is_sampled(parent) else api.TraceFlags.DEFAULT)
        _, trace_id, span_id, _ = parent.split("-")[:4]
        context = api.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)
        return api.set_span_in_context(api.NonRecordingSpan(context), self._empty)


def dropped_spans() -> int:
    """Of the whole process."""
    return sum(tracing.dropped for tracing in list(_MADE))


def traceparent_of(span: "Span") -> str:
    """What carries a span on, whether it is recorded or not."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def tracing_from(
    service: str, instance: str, env: Mapping[str, str] = os.environ, *, follows: bool = False
) -> Tracing | None:
    """Tracing of one process or lane as the variables of OpenTelemetry want it; None where they want none.

    `follows`: it begins no traces of its own and takes the choice of whoever did.
    """
    if not any(env.get(name) for name in ENDPOINTS) or env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        return _made(service, instance, env, follows=follows)
    except Exception:  # whatever the variables do to the library: messages go on without traces
        log.exception("traces are off")
        return None


def _made(service: str, instance: str, env: Mapping[str, str], *, follows: bool) -> Tracing:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

    from dataplane.runtime.spans import Spans

    who: dict[str, Any] = {"service.name": service, "service.namespace": NAMESPACE, "service.instance.id": instance}
    provider = TracerProvider(
        sampler=ParentBased(ALWAYS_OFF) if follows else None,  # None: as OTEL_TRACES_SAMPLER says
        resource=Resource.create(who).merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
    )
    most = _number(env, "OTEL_BSP_MAX_QUEUE_SIZE", QUEUE)
    every_ms = _number(env, "OTEL_BSP_SCHEDULE_DELAY", EVERY_MS)
    spans = Spans(OTLPSpanExporter(), most=most, every_s=every_ms / 1_000)
    provider.add_span_processor(spans)
    return Tracing(provider, spans)


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    """As OpenTelemetry has it, what is no number is passed over."""
    text = env.get(name, "")
    return int(text) if text.isdecimal() and int(text) else default
