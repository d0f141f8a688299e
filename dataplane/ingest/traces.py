"""Ingest's part in traces: a span from the arrival of a request to its ACK, which its events carry on.

Whether a trace is recorded is decided here, once for a request; every later hop follows. A request without a trace of
its sender's that is not recorded gives its events none, so they cost nothing further on.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dataplane.ingest.events import Event, Item, carry_trace
from dataplane.ingest.route import Route
from dataplane.ingest.verdicts import Verdict, status_of
from dataplane.ledger.traceparent import carried, is_traceparent
from dataplane.runtime.tracing import Tracing, traceparent_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Take = Callable[[Route, Iterable[Item]], Awaitable[list[Verdict]]]


class Traces:
    """Takes events as `take` does, under a span."""

    def __init__(self, tracing: Tracing, take: Take) -> None:
        self._tracing, self._take = tracing, take

    async def posted(self, route: Route, items: Iterable[Item], traceparent: str, began_us: int) -> list[Verdict]:
        """Those of a request that came at `began_us`, of a sender with this trace or none ("")."""
        said = _said(route) | _POSTED
        span = self._tracing.begin("POST /v1/events", "server", said, parent=traceparent, start_us=began_us)
        verdicts = await self._take(route, carry_trace(items, _handed_on(span, traceparent)))
        if span.is_recording():
            status = status_of(verdicts)
            span.set_attribute("http.response.status_code", status)
            self._end(span, verdicts, status)
        return verdicts

    async def read(self, route: Route, events: Iterable[Item]) -> list[Verdict]:
        """Those that were read from a Kafka of somebody else's: each goes on with the trace it came with, if any."""
        spans: dict[str, Span] = {}
        numbers: defaultdict[str, list[int]] = defaultdict(list)

        def traced() -> Iterator[Item]:
            for number, event in enumerate(events):
                trace = carried(event.headers) if isinstance(event, Event) else ""
                if trace not in spans:
                    spans[trace] = self._tracing.begin("receive", "consumer", _said(route) | _READ, parent=trace)
                numbers[trace].append(number)
                yield from carry_trace([event], _handed_on(spans[trace], trace))

        verdicts = await self._take(route, traced())
        for trace, span in spans.items():
            if span.is_recording():
                of_it = [verdicts[number] for number in numbers[trace]]
                self._end(span, of_it, status_of(of_it))
        return verdicts

    def _end(self, span: "Span", verdicts: Sequence[Verdict], status: int) -> None:
        """The ACK, or the refusal. One event is named, of many their number is told."""
        if len(verdicts) == 1:
            verdict = verdicts[0]
            span.set_attribute("messaging.message.id", verdict.id)
            span.set_attribute("penstock.position", verdict.position)
        else:
            span.set_attribute("messaging.batch.message_count", len(verdicts))
            span.set_attribute("penstock.accepted", sum(verdict.status == 202 for verdict in verdicts))
        if status >= 500:
            self._tracing.fail(span, next(verdict.code for verdict in verdicts if verdict.status >= 500))
        span.end()


_POSTED: Final = {"http.request.method": "POST", "http.route": "/v1/events"}
_READ: Final = {"messaging.system": "kafka", "messaging.operation.type": "receive"}


def _said(route: Route) -> dict[str, str | int | bool]:
    return {"penstock.pipe": route.pipe.pipe, "penstock.source": route.source, "penstock.cell": route.pipe.cell}


def _handed_on(span: "Span", trace: str) -> str:
    """Return the trace that events go on with: also one that is not recorded, where the sender has begun it.

    It says so to whoever comes after us.
    """
    return traceparent_of(span) if span.is_recording() or is_traceparent(trace) else ""
