"""One ingest replica, apart from HTTP: its clients, quotas, feeds and background work, and the results of requests."""

import asyncio
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final
from zlib import crc32

from confluent_kafka import KafkaException, Producer

from dataplane.ingest.ack_recorder import AckRecorder
from dataplane.ingest.acks import AckTracker, PartitionOffset, RequestRecords
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.event_writer import EventWriter, IngestRequest, monotonic_us
from dataplane.ingest.events import Item, ReceivedEvent
from dataplane.ingest.feed import FedSource, Intake
from dataplane.ingest.feeds import SourceFeeds
from dataplane.ingest.journal import AckJournal
from dataplane.ingest.ledger_reporter import EventCounts, LedgerReporter
from dataplane.ingest.peers import PeerReader
from dataplane.ingest.problems import EventRejectedError, unavailable
from dataplane.ingest.quotas import TenantMeters
from dataplane.ingest.rejection_log import RejectionLog
from dataplane.ingest.rejections import RejectionBook
from dataplane.ingest.route import SourceRoute
from dataplane.ingest.source_routes import SourceRoutes
from dataplane.ingest.stamp import PartitionSpreader
from dataplane.ingest.table_feed import HostTables
from dataplane.ingest.traces import IngestTracing
from dataplane.ingest.version_traffic import TrafficBook
from dataplane.ingest.webhook_routes import WebhookRoutes
from dataplane.runtime.kafka import ingest_producer
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.runtime.telemetry.heartbeat import HeartbeatSender
from dataplane.runtime.telemetry.metrics_registry import MetricReading
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.spec.keys import URL_PREFIX
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import PipeRecord
from dataplane.tables.sealed import opener

log = logging.getLogger(__name__)

PRODUCE_TIMEOUT_MS: Final = 5_000  # below any reasonable HTTP timeout
CONTROL_EVERY_S: Final = 0.1
REFUSED_EFFORT: Final = 5  # of a request that is refused unread, in the unit of REQUEST_EFFORT
_OUTCOMES: Final = {429: "over-quota", 503: "unavailable"}


