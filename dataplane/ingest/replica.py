"""One ingest replica, apart from HTTP: control table, producer, delivery reports, ACK journal and audit."""

import asyncio
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Final
from zlib import crc32

from confluent_kafka import KafkaException, Producer
from msgspec import Struct

from dataplane.ingest.acks import AckTracker, PartitionOffset, RequestRecords
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.event_types import admit, admit_or_note
from dataplane.ingest.events import Item, ReceivedEvent, reject_large
from dataplane.ingest.feed import FedSource, Intake
from dataplane.ingest.feeds import FeedKey, SourceFeeds
from dataplane.ingest.journal import AckJournal, JournalledAck
from dataplane.ingest.ledger_reporter import EventCounts, LedgerReporter
from dataplane.ingest.operational_feed import OperationalFeedKey
from dataplane.ingest.peers import PeerReader
from dataplane.ingest.problems import RETRY_AFTER_S, EventRejectedError, table_unread
from dataplane.ingest.quotas import TenantMeters
from dataplane.ingest.record_size import reject_large_envelope, reject_large_pair
from dataplane.ingest.rejection_log import RejectionLog
from dataplane.ingest.rejections import RejectedEvent, RejectionBook
from dataplane.ingest.route import SourceRoute, Stamper
from dataplane.ingest.schemas import check_of, reject_mismatch
from dataplane.ingest.stamp import PartitionSpreader, key_bytes, partition_of
from dataplane.ingest.table_feed import HostTables, TableFeedKey
from dataplane.ingest.time_slice import TimeSlice
from dataplane.ingest.traces import IngestTracing
from dataplane.ingest.version_traffic import TrafficBook
from dataplane.ingest.webhook_routes import WebhookRoutes
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.rejections import SENDER_CHARS
from dataplane.ledger.units import partition_base
from dataplane.plan import SourceFields, source_fields
from dataplane.runtime.kafka import ingest_producer
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.runtime.telemetry.heartbeat import HeartbeatSender
from dataplane.runtime.telemetry.metrics_registry import MetricReading
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.spec.keys import PREFIX, URL_PREFIX, key_digest, key_is_well_formed
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.event_types import EventTypeGates
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import PipeRecord
from dataplane.tables.sealed import opener

log = logging.getLogger(__name__)

PRODUCE_TIMEOUT_MS: Final = 5_000  # below any reasonable HTTP timeout
CONTROL_EVERY_S: Final = 0.1
FEW_HEADERS: Final = 8  # this many headers of the largest size allowed do not fill the envelope
REQUEST_EFFORT: Final = (
    10  # in units of one event of a batch: a request of one event takes 35 us, an event in a batch of 100 takes 3 us
)
REFUSED_EFFORT: Final = 5  # of a request that is refused unread, in the same unit
_OUTCOMES: Final = {429: "over-quota", 503: "unavailable"}


class IngestRequest(Struct):
    """Events of one request in flight to Kafka: their route, time of arrival and stamps.

    began_us:   the same moment as `now_us`, by the monotonic clock
    partition:  partition of the events without a key
    size_bytes: bytes of the bodies
    misfits:    records of a Kafka source that do not fit its event types, by their index in `metas`
    """

    route: SourceRoute
    now_us: int
    began_us: int
    partition: int
    metas: list[MessageMeta]
    size_bytes: int = 0
    misfits: dict[int, RejectedEvent] = {}


