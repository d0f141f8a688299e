"""The retrier's part in traces: who brings a message back leaves a span, and what follows hangs below it.

What waits in its tiers and goes on by itself leaves none: its next attempt joins the trace by the header it carries.
"""

from dataplane.ledger.meta import Headers, Meta
from dataplane.ledger.traceparent import carrying, sampled
from dataplane.ledger.units import format_position
from dataplane.retrier.errand import What
from dataplane.runtime.tracing import Tracing, traceparent_of


def traced(tracing: Tracing, what: What, meta: Meta, headers: Headers) -> Headers:
    """The headers of a record that is brought back; of one that is sampled with the trace of a span for that."""
    parent = sampled(headers)
    if not parent:
        return headers
    said: dict[str, str | int | bool] = {
        "messaging.message.id": meta.id,
        "penstock.position": format_position(meta.position),
        "penstock.pipe": meta.pipe,
        "penstock.destination": meta.destination,
        "penstock.round": meta.attempt,
    }
    span = tracing.begin("release early" if what == "ahead" else what, "internal", said, parent=parent)
    span.end()
    return carrying(headers, traceparent_of(span))
