"""The retrier records a span for each message it returns, the parent of what follows."""

import pytest

from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta
from dataplane.ledger.traceparent import TRACEPARENT, carried
from dataplane.retrier.redrive_job import What
from dataplane.retrier.traces import traced as traced_back
from tests.support.traces import SENDER, TRACE, TRACE_ID, UNSAMPLED, Traced, attributes_of, id_of, parent_of, trace_of

META = MessageMeta(1, "m", "p", 7, "shop", 0, 0, 0, position=5, destination="crm", attempt=2)
OURS: Headers = [(META_HEADER, b"\x90")]


@pytest.mark.parametrize(("what", "name"), [("release", "release"), ("redrive", "redrive"), ("ahead", "release early")])
def test_returned_message_continues_below_a_span_of_its_return(what: What, name: str):
    traced = Traced()
    headers = traced_back(traced.tracing, what, META, [*OURS, (TRACEPARENT, TRACE.encode())])
    span = traced.only(name)
    assert (trace_of(span), parent_of(span)) == (TRACE_ID, SENDER)
    assert headers[0] == OURS[0]
    assert carried(headers) == f"00-{TRACE_ID}-{id_of(span)}-01"
    assert (attributes_of(span)["penstock.destination"], attributes_of(span)["penstock.round"]) == ("crm", 2)


@pytest.mark.parametrize("more", [[], [(TRACEPARENT, UNSAMPLED.encode())]], ids=["none", "not recorded"])
def test_unsampled_message_keeps_its_headers(more: Headers):
    traced = Traced()
    assert traced_back(traced.tracing, "redrive", META, [*OURS, *more]) == [*OURS, *more]
    assert not traced.spans
