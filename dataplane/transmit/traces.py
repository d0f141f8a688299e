"""A transmit lane's part in traces: one span for each attempt of a sampled message, which its request names as parent.

A request that carries several messages names none, for they may be of many traces; each of them gets its span once the
answer has come. So do messages for destinations that we keep ourselves.
"""

from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import carrying, sampled
from dataplane.ledger.units import format_position
from dataplane.plan import StageError
from dataplane.runtime.lane import Lane
from dataplane.runtime.tracing import Kind, Tracing, traceparent_of
from dataplane.transmit.attempts import AttemptBook, number_of
from dataplane.transmit.request import Request, request_of
from dataplane.transmit.sender import Answer
from dataplane.transmit.sends import Send

_PORTS: Final = {"https": 443, "http": 80}


class Traces:
    """Begins the spans of attempts, and ends them."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def request_of(self, send: Send, carried: Headers, now_s: int) -> Request:
        """The request of an attempt that begins now. The message itself goes on with the trace that it came with."""
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

    def ended(self, send: Send, answer: Answer, outcome: str, reason: str, next_us: int = 0) -> None:
        """An attempt is over: what came of it, and when the next one is due, if there is one."""
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

    def _begin(self, send: Send, tries: int, parent: str, start_us: int | None) -> Any:
        posts = send.target.posts
        said = _said(send, tries) | (_http(send.target.record.to.url) if posts else _KEPT)
        kind: Kind = "client" if posts else "producer"
        return self._tracing.begin("POST" if posts else "send", kind, said, parent=parent, start_us=start_us)


class TracedBook(AttemptBook):
    """A book of attempts that ends their spans."""

    def __init__(self, lane: Lane, traces: Traces) -> None:
        super().__init__(lane)
        self._traces = traces

    def delivered(self, send: Send, answer: Answer) -> None:
        super().delivered(send, answer)
        self._traces.ended(send, answer, "delivered", "")

    def failed(self, send: Send, answer: Answer, outcome: str, reason: str, next_us: int = 0) -> None:
        super().failed(send, answer, outcome, reason, next_us)
        self._traces.ended(send, answer, outcome, reason, next_us)


_KEPT: Final = {"messaging.system": "kafka", "messaging.operation.type": "send"}


@lru_cache(maxsize=1_024)
def _http(url: str) -> dict[str, Any]:
    """What may be told of a request's address: its path and query, and a name before the host, may be secrets."""
    parts = urlsplit(url)
    return {
        "http.request.method": "POST",
        "server.address": parts.hostname or "",
        "server.port": parts.port or _PORTS.get(parts.scheme, 0),
        "url.scheme": parts.scheme,
    }


def _said(send: Send, tries: int) -> dict[str, Any]:
    meta = send.meta
    number = number_of(send, tries)
    said = {
        "messaging.message.id": meta.id,
        "penstock.position": format_position(meta.position),
        "penstock.pipe": meta.pipe,
        "penstock.revision": meta.revision,
        "penstock.destination": meta.destination,
        "penstock.attempt": number,
        "penstock.round": meta.attempt,
    }
    if number > 1:
        said["http.request.resend_count"] = number - 1
    return said
