"""The sender's trace (W3C Trace Context) is copied from a request to its events and to destinations."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.ingest.app import IngestApp
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.events import Item, ReceivedEvent, carry_trace, read_events
from dataplane.ingest.quotas import TenantMeters
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.outbound import message_headers
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import Quotas
from tests.support.http_exchange import MemoryExchange

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"  # the example of the specification
JSON = ("content-type", b"application/json")
CARRIED = ("traceparent", TRACE.encode())


class Taking:
    """Fake replica that accepts every event."""

    settings = SimpleNamespace(max_body_bytes=1_024, max_event_bytes=1_024, web_url="http://127.0.0.1")
    traces = None

    def __init__(self) -> None:
        self.taken: list[Item] = []
        self.responses: Counter[int] = Counter()
        self.routes = SimpleNamespace(find=self._find)
        self.meters = TenantMeters(ControlTable(), Quotas(), 1 << 20)

    def _find(self, _: str) -> Any:
        return SimpleNamespace(pipe=SimpleNamespace(pipe="p", tenant="t"), gate=None)

    def within_quota(self, _: Any, items: Iterable[Item], count: int) -> Iterable[Item]:
        assert count
        return items

    async def take(self, _: Any, items: Iterable[Item]) -> list[EventResult]:
        self.taken += items
        return [EventResult(202, str(number)) for number, _ in enumerate(self.taken)]


def taken_from(body: bytes, **more: str) -> list[Any]:
    replica: Any = Taking()
    headers = {"authorization": "Bearer key", "content-type": "application/json"}
    exchange = MemoryExchange(body, headers | more)
    asyncio.run(IngestApp(replica)(exchange.request))
    assert exchange.status == 202
    taken: list[Any] = replica.taken
    return taken


def test_every_event_carries_the_trace_of_its_own_request_and_of_no_other():
    assert [event.headers for event in taken_from(b"[1, 2]", traceparent=TRACE)] == [[JSON, CARRIED]] * 2
    assert [event.headers for event in taken_from(b"[1]")] == [[JSON]]


def test_refused_item_carries_no_trace():
    events = read_events("application/json", b'[{"a":1}, {"a":1,"a":2}]', {}, 1_024)
    items = list(carry_trace(events.items, TRACE))
    assert [isinstance(item, ReceivedEvent) and item.headers for item in items] == [[JSON, CARRIED], False]


@pytest.mark.parametrize(
    "traceparent",
    [
        pytest.param("", id="empty"),
        pytest.param(TRACE.upper(), id="capitals"),
        pytest.param(f"{TRACE}\r\nx-injected: 1", id="another header behind it"),
        pytest.param(TRACE.replace("00-4b", "ff-4b"), id="a version that is none"),
        pytest.param(f"00-{'0' * 32}-00f067aa0ba902b7-01", id="no trace"),
        pytest.param(f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", id="no parent"),
    ],
)
def test_invalid_traceparent_is_dropped_and_the_event_is_accepted(traceparent: str):
    assert [event.headers for event in taken_from(b"{}", traceparent=traceparent)] == [[JSON]]


def test_destination_receives_the_traceparent_header():
    meta = MessageMeta(1, "id", "pipe", 1, "shop", 0, 0, 0, destination="crm")
    assert f"traceparent: {TRACE}" in message_headers([], meta, [JSON, CARRIED], 0, "")
