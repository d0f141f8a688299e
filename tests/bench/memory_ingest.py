"""An ingest replica without HTTP and Kafka, for measuring the time of our own code."""

import asyncio
import itertools
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Message

from dataplane.ingest.acks import AckTracker
from dataplane.ingest.app import IngestApp
from dataplane.ingest.event_types import read_container
from dataplane.ingest.events import read_events
from dataplane.ingest.replica import IngestReplica
from dataplane.names import PURPOSES, cell_topic
from dataplane.runtime.settings import settings_from
from dataplane.spec.keys import key_digest
from dataplane.tables.records import ApiKeyRecord, CellRecord, PipeRecord, QuotaRecord, Record, TopicRecord
from tests.support import process_lane
from tests.support.cluster import KEY
from tests.support.http_exchange import MemoryExchange
from tests.support.memory_lane import PARTITIONS

REQUESTS: Final = 8  # concurrent
BATCH: Final = 100
CONNECTIONS: Final = 64  # of senders that post one event at a time
POSTS: Final = 10  # of each connection in a pass


class Loopback:
    """Producer that stores records on the next poll; its delivery reports are made in advance."""

    def __init__(self, records: int) -> None:
        self._due: list[tuple[Callable[[None, Message], None], int]] = []
        self._told = {at: [Message(partition=at, offset=n) for n in range(records)] for at in range(PARTITIONS)}
        self.rewind()

    def rewind(self) -> None:
        """Begin again with the first offsets: they rise over the next `records` records."""
        self._next = {at: itertools.cycle(messages) for at, messages in self._told.items()}

    def produce(self, *record: Any, headers: Any) -> None:  # noqa: ARG002  # nothing reads them
        """Accept a record, as librdkafka's clients do; without a partition, the key would select one."""
        self._due.append((record[4], max(0, record[3])))

    def send_now(self) -> None:
        """Do nothing: the next poll reports all records."""

    def poll(self, _wait_s: float) -> None:
        """Report the delivery of all records."""
        due, self._due = self._due, []
        for report, partition in due:
            report(None, next(self._next[partition]))


class MemoryIngest:
    """A replica with one pipe and source, whose records are stored in memory. `body` has `events` events."""

    def __init__(
        self, var: Path, kafka: str, media_type: str, body: bytes, events: int, more: tuple[Record, ...] = ()
    ) -> None:
        """`more`: further control records, such as the event types of the source."""
        self._media_type, self._body, self._events = media_type, body, events
        var.mkdir(exist_ok=True)
        self._replica = IngestReplica(settings_from({"PENSTOCK_VAR": str(var), "PENSTOCK_KAFKA": kafka}), "ingest-1")
        topics = {purpose: TopicRecord(cell_topic("c1", purpose, 1), 1, PARTITIONS, "") for purpose in PURPOSES}
        pipe = PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)])
        for record in (CellRecord("c1", 1, 1, {}, topics), pipe, process_lane.plan(), *more):
            self._replica.table.apply(record)
        self._producer: Any = Loopback(REQUESTS * BATCH)
        self._replica.table.apply(ApiKeyRecord(key_digest(KEY), 1, "p", "shop"))
        self._replica.table.apply(QuotaRecord("t", 1, events_per_s=1 << 30, bytes_per_s=1 << 40))
        self._route = self._replica.routes.lead("p", "shop")
        assert (self._route.gate is not None) is bool(more)
        self._app = IngestApp(self._replica)

    async def requests(self) -> None:
        """Take REQUESTS concurrent requests, all of whose events must be accepted."""
        self._begin_pass()
        await asyncio.gather(*(self._request() for _ in range(REQUESTS)))

    async def posts(self) -> None:
        """Answer POSTS requests of each of CONNECTIONS senders, as they come from the HTTP server."""
        self._begin_pass()
        await asyncio.gather(*(self._post() for _ in range(CONNECTIONS)))

    def _begin_pass(self) -> None:
        self._replica._loop = asyncio.get_running_loop()
        self._producer.rewind()  # the tracker refuses offsets that fall
        self._replica._acks = AckTracker(self._producer, self._replica._recorder.on_done)

    async def _post(self) -> None:
        headers = {"authorization": f"Bearer {KEY}", "content-type": self._media_type}
        for _ in range(POSTS):
            exchange = MemoryExchange(self._body, headers)
            await self._app(exchange.request)
            assert exchange.status == 202

    async def _request(self) -> None:
        gate, most = self._route.gate, self._replica.settings.max_event_bytes
        reads = None if gate is None else partial(read_container, gate, now_us=time.time_ns() // 1_000)
        events = read_events(self._media_type, self._body, {}, most, reads)
        verdicts = await self._replica.take(self._route, events.items)
        assert len(verdicts) == self._events
        assert {verdict.status for verdict in verdicts} == {202}, verdicts[0]

    def end_pass(self) -> None:
        """Drop the facts that nobody reads."""
        self._replica._reporter._books.clear()
        self._replica._reporter.unreported = 0

    def close(self) -> None:
        """Close the replica's files and clients."""
        self._replica._journal.close()
        self._replica._reader.close()
