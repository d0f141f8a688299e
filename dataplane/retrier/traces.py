"""Trace spans of the retrier: each return of a message (release, redrive) is a span, the parent of later spans.

A message that merely waits in a tier has no span there: its next attempt joins the trace through its header.
"""

from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.ledger.traceparent import carrying, sampled
from dataplane.ledger.units import format_position
from dataplane.retrier.redrive_job import What
from dataplane.runtime.telemetry.tracing import Tracing, traceparent_of


def traced(tracing: Tracing, what: What, meta: MessageMeta, headers: Headers) -> Headers:
    """Return the headers of a record that returns; if it is sampled, they carry the context of a new span."""
    parent = sampled(headers)
    if not parent:
        return headers
    attributes: dict[str, str | int | bool] = {
        "messaging.message.id": meta.id,
        "penstock.position": format_position(meta.position),
        "penstock.pipe": meta.pipe,
        "penstock.destination": meta.destination,
        "penstock.round": meta.attempt,
    }
    span = tracing.begin("release early" if what == "ahead" else what, "internal", attributes, parent=parent)
    span.end()
    return carrying(headers, traceparent_of(span))