class IngestReplica:
    """Takes events and returns a result for each. Used from one event loop; call `start` before and `stop` after."""

    def __init__(self, settings: DataPlaneSettings, name: str, tracing: Tracing | None = None) -> None:
        """Create the replica; `stop` closes `tracing`."""
        self.settings = settings
        self.name = name
        self._tracing = tracing
        self.traces = None if tracing is None else IngestTracing(tracing, self.take)
        self._files = OptionalFiles()
        self._reader = ControlReader(settings.kafka, snapshot_path(settings.var), self._files)
        self.table = self._reader.table
        make_producer = partial(_producer_of, settings.kafka, name)
        self._producer = ReplaceableProducer(make_producer, self._on_replaced)
        self._journal = AckJournal(settings.var / "data" / "acks", name)
        self._usage = UsageBook()
        self._quiet = False  # no request since the last background pass
        rejections, traffic = RejectionBook(), TrafficBook()
        counts = EventCounts(self._usage, rejections, traffic)
        self._reporter = LedgerReporter(self._producer, self._journal, name, counts)
        self._rejections = RejectionLog(self.table, rejections, traffic)
        self._recorder = AckRecorder(self._producer, self._journal, self._reporter, traffic)
        self._writer = EventWriter(settings, self._producer, self._reader, self._rejections, self._usage)
        self._pulse = HeartbeatSender(
            self._producer, cell="", writer=name, kind="ingest", epoch=0, incarnation=str(os.getpid())
        )
        self.routes = SourceRoutes(self._reader)
        find_url = partial(self.routes.find, prefix=URL_PREFIX)
        self.webhooks = WebhookRoutes(find_url, self._reader, opener(settings.fernet_keys))
        self._spread = PartitionSpreader(crc32(name.encode()))
        self._feeds = SourceFeeds(
            settings.clusters,
            self.table,
            Intake(self._take_fed, self._room, settings.max_event_bytes),
            HostTables(settings.var, settings.kafka, self._files),
            type_header=self.routes.type_header,
        )
        self.meters = TenantMeters(self.table, settings.quotas, settings.in_flight_bytes)
        self._peers = PeerReader(settings.kafka, name, self.meters)
        self._waiting = 0  # requests in progress
        self.responses: Counter[int] = Counter()  # by status: events, webhooks, and refusals of other requests
        self.serves = False  # the HTTP server listens
        self._events: Counter[str] = Counter()  # by outcome
        self._background: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start reading the control topic and sending audit records and heartbeats. Call on the event loop."""
        self._loop = asyncio.get_running_loop()
        self._acks = AckTracker(self._producer, self._recorder.on_done)
        self._background = [asyncio.create_task(self._every(CONTROL_EVERY_S))]

    async def stop(self) -> bool:
        """Report what is left to the ledger and close all clients; return whether all of it was reported."""
        await self._feeds.close()
        for task in self._background:
            task.cancel()
        is_reported = await asyncio.to_thread(self._reporter.finish, 5.0)
        self._pulse.beat("drained", self.table.offset)
        self._producer.flush(2)
        self._journal.close()
        self._reader.close()
        self._peers.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        return is_reported

    async def caught_up(self, seconds: float) -> None:
        """Wait until the control topic is read to its end, for at most this many seconds.

        A replica that listens earlier refuses new keys.
        """
        deadline = self._loop.time() + seconds
        while not self._reader.at_end and self._loop.time() < deadline:
            await asyncio.sleep(CONTROL_EVERY_S / 2)

    @property
    def ready(self) -> str:
        """Empty if events can be taken, else the reason why not."""
        if not (len(self.table) or self._reader.at_end):
            return "the control topic has not been read yet"
        if self._reporter.is_full:
            return self._reporter.trouble or "ledger reports are far behind"
        return self._producer.trouble

    def readings(self) -> Iterator[MetricReading]:
        """Yield the metrics of the replica: events by outcome, and its health."""
        for outcome in ("acked", "refused", "over-quota", "unavailable"):
            yield MetricReading("penstock_ingest_events_total", self._events[outcome], (outcome,))
        yield MetricReading("penstock_ingest_waiting_requests", self._waiting)
        yield MetricReading("penstock_ingest_ready", not self.ready)
        yield MetricReading("penstock_ingest_journal_failing", bool(self._recorder.trouble))
        yield MetricReading("penstock_ingest_unreported_events", self._reporter.unreported)
        yield MetricReading("penstock_ingest_report_late_seconds", self._reporter.late_s)
        yield MetricReading("penstock_ingest_dropped_headers_total", self._feeds.dropped_headers)
        yield MetricReading("penstock_ingest_producer_replacements_total", self._producer.replacements)

    async def _take_fed(self, feed: FedSource, events: Iterable[ReceivedEvent], count: int) -> list[int]:
        """Take events that a feed has read; return the status of each. Raises EventRejectedError."""
        route, sizes = self.routes.lead(feed.pipe, feed.source, feed), list[int]()

        def sized() -> Iterator[ReceivedEvent]:
            for event in events:
                sizes.append(len(event.body))
                yield event

        take = self.take if self.traces is None else self.traces.read
        results = await take(route, self.within_quota(route.pipe, sized(), count))
        statuses = [result.status for result in results]
        stored = sum(size for size, status in zip(sizes, statuses, strict=True) if status == 202)
        self.meters.of(route.pipe.tenant).charge(stored)
        return statuses

    def _room(self, tenant: str) -> int:
        """Return how many events of a tenant may be read from Kafka sources and tables now."""
        return self.meters.of(tenant).room(self.meters.clock())

    def refuse(self, pipe: str) -> None:
        """Count a request that was refused unread, because its tenant's quota is exceeded."""
        self._quiet = False
        self._usage.poll(idle=False)
        self._usage.refuse(pipe, 1, REFUSED_EFFORT)
        self._events["over-quota"] += 1

    def note_rejected(self, route: SourceRoute, refusal: EventRejectedError, now_us: int, body: bytes | None) -> None:
        """Count a request that is refused as a whole; `body` is None if it was not read."""
        self._rejections.note(route, refusal, now_us, body)

    def within_quota(self, pipe: PipeRecord, items: Iterable[Item], count: int) -> Iterable[Item]:
        """Return the items, with those beyond the tenant's quota as refusals: the last ones, so that order is kept."""
        meter = self.meters.of(pipe.tenant)
        admitted = meter.admit(count, self.meters.clock())
        if admitted == count:
            return items
        return self._cut_off(pipe.pipe, items, admitted, meter.over_rest(count - admitted))

    def _cut_off(self, pipe: str, items: Iterable[Item], admitted: int, over: EventRejectedError) -> Iterator[Item]:
        for number, item in enumerate(items):
            if number < admitted or isinstance(item, EventRejectedError):
                yield item
                continue
            if item.origin is None:  # else a feed, which offers it again
                self._usage.refuse(pipe, 1, 0)
            yield over

    async def take(self, route: SourceRoute, items: Iterable[Item]) -> list[EventResult]:
        """Store every event and return a result for each: 202 after its own delivery report, else the refusal.

        `items` may be an iterator that decodes them: each is released as soon as it is handed to the producer, and
        other requests run in between.

        While too many ACKed events are not reported to the ledger, none is taken: 503 for each.
        """
        self._quiet = False
        if self._reporter.is_full:
            items = (unavailable() for _ in items)
        self._usage.poll(idle=False)
        now_us = time.time_ns() // 1_000
        began_us = monotonic_us()
        request = IngestRequest(route, now_us, began_us, self._spread.at(began_us, route.topic.partitions), [])
        batch = RequestRecords(request, self._acks.pace(route.topic.name), self._loop)
        self._waiting += 1
        try:
            count, refused = await self._writer.write(request, items, batch)
            if request.metas:
                self._acks.produced(batch, len(request.metas))
                await batch.future
        finally:
            self._waiting -= 1
            self._writer.unsettled -= len(request.metas)
        produced = _results_of(request, batch.places)
        unstored = batch.places.count(None)
        self._events["unavailable"] += unstored
        self._events["acked"] += len(produced) - unstored
        for number, misfit in request.misfits.items():
            if batch.places[number] is not None:  # else the feed offers it again
                self._rejections.add(misfit)
        if not refused:
            return produced
        for why in refused.values():
            self._events[_OUTCOMES.get(why.status, "refused")] += 1
        rest = iter(produced)
        return [_refused(refused[n]) if n in refused else next(rest) for n in range(count)]

    def _on_replaced(self) -> None:
        """Refuse records that wait to be produced: they are stamped for the producer instance that failed."""
        self._acks.restart()

    def _note_idleness(self) -> None:
        if self._quiet and not self._waiting:
            self._usage.poll(idle=True)
        self._quiet = True

    def _beat(self) -> None:
        troubles = (self._producer.trouble, self._recorder.trouble, self._reporter.trouble, self._files.trouble)
        dropped = self._tracing.dropped if self._tracing is not None else 0
        self._pulse.beat(
            "running" if self.serves else "starting",
            self.table.offset,
            unsettled=self._writer.unsettled,
            detail="; ".join(filter(None, troubles)),
            dropped_spans=dropped,
            failing_files=self._files.failing,
            taken=self.meters.publish_use(),
            release=self.settings.release,
            responses={str(status): count for status, count in self.responses.items()},
        )

    async def _every(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                self._reader.refresh()
                self._peers.refresh()
                self._feeds.poll()
                self._producer.poll(0)  # delivery reports of audit records and heartbeats while no request waits
                self._note_idleness()
                self._reporter.report_if_due(self.settings.checkpoint_ms / 1_000)
                if self._pulse.due():
                    self._beat()
                if self._producer.is_failing:
                    log.critical("Kafka producers fail repeatedly; exiting so that a new process takes over")
                    signal.raise_signal(signal.SIGTERM)
            except (KafkaException, OSError):
                log.exception("background pass failed; retrying")


def _producer_of(kafka: str, name: str) -> Producer:
    return ingest_producer(kafka, name, PRODUCE_TIMEOUT_MS)


def _results_of(request: IngestRequest, places: list[PartitionOffset | None]) -> list[EventResult]:
    generation = request.route.topic.generation
    return [
        EventResult(202, meta.id, f"{generation}-{place[0]}-{place[1]}", meta.bucket)
        if place
        else _refused(unavailable())
        for meta, place in zip(request.metas, places, strict=True)
    ]


def _refused(refusal: EventRejectedError) -> EventResult:
    return EventResult(refusal.status, code=refusal.code, detail=refusal.detail, pointer=refusal.pointer)
