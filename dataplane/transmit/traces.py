"""Spans of a transmit lane: one for each attempt of a sampled message, which its request names as parent.

A batch request names no parent, because its messages may belong to many traces; each of them gets its span when the
answer arrives. The same applies to messages for destinations on Penstock's own topics.
"""

from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import carrying, sampled
from dataplane.ledger.units import format_position
from dataplane.plan import StageError
from dataplane.runtime.lanes.context import LaneContext
from dataplane.runtime.telemetry.tracing import SpanKind, Tracing, traceparent_of
from dataplane.spec import DestinationSpec, HttpDestination, PostgresDestination, S3Destination
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.deliveries.rendered_delivery import RenderedDelivery, request_of
from dataplane.transmit.http.sender import HttpResponse
from dataplane.transmit.outcomes.attempts import AttemptBook, number_of

_PORTS: Final = {"https": 443, "http": 80}


class TransmitTracing:
    """Begin and end the spans of attempts."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def request_of(self, send: Delivery, carried: Headers, now_s: int) -> RenderedDelivery:
        """Render an attempt that begins now, under a new span. The message itself keeps the trace that it came with."""
        parent = sampled(carried)
        if not parent:
            return request_of(send, carried, now_s)
        span = self._begin(send, send.tries + 1, parent, None)
        try:
            request = request_of(send, carrying(carried, traceparent_of(span)), now_s)
        except StageError as exc:
            self._tracing.fail(span, exc.cause)
            span.end()
            raise
        send.span = span
        return request

    def ended(self, send: Delivery, answer: HttpResponse, outcome: str, reason: str, next_us: int = 0) -> None:
        """End the span of an attempt with its outcome; `next_us` is the Unix time of the next one, 0 if none."""
        span, send.span = send.span, None
        if span is None:
            if not (parent := sampled(send.headers)):
                return
            span = self._begin(send, send.tries, parent, send.began_us)
        span.set_attribute("penstock.outcome", outcome)
        if answer.status:
            span.set_attribute("http.response.status_code", answer.status)
        if next_us:
            span.set_attribute("penstock.next_us", next_us)
        if outcome != "delivered":
            self._tracing.fail(span, str(answer.status) if answer.status else reason.partition(":")[0])
        span.end()

    def _begin(self, send: Delivery, tries: int, parent: str, start_us: int | None) -> Any:
        target = send.target
        name, kind, of_target = _request_span(target.record.to, target.method)
        attributes = _span_attributes(send, tries) | of_target
        return self._tracing.begin(name, kind, attributes, parent=parent, start_us=start_us)


class TracedAttemptBook(AttemptBook):
    """Attempt log that also ends the attempts' spans."""

    def __init__(self, lane: LaneContext, traces: TransmitTracing) -> None:
        super().__init__(lane)
        self._traces = traces

    def delivered(self, send: Delivery, answer: HttpResponse) -> None:
        """Log the attempt and end its span."""
        super().delivered(send, answer)
        self._traces.ended(send, answer, "delivered", "")

    def failed(self, send: Delivery, answer: HttpResponse, outcome: str, reason: str, next_us: int = 0) -> None:
        """Log the attempt and end its span."""
        super().failed(send, answer, outcome, reason, next_us)
        self._traces.ended(send, answer, outcome, reason, next_us)


def _request_span(to: DestinationSpec, method: str) -> tuple[str, SpanKind, dict[str, Any]]:
    """Return name, kind and attributes of the span of a request to a destination."""
    match to:
        case PostgresDestination(host, database, port=port):
            attributes = {"db.system.name": "postgresql", "db.namespace": database, "server.address": host}
            return "INSERT", "client", attributes | {"server.port": port}
        case HttpDestination() | S3Destination():
            return method, "client", _http_attributes(to.url, method)
    return "send", "producer", _KEPT


_KEPT: Final = {"messaging.system": "kafka", "messaging.operation.type": "send"}


@lru_cache(maxsize=1_024)
def _http_attributes(url: str, method: str) -> dict[str, Any]:
    """Return the attributes of a request. Path, query and user info of its URL are left out: they may be secrets."""
    parts = urlsplit(url)
    return {
        "http.request.method": method,
        "server.address": parts.hostname or "",
        "server.port": parts.port or _PORTS.get(parts.scheme, 0),
        "url.scheme": parts.scheme,
    }


def _span_attributes(send: Delivery, tries: int) -> dict[str, Any]:
    meta = send.meta
    number = number_of(send, tries)
    attributes = {
        "messaging.message.id": meta.id,
        "penstock.position": format_position(meta.position),
        "penstock.pipe": meta.pipe,
        "penstock.revision": meta.revision,
        "penstock.destination": meta.destination,
        "penstock.attempt": number,
        "penstock.round": meta.attempt,
    }
    if number > 1:
        attributes["http.request.resend_count"] = number - 1
    return attributes
