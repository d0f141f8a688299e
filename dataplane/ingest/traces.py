"""Tracing at ingest: a span from the arrival of a request to its ACK, whose context the events carry on.

The decision to record a trace is made here, once per request; every later hop follows it. A request that is not
recorded and came without a trace context gives its events none, so they cost nothing at later hops.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dataplane.ingest.event_results import EventResult, status_of
from dataplane.ingest.events import Item, ReceivedEvent, carry_trace
from dataplane.ingest.route import SourceRoute
from dataplane.ledger.traceparent import carried, is_traceparent
from dataplane.names import EVENTS_PATH, WEBHOOK_PATH
from dataplane.runtime.telemetry.tracing import Tracing, traceparent_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

TakePostedEvents = Callable[[SourceRoute, Iterable[Item]], Awaitable[list[EventResult]]]


class IngestTracing:
    """Wraps `take` in a span."""

    def __init__(self, tracing: Tracing, take: TakePostedEvents) -> None:
        self._tracing, self._take = tracing, take

    async def posted(
        self, route: SourceRoute, items: Iterable[Item], traceparent: str, began_us: int
    ) -> list[EventResult]:
        """Take the events of a request.

        traceparent: the sender's trace context; "" if there is none
        began_us:    arrival of the request, in microseconds since the epoch
        """
        path = EVENTS_PATH if route.webhook is None else f"{WEBHOOK_PATH}{{secret}}"
        attributes = _attributes_of(route) | {"http.request.method": "POST", "http.route": path}
        span = self._tracing.begin(f"POST {path}", "server", attributes, parent=traceparent, start_us=began_us)
        results = await self._take(route, carry_trace(items, _traceparent_for(span, traceparent)))
        if span.is_recording():
            status = status_of(results)
            span.set_attribute("http.response.status_code", status)
            self._end(span, results, status)
        return results

    async def read(self, route: SourceRoute, events: Iterable[Item]) -> list[EventResult]:
        """Take events that were read from a Kafka source; each keeps the trace context that it came with, if any."""
        spans: dict[str, Span] = {}
        numbers: defaultdict[str, list[int]] = defaultdict(list)

        def traced() -> Iterator[Item]:
            for number, event in enumerate(events):
                trace = carried(event.headers) if isinstance(event, ReceivedEvent) else ""
                if trace not in spans:
                    spans[trace] = self._tracing.begin(
                        "receive", "consumer", _attributes_of(route) | _READ, parent=trace
                    )
                numbers[trace].append(number)
                yield from carry_trace([event], _traceparent_for(spans[trace], trace))

        results = await self._take(route, traced())
        for trace, span in spans.items():
            if span.is_recording():
                own_results = [results[number] for number in numbers[trace]]
                self._end(span, own_results, status_of(own_results))
        return results

    def _end(self, span: "Span", results: Sequence[EventResult], status: int) -> None:
        """End the span with the ACK or the refusal: one event by its id, several by their number."""
        if len(results) == 1:
            result = results[0]
            span.set_attribute("messaging.message.id", result.id)
            span.set_attribute("penstock.position", result.position)
        else:
            span.set_attribute("messaging.batch.message_count", len(results))
            span.set_attribute("penstock.accepted", sum(result.status == 202 for result in results))
        if status >= 500:
            self._tracing.fail(span, next(result.code for result in results if result.status >= 500))
        span.end()


_READ: Final = {"messaging.system": "kafka", "messaging.operation.type": "receive"}


def _attributes_of(route: SourceRoute) -> dict[str, str | int | bool]:
    return {"penstock.pipe": route.pipe.pipe, "penstock.source": route.source, "penstock.cell": route.pipe.cell}


def _traceparent_for(span: "Span", trace: str) -> str:
    """Return the trace context that events carry on; "" for none.

    An unrecorded trace is passed on too if the sender began it, so that later hops learn that it is not recorded.
    """
    return traceparent_of(span) if span.is_recording() or is_traceparent(trace) else ""
