"""Ingest replica in memory with the event types of a source: it stores records in a list."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataplane.ingest import replica as module
from dataplane.ingest.acks import AckTracker
from dataplane.ingest.app import IngestApp
from dataplane.ingest.events import ReceivedEvent, RecordOrigin
from dataplane.ingest.feeds import FeedKey
from dataplane.ingest.replica import IngestReplica
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.rejections import RejectionReport
from dataplane.runtime.settings import settings_from
from dataplane.spec import parse_pipe_spec
from dataplane.spec.keys import RANDOM_BYTES, key_digest, key_text
from dataplane.tables.records import (
    ApiKeyRecord,
    CellRecord,
    PipeRecord,
    PlanRecord,
    Record,
    TopicRecord,
)
from tests.support.event_types import (
    ORDERS,
    REFUNDS,
    event_types,
)
from tests.support.http_exchange import MemoryExchange
from tests.support.memory_replica import MemoryProducer, close_replica

KEY = key_text(b"s" * RANDOM_BYTES)
DOCUMENT: dict[str, Any] = {
    "sources": {"shop": {"key": "id"}, "old": {"type": "kafka", "cluster": "main", "topic": "orders"}},
    "destinations": {"crm": {"type": "http", "url": "http://crm.example/"}},
}
SPEC = parse_pipe_spec(DOCUMENT)
PLAN = PlanRecord("p", 1, SPEC)
RECORDS: tuple[Record, ...] = (
    CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")}),
    PLAN,
    PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]),
    ApiKeyRecord(key_digest(KEY), 1, "p", "shop"),
    ORDERS,
    REFUNDS,
)
TYPED = event_types("field:type", {"order": "orders", "refund": "refunds"})
CE = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "order"}


class Stored(MemoryProducer):
    """Producer that keeps the records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[bytes, MessageMeta, dict[str, bytes]]] = []

    def keep(self, body: bytes, headers: Any, /) -> None:
        self.records.append((body, read_meta(headers), dict(headers[1:])))


class Ingest:
    """Replica with its app."""

    def __init__(self, replica: IngestReplica, stored: Stored) -> None:
        self.replica, self.stored = replica, stored

    def run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async def running() -> Any:
            self.replica._loop = asyncio.get_running_loop()
            self.replica._acks = AckTracker(self.replica._producer, self.replica._recorder.on_done)
            return await work()

        return asyncio.run(running())

    def post(self, body: bytes, media_type: str = "application/json", **headers: str) -> MemoryExchange:
        known = {"authorization": f"Bearer {KEY}", "content-type": media_type}
        given = known | {name.replace("_", "-"): value for name, value in headers.items()}
        exchange = MemoryExchange(body, given)
        self.run(lambda: IngestApp(self.replica)(exchange.request))
        return exchange

    def feed(self, *events: ReceivedEvent) -> list[int]:
        fed = FeedKey("p", "old", "t", "orders", "main", "earliest")
        found: list[int] = self.run(lambda: self.replica._take_fed(fed, list(events), len(events)))
        return found

    def reported(self) -> list[RejectionReport]:
        """Return the rejected events since the last call."""
        book = self.replica._rejections._book
        book.hasten()
        return book.take_if_due()

    def traffic(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the events accepted and rejected by source and version since the last call."""
        book = self.replica._recorder._traffic
        book.hasten()
        return {(one.source, one.version): (one.accepted, one.rejected) for one in book.take_if_due()}

    def bodies(self) -> list[Any]:
        return [json.loads(body) for body, _, _ in self.stored.records]


Opened = Callable[..., Ingest]


def opened_ingest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Yield a function that makes replicas with more records, and close them afterwards."""
    replicas: list[IngestReplica] = []

    def made(*more: Record, env: dict[str, str] | None = None) -> Ingest:
        stored = Stored()
        monkeypatch.setattr(module, "ingest_producer", lambda *_: stored)
        env = {"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(folder), **(env or {})}
        replica = IngestReplica(settings_from(env), "ingest-1")
        replica._reader.at_end = True
        for record in (*RECORDS, *more):
            replica.table.apply(record)
        replicas.append(replica)
        return Ingest(replica, stored)

    yield made
    for replica in replicas:
        close_replica(replica)


def fed(body: bytes, value: Any = None, headers: Any = (), type_header: str = "", number: int = 1) -> ReceivedEvent:
    origin = RecordOrigin(f"id-{number}", "k1")
    carried = [("content-type", b"application/json"), *headers]
    return ReceivedEvent(body, value, carried, origin=origin, type_header=type_header)