class StoredUnits(Struct):
    """Units of one pipe and bucket that were stored since the last poll, with their lags on arrival.

    began_us: arrival of each unit's request, by the monotonic clock
    """

    ack: JournalledAck
    lags_in_us: list[int]
    began_us: list[int]


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
        rejections, self._traffic = RejectionBook(), TrafficBook()
        counts = EventCounts(self._usage, rejections, self._traffic)
        self._reporter = LedgerReporter(self._producer, self._journal, name, counts)
        self._rejections = RejectionLog(self.table, rejections, self._traffic)
        self._pulse = HeartbeatSender(
            self._producer, cell="", writer=name, kind="ingest", epoch=0, incarnation=str(os.getpid())
        )
        self._gates = EventTypeGates(self.table)
        find_url = partial(self.route, prefix=URL_PREFIX)
        self.webhooks = WebhookRoutes(find_url, self._reader, opener(settings.fernet_keys))
        self._routes: dict[str, SourceRoute] = {}
        self._routes_at = -1
        self._stamper = Stamper(settings.grace_s * 1_000_000)
        self._spread = PartitionSpreader(crc32(name.encode()))
        self._feeds = SourceFeeds(
            settings.clusters,
            self.table,
            Intake(self._take_fed, self._room, settings.max_event_bytes),
            HostTables(settings.var, settings.kafka, self._files),
            type_header=self._type_header,
        )
        self.meters = TenantMeters(self.table, settings.quotas, settings.in_flight_bytes)
        self._peers = PeerReader(settings.kafka, name, self.meters)
        self._waiting = 0  # requests in progress
        self._unsettled = 0  # events of these requests
        self._events: Counter[str] = Counter()  # by outcome
        self._trouble = ""  # why the journal cannot be written
        self._background: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start reading the control topic and sending audit records and heartbeats. Call on the event loop."""
        self._loop = asyncio.get_running_loop()
        self._acks = AckTracker(self._producer, self._on_done)
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
        yield MetricReading("penstock_ingest_journal_failing", bool(self._trouble))
        yield MetricReading("penstock_ingest_unreported_events", self._reporter.unreported)
        yield MetricReading("penstock_ingest_report_late_seconds", self._reporter.late_s)
        yield MetricReading("penstock_ingest_dropped_headers_total", self._feeds.dropped_headers)
        yield MetricReading("penstock_ingest_producer_replacements_total", self._producer.replacements)

    def route(self, key: str, prefix: str = PREFIX) -> SourceRoute:
        """Return the route of an API key, or of the secret part of a webhook URL, which has another prefix.

        The prefix keeps them apart: as a key, that part would post events without a signature.

        Raises EventRejectedError for an unknown, expired or revoked key, a closed pipe, or one that is not live yet.
        """
        if self._routes_at != self.table.changes:
            self._routes.clear()
            self._routes_at = self.table.changes
        route = self._routes.get(key) if key.startswith(prefix) else None
        if route is None:
            if not key_is_well_formed(key, prefix):  # malformed and mistyped keys cost no look-up
                raise _unknown_key()
            route = self._routes[key] = self._find(key_digest(key))
        if 0 < route.ends_us <= time.time_ns() // 1_000:
            raise _expired_key()
        return route

    def _find(self, digest: str) -> SourceRoute:
        key = self.table.key(digest)
        if key is None and not self._reader.at_end:
            raise table_unread()  # a sender gives up on 401, and the key may be newer than the snapshot
        if key is None or key.revoked:
            raise _unknown_key()
        route = self._lead(key.pipe, key.source)
        route.check = check_of(self.table.schema(key.pipe, key.source))
        route.sender, route.ends_us = digest[:SENDER_CHARS], key.expires_us
        return route

    def _lead(self, pipe_id: str, source: str, feed: FedSource | None = None) -> SourceRoute:
        """Return the route of a source, or of its feed.

        Raises EventRejectedError for a closed pipe, or one that is not live yet.
        """
        pipe = self.table.pipe(pipe_id)
        cell = self.table.cell(pipe.cell) if pipe else None
        if pipe is None or cell is None or not pipe.weights:
            raise _starting()
        if pipe.state == "closed":
            raise EventRejectedError(409, "pipe-closed", "the pipe is closed; reopen it to send events")
        fields = self._fields(source, pipe, feed)
        weights = [(revision, share) for revision, share in pipe.weights if revision in fields]
        spread = frozenset(revision for revision, of_revision in fields.items() if of_revision.spread)
        gate = self._gates.find(pipe.tenant, pipe_id, source)
        return SourceRoute(pipe, source, cell.topics["ingest"], fields, weights, spread=spread, gate=gate)

    async def _take_fed(self, feed: FedSource, events: Iterable[ReceivedEvent], count: int) -> list[int]:
        """Take events that a feed has read; return the status of each. Raises EventRejectedError."""
        route, sizes = self._lead(feed.pipe, feed.source, feed), list[int]()

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

    def _type_header(self, want: FeedKey) -> str:
        """Return the record header that names the event types of a Kafka source; "" if none does."""
        gate = self._gates.find(want.tenant, want.pipe, want.source)
        return "" if gate is None else gate.record_header

    def _room(self, tenant: str) -> int:
        """Return how many events of a tenant may be read from Kafka sources and tables now."""
        return self.meters.of(tenant).room(self.meters.clock())

    def _fields(self, source: str, pipe: PipeRecord, feed: FedSource | None) -> dict[int, SourceFields]:
        """Return the fields that each revision which names the source reads.

        During a ramp, perhaps only one of the two names it, or reads the rows or events of the feed. Raises
        EventRejectedError if none does, or a plan is unknown.
        """
        records = [self.table.plan(pipe.pipe, revision) for revision, _ in pipe.weights]
        known = [record for record in records if record is not None]
        named = {record.revision: record.spec for record in known if source in record.spec.sources}
        if isinstance(feed, TableFeedKey | OperationalFeedKey):
            named = {revision: spec for revision, spec in named.items() if feed.reads(spec.sources[source])}
        if len(known) < len(records) or not named:
            raise _starting()
        return {revision: source_fields(spec)[source] for revision, spec in named.items()}

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
            items = (_unavailable() for _ in items)
        self._usage.poll(idle=False)
        now_us = time.time_ns() // 1_000
        began_us = _monotonic_us()
        request = IngestRequest(route, now_us, began_us, self._spread.at(began_us, route.topic.partitions), [])
        batch = RequestRecords(request, self._acks.pace(route.topic.name), self._loop)
        self._waiting += 1
        try:
            count, refused = await self._produce_all(request, items, batch)
            if request.metas:
                self._acks.produced(batch, len(request.metas))
                await batch.future
        finally:
            self._waiting -= 1
            self._unsettled -= len(request.metas)
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

    async def _produce_all(
        self, request: IngestRequest, items: Iterable[Item], batch: RequestRecords
    ) -> tuple[int, dict[int, EventRejectedError]]:
        """Produce every item that can be; return the number of items, and the refusals by their index."""
        refused: dict[int, EventRejectedError] = {}
        time_slice, count = TimeSlice(), 0
        is_checked = request.route.check is not None or request.route.gate is not None
        for item in items:
            try:
                misfit = self._check(request, item) if is_checked and isinstance(item, ReceivedEvent) else None
                self._produce(request, item, batch)
                if misfit is not None:
                    request.misfits[len(request.metas) - 1] = misfit
            except EventRejectedError as refusal:
                refused[count] = refusal
                self._note_refused(request, refusal, item)
            count += 1
            if time_slice.is_over:
                await time_slice.yield_to_loop()
        self._usage.add(request.route.pipe.pipe, len(request.metas), request.size_bytes, REQUEST_EFFORT + count)
        return count, refused

    def _note_refused(self, request: IngestRequest, refusal: EventRejectedError, item: Item) -> None:
        if isinstance(item, EventRejectedError):
            self._rejections.note(request.route, refusal, request.now_us, None)
        elif item.origin is None:  # else a feed, which offers it again
            self._rejections.note(request.route, refusal, request.now_us, item.body, item.value)

    def _check(self, request: IngestRequest, event: ReceivedEvent) -> RejectedEvent | None:
        """Check an event with the event types and the schema of its source. Raises EventRejectedError.

        Returns the description of a record of a Kafka source that does not fit.
        """
        gate, check = request.route.gate, request.route.check
        misfit = None
        if gate is not None:
            reject_large(event.body, self.settings.max_event_bytes)
            if event.origin is None:
                admit(gate, event, request.now_us)
            else:
                most, is_loading = self.settings.max_event_bytes, not self._reader.at_end
                misfit = admit_or_note(gate, event, request.now_us, max_event_bytes=most, is_loading=is_loading)
        if check is not None:
            reject_mismatch(check, event)
        if misfit is None:
            return None
        return self._rejections.describe(request.route, misfit, request.now_us, event.body, event.value)

    def _produce(self, request: IngestRequest, event: Item, batch: RequestRecords) -> None:
        if isinstance(event, EventRejectedError):
            raise event
        reject_large(event.body, self.settings.max_event_bytes)
        metas = request.metas
        topic = request.route.topic
        meta, key = self._stamper.stamp(request.route, event, request.now_us)
        meta.producer = self._producer.instance
        meta.hops, meta.schema = event.hops, event.schema
        meta.idempotency_key, meta.request_headers = event.idempotency_key, event.request_headers
        if event.original is not None and request.route.fields[meta.revision].keeps_original:
            meta.original = event.original
            reject_large_pair(event.body, event.original)
        if event.origin is not None:
            meta.id, key = event.origin.id, key or key_bytes(meta.pipe, event.origin.key)
        if key is None or meta.revision in request.route.spread:
            partition = request.partition
        else:
            partition = partition_of(key, topic.partitions)
        headers = [(META_HEADER, encode_meta(meta)), *event.headers]
        if (
            len(headers) > FEW_HEADERS
            or event.origin is not None
            or event.request_headers
            or event.original is not None
        ):
            reject_large_envelope(key, headers, meta.original_bytes)
        if event.misfit:  # after the check, because it must not stop a feed; HOP_BYTES leave room for it
            meta.misfit, meta.event_type = event.misfit, event.type_header
            headers[0] = (META_HEADER, encode_meta(meta))
        if partition in batch.refusing:
            raise _unavailable()
        try:
            batch.pace.send(event.body, key, partition, headers, batch)
        except (BufferError, KafkaException) as exc:
            batch.refusing.add(partition)  # later records there may have the same key and must not overtake it
            raise _unavailable() from exc
        batch.numbers[partition].append(len(metas))
        metas.append(meta)
        self._unsettled += 1
        request.size_bytes += len(event.body)

    def _on_done(self, batches: list[RequestRecords]) -> None:
        """Journal and count ACKs before any response is sent.

        An event whose ACK cannot be journalled gets 503, although it is stored: its sender repeats it.
        """
        reusing = [batch for batch in batches if batch.reused]
        for batch in reusing:
            self._note_reuse(batch)
        if reusing:
            self._producer.renew("Kafka assigned its offsets again")
        stored = self._stored(batches)
        if not stored:
            return
        acks = [units.ack for units in stored]
        try:
            self._journal.write(acks)
        except OSError as exc:
            self._note_journal(f"ACKs cannot be journalled: {exc.strerror}")
            for batch in batches:
                batch.places = [None] * len(batch.places)
            return
        self._note_journal("")
        done_us = _monotonic_us()
        for units in stored:
            self._reporter.passed(units.ack, units.lags_in_us, [done_us - began_us for began_us in units.began_us])
        self._reporter.on_delivery(acks)
        for batch in batches:
            if batch.subject.route.gate is not None:
                self._count_versions(batch)

    def _count_versions(self, batch: RequestRecords) -> None:
        """Count the stored events of a request by the version that each was checked with."""
        request: IngestRequest = batch.subject
        pairs = zip(request.metas, batch.places, strict=True)
        versions = (meta.schema for meta, place in pairs if place is not None)
        self._traffic.accept(request.route.pipe.pipe, request.route.source, versions, request.now_us)

    def _stored(self, batches: list[RequestRecords]) -> Collection[StoredUnits]:
        """Return the events of these requests that are stored, by cell, pipe, bucket and producer. A hot path."""
        stored: dict[tuple[str, str, int, int], StoredUnits] = {}
        found: StoredUnits | None = None
        found_of: PipeRecord | None = None  # a pipe that moved to another cell has another record
        bucket, producer = -1, -1
        for batch in batches:
            request: IngestRequest = batch.subject
            pipe, generation, now_us = request.route.pipe, request.route.topic.generation, request.now_us
            if pipe is not found_of:
                found, found_of = None, pipe
            for meta, place in zip(request.metas, batch.places, strict=True):
                if place is None:
                    continue
                partition, offset = place
                if found is None or meta.bucket != bucket or meta.producer != producer:
                    bucket, producer = meta.bucket, meta.producer
                    key = (pipe.cell, pipe.pipe, bucket, producer)
                    found = stored.get(key) or stored.setdefault(
                        key, StoredUnits(JournalledAck(*key[:3], [], producer), [], [])
                    )
                found.ack.positions.append(partition_base(generation, partition) + offset)
                found.lags_in_us.append(now_us - meta.event_time_us)
                found.began_us.append(request.began_us)
        return stored.values()

    def _on_replaced(self) -> None:
        """Refuse records that wait to be produced: they are stamped for the producer instance that failed."""
        self._acks.restart()

    def _note_reuse(self, batch: RequestRecords) -> None:
        """Report offsets that one producer received twice.

        Kafka has lost the records that had them first. The records of `batch` are not ACKed: no two ACKed records of a
        producer share an offset.
        """
        request: IngestRequest = batch.subject
        log.error("Kafka lost acknowledged records: topic %s assigned offsets again", request.route.topic.name)
        pipe, generation = request.route.pipe, request.route.topic.generation
        for partition, offset in batch.reused:
            position = partition_base(generation, partition) + offset
            for bucket in {request.metas[number].bucket for number in batch.numbers[partition]}:
                self._reporter.reused(pipe.cell, pipe.pipe, bucket, [position])

    def _note_journal(self, trouble: str) -> None:
        """Remember whether the journal can be written: heartbeats say so, the log only on a change."""
        if trouble != self._trouble:
            log.error("%s", trouble) if trouble else log.warning("ACKs can be journalled again")
            self._trouble = trouble

    def _note_idleness(self) -> None:
        if self._quiet and not self._waiting:
            self._usage.poll(idle=True)
        self._quiet = True

    def _beat(self) -> None:
        troubles = (self._producer.trouble, self._trouble, self._reporter.trouble, self._files.trouble)
        dropped = self._tracing.dropped if self._tracing is not None else 0
        self._pulse.beat(
            "running",
            self.table.offset,
            unsettled=self._unsettled,
            detail="; ".join(filter(None, troubles)),
            dropped_spans=dropped,
            failing_files=self._files.failing,
            taken=self.meters.publish_use(),
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


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1_000


def _producer_of(kafka: str, name: str) -> Producer:
    return ingest_producer(kafka, name, PRODUCE_TIMEOUT_MS)


def _results_of(request: IngestRequest, places: list[PartitionOffset | None]) -> list[EventResult]:
    generation = request.route.topic.generation
    return [
        EventResult(202, meta.id, f"{generation}-{place[0]}-{place[1]}", meta.bucket)
        if place
        else _refused(_unavailable())
        for meta, place in zip(request.metas, places, strict=True)
    ]


def _refused(refusal: EventRejectedError) -> EventResult:
    return EventResult(refusal.status, code=refusal.code, detail=refusal.detail, pointer=refusal.pointer)


def _unavailable() -> EventRejectedError:
    detail = "events cannot be stored now; retry later with the same id"
    return EventRejectedError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


def _unknown_key() -> EventRejectedError:
    return EventRejectedError(401, "key-invalid", "the API key is unknown or revoked")


def _expired_key() -> EventRejectedError:
    return EventRejectedError(401, "key-expired", "the API key has expired; use a newer key of the source")


def _starting() -> EventRejectedError:
    return EventRejectedError(
        503, "pipe-starting", "the pipe is not live yet; retry later", retry_after_s=RETRY_AFTER_S
    )
