"""`traceparent` among a message's headers: validation, the sampled flag and replacement."""

import pytest

from dataplane.ledger.meta import META_HEADER, Headers
from dataplane.ledger.traceparent import TRACEPARENT, carried, carrying, sampled, trace_id
from tests.support.traces import TRACE, TRACE_ID, UNSAMPLED

OURS: Headers = [(META_HEADER, b"\x90"), ("content-type", b"application/json")]


@pytest.mark.parametrize(
    ("header", "found", "recorded"),
    [
        pytest.param(TRACE, TRACE, TRACE, id="recorded"),
        pytest.param(UNSAMPLED, UNSAMPLED, "", id="not recorded"),
        pytest.param(TRACE[:-2] + "03", TRACE[:-2] + "03", TRACE[:-2] + "03", id="other flags beside"),
        pytest.param("00-nonsense-01", "", "", id="none"),
        pytest.param("\xff" * 55, "", "", id="bytes"),
    ],
)
def test_traceparent_and_its_sampled_flag_are_read_from_the_headers(header: str, found: str, recorded: str):
    headers = [*OURS, (TRACEPARENT, header.encode("latin-1"))]
    assert (carried(headers), sampled(headers)) == (found, recorded)
    assert trace_id(header) == (TRACE_ID if found else "")


def test_message_without_traceparent_has_no_trace():
    assert (carried(OURS), sampled(OURS)) == ("", "")


def test_new_traceparent_replaces_the_old_one_and_the_meta_header_remains_first():
    first = carrying(OURS, UNSAMPLED)
    assert carrying(first, TRACE) == [*OURS, (TRACEPARENT, TRACE.encode())]
    assert first == [*OURS, (TRACEPARENT, UNSAMPLED.encode())], "a list that may be shared is not changed"
