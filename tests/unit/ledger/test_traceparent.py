"""`traceparent` among a message's headers: what is one, whether its trace is recorded, and another in its place."""

import pytest

from dataplane.ledger.meta import META_HEADER, Headers
from dataplane.ledger.traceparent import TRACEPARENT, carried, carrying, sampled, trace_id
from tests.rig.traces import TRACE, TRACE_ID, UNSAMPLED

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
def test_what_a_message_carries(header: str, found: str, recorded: str):
    headers = [*OURS, (TRACEPARENT, header.encode("latin-1"))]
    assert (carried(headers), sampled(headers)) == (found, recorded)
    assert trace_id(header) == (TRACE_ID if found else "")


def test_a_message_without_one():
    assert (carried(OURS), sampled(OURS)) == ("", "")


def test_another_takes_the_place_of_the_one_before_and_ours_stays_the_first():
    first = carrying(OURS, UNSAMPLED)
    assert carrying(first, TRACE) == [*OURS, (TRACEPARENT, TRACE.encode())]
    assert first == [*OURS, (TRACEPARENT, UNSAMPLED.encode())], "the list that others may hold is not changed"
