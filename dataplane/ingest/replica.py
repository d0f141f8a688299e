"""One ingest replica: control table, producer, delivery reports, ack journal and audit, apart from HTTP."""

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

from dataplane.ingest.acks import Acks, Batch, Place
from dataplane.ingest.events import Event, Item, refuse_large
from dataplane.ingest.feeds import Feeds
from dataplane.ingest.journal import Ack, AckJournal
from dataplane.ingest.peers import PeerReader
from dataplane.ingest.problems import RefusalError
from dataplane.ingest.quotas import Meters
from dataplane.ingest.route import Route, Stamper
from dataplane.ingest.schemas import check_of, refuse_misfit
from dataplane.ingest.stamp import Spread, key_bytes, partition_of
from dataplane.ingest.telling import Teller
from dataplane.ingest.traces import Traces
from dataplane.ingest.turns import Turn
from dataplane.ingest.verdicts import Verdict
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.ledger.units import partition_base
from dataplane.plan import SourceFields, source_fields
from dataplane.record_limits import ENVELOPE_BYTES, wire_bytes
from dataplane.runtime.board import Reading
from dataplane.runtime.heartbeat import Pulse
from dataplane.runtime.kafka import ingest_producer
from dataplane.runtime.replaceable import ReplaceableProducer
from dataplane.runtime.settings import Settings
from dataplane.runtime.tracing import Tracing
from dataplane.runtime.usage import UsageBook
from dataplane.spec.keys import key_digest, key_is_well_formed
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import PipeRecord

log = logging.getLogger(__name__)

PRODUCE_TIMEOUT_MS: Final = 5_000  # below every sensible HTTP deadline
CONTROL_EVERY_S: Final = 0.1
RETRY_AFTER_S: Final = 2
FEW_HEADERS: Final = 8  # as many of the largest that a request may bring do not fill the envelope
REQUEST_EFFORT: Final = 10  # in events of a batch: 35 us a request of one event, 3 us an event in a batch of 100
REFUSED_EFFORT: Final = 5  # of a request that is refused unread, likewise
_OUTCOMES: Final = {429: "over-quota", 503: "unavailable"}


class Request(Struct):
    """The events of one request on their way to Kafka: where they go, when they came, what each was stamped with.

    began_us:   the same moment as `now_us`, by the monotonic clock
    partition:  where those without a key go
    size_bytes: of the bodies
    """

    route: Route
    now_us: int
    began_us: int
    partition: int
    metas: list[Meta]
    size_bytes: int = 0


class Pass(Struct):
    """Units of one pipe and bucket that were stored since the last turn, with their lags on arrival.

    began_us: when the request of each came, by the monotonic clock
    """

    ack: Ack
    lags_in_us: list[int]
    began_us: list[int]


class Replica:
    """Takes events and says of each what became of it. Used from one event loop; `start` before, `stop` after."""

    def __init__(self, settings: Settings, name: str, tracing: Tracing | None = None) -> None:
        """`tracing` is closed with the replica."""
        self.settings = settings
        self.name = name
        self._tracing = tracing
        self.traces = None if tracing is None else Traces(tracing, self.take)
        self._files = OptionalFiles()
        self._reader = ControlReader(settings.kafka, snapshot_path(settings.var), self._files)
        self.table = self._reader.table
        make = partial(_producer_of, settings.kafka, name)
        self._producer = ReplaceableProducer(make, self._on_replaced)
        self._journal = AckJournal(settings.var / "data" / "acks", name)
        self._usage = UsageBook()
        self._quiet = False  # no request since the last background turn
        self._teller = Teller(self._producer, self._journal, name, self._usage)
        self._pulse = Pulse(self._producer, cell="", writer=name, kind="ingest", epoch=0, incarnation=str(os.getpid()))
        self._routes: dict[str, Route] = {}
        self._routes_at = -1
        self._stamper = Stamper(settings.grace_s * 1_000_000)
        self._spread = Spread(crc32(name.encode()))
        self._feeds = Feeds(settings.clusters, self.table, self._take_fed, self._room, settings.max_event_bytes)
        self.meters = Meters(self.table, settings.quotas, settings.in_flight_bytes)
        self._peers = PeerReader(settings.kafka, name, self.meters)
        self._waiting = 0  # requests
        self._unsettled = 0  # their events
        self._events: Counter[str] = Counter()  # by outcome
        self._trouble = ""  # why ACKs cannot be journalled
        self._background: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to read the control topic, collect reports, audit and beat. Call on the loop."""
        self._loop = asyncio.get_running_loop()
        self._acks = Acks(self._producer, self._on_done)
        self._background = [asyncio.create_task(self._every(CONTROL_EVERY_S))]

    async def stop(self) -> bool:
        """Tell the ledger what is left and leave; whether all of it is told."""
        await self._feeds.close()
        for task in self._background:
            task.cancel()
        told = await asyncio.to_thread(self._teller.finish, 5.0)
        self._pulse.beat("drained", self.table.offset)
        self._producer.flush(2)
        self._journal.close()
        self._reader.close()
        self._peers.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        return told

    async def caught_up(self, seconds: float) -> None:
        """Until the control topic is read to its end, at most so long: who listens before refuses what is new."""
        deadline = self._loop.time() + seconds
        while not self._reader.at_end and self._loop.time() < deadline:
            await asyncio.sleep(CONTROL_EVERY_S / 2)

    @property
    def ready(self) -> str:
        """Empty if events can be taken, else why not."""
        if not (len(self.table) or self._reader.at_end):
            return "the control topic has not been read yet"
        if self._teller.is_full:
            return self._teller.trouble or "reports to the ledger are far behind"
        return self._producer.trouble

    def readings(self) -> Iterator[Reading]:
        """What became of events, and how the replica feels."""
        for outcome in ("acked", "refused", "over-quota", "unavailable"):
            yield Reading("penstock_ingest_events_total", self._events[outcome], (outcome,))
        yield Reading("penstock_ingest_waiting_requests", self._waiting)
        yield Reading("penstock_ingest_ready", not self.ready)
        yield Reading("penstock_ingest_journal_failing", bool(self._trouble))
        yield Reading("penstock_ingest_unreported_events", self._teller.unreported)
        yield Reading("penstock_ingest_report_late_seconds", self._teller.late_s)
        yield Reading("penstock_ingest_dropped_headers_total", self._feeds.dropped_headers)
        yield Reading("penstock_ingest_producer_replacements_total", self._producer.replacements)

    def route(self, key: str) -> Route:
        """Where a key leads. Raises RefusalError for an unknown or revoked key, a closed pipe, one not live yet."""
        if self._routes_at != self.table.changes:
            self._routes.clear()
            self._routes_at = self.table.changes
        route = self._routes.get(key)
        if route is None:
            if not key_is_well_formed(key):  # junk and typing mistakes cost no look-up
                raise _unknown_key()
            route = self._routes[key] = self._find(key_digest(key))
        return route

    def _find(self, digest: str) -> Route:
        key = self.table.key(digest)
        if key is None and not self._reader.at_end:
            raise _unread()  # a 401 is final to its sender, and the key may be newer than the snapshot
        if key is None or key.revoked:
            raise _unknown_key()
        route = self._lead(key.pipe, key.source)
        route.check = check_of(self.table.schema(key.pipe, key.source))
        return route

    def _lead(self, pipe_id: str, source: str) -> Route:
        """The route of a source. Raises RefusalError for a closed pipe, one not live yet."""
        pipe = self.table.pipe(pipe_id)
        cell = self.table.cell(pipe.cell) if pipe else None
        if pipe is None or cell is None or not pipe.weights:
            raise _starting()
        if pipe.state == "closed":
            raise RefusalError(409, "pipe-closed", "this pipe is closed; open it again to send events")
        fields = self._fields(source, pipe)
        weights = [(revision, share) for revision, share in pipe.weights if revision in fields]
        return Route(pipe, source, cell.topics["ingest"], fields, weights)

    async def _take_fed(self, pipe: str, source: str, events: Iterable[Event], count: int) -> list[int]:
        """Events that were read from a Kafka of somebody else's: the status of each. Raises RefusalError."""
        route, sizes = self._lead(pipe, source), list[int]()

        def sized() -> Iterator[Event]:
            for event in events:
                sizes.append(len(event.body))
                yield event

        take = self.take if self.traces is None else self.traces.read
        verdicts = await take(route, self.within_quota(route.pipe, sized(), count))
        statuses = [verdict.status for verdict in verdicts]
        stored = sum(size for size, status in zip(sizes, statuses, strict=True) if status == 202)
        self.meters.of(route.pipe.tenant).charge(stored)
        return statuses

    def _room(self, tenant: str) -> int:
        """How many events of a tenant may be read from a Kafka of somebody else's now."""
        return self.meters.of(tenant).room(self.meters.clock())

    def _fields(self, source: str, pipe: PipeRecord) -> dict[int, SourceFields]:
        """What revisions that name the source read of events: while one ramps, only the other may.

        Raises RefusalError.
        """
        records = [self.table.plan(pipe.pipe, revision) for revision, _ in pipe.weights]
        known = [record for record in records if record is not None]
        named = {record.revision: record.spec for record in known if source in record.spec.sources}
        if len(known) < len(records) or not named:
            raise _starting()
        return {revision: source_fields(spec)[source] for revision, spec in named.items()}

    def refuse(self, pipe: str) -> None:
        """Count a request that was refused before it was read, because its tenant's quota is exceeded."""
        self._quiet = False
        self._usage.turn(idle=False)
        self._usage.refuse(pipe, 1, REFUSED_EFFORT)
        self._events["over-quota"] += 1

    def within_quota(self, pipe: PipeRecord, items: Iterable[Item], count: int) -> Iterable[Item]:
        """Return so many items, those beyond the tenant's quota as refusals: the last ones, so that order is kept."""
        meter = self.meters.of(pipe.tenant)
        admitted = meter.admit(count, self.meters.clock())
        if admitted == count:
            return items
        return self._cut_off(pipe.pipe, items, admitted, meter.over_rest(count - admitted))

    def _cut_off(self, pipe: str, items: Iterable[Item], admitted: int, over: RefusalError) -> Iterator[Item]:
        for number, item in enumerate(items):
            if number < admitted or isinstance(item, RefusalError):
                yield item
                continue
            if item.origin is None:  # a feed offers it again
                self._usage.refuse(pipe, 1, 0)
            yield over

    async def take(self, route: Route, items: Iterable[Item]) -> list[Verdict]:
        """Store every event and answer for each: 202 after its own delivery report, else why not.

        `items` may be an iterator that decodes them: each is let go as soon as it is on its way, and other requests
        have their turn in between.

        While too many ACKed events are not reported to the ledger, none is taken: 503 for each.
        """
        self._quiet = False
        if self._teller.is_full:
            items = (_unavailable() for _ in items)
        self._usage.turn(idle=False)
        now_us = time.time_ns() // 1_000
        began_us = _monotonic_us()
        request = Request(route, now_us, began_us, self._spread.at(began_us, route.topic.partitions), [])
        batch = Batch(request, self._acks.pace(route.topic.name), self._loop)
        self._waiting += 1
        try:
            count, refused = await self._produce_all(request, items, batch)
            if request.metas:
                self._acks.produced(batch, len(request.metas))
                await batch.future
        finally:
            self._waiting -= 1
            self._unsettled -= len(request.metas)
        taken = _verdicts(request, batch.places)
        away = batch.places.count(None)
        self._events["unavailable"] += away
        self._events["acked"] += len(taken) - away
        if not refused:
            return taken
        for why in refused.values():
            self._events[_OUTCOMES.get(why.status, "refused")] += 1
        rest = iter(taken)
        return [_refused(refused[n]) if n in refused else next(rest) for n in range(count)]

    async def _produce_all(
        self, request: Request, items: Iterable[Item], batch: Batch
    ) -> tuple[int, dict[int, RefusalError]]:
        """Produce what can be taken; return how many items there were, and the refusals by their places."""
        refused: dict[int, RefusalError] = {}
        turn, check, count = Turn(), request.route.check, 0
        for item in items:
            try:
                if check is not None and isinstance(item, Event):
                    refuse_misfit(check, item)
                self._produce(request, item, batch)
            except RefusalError as refusal:
                refused[count] = refusal
            count += 1
            if turn.is_over:
                await turn.give_way()
        self._usage.add(request.route.pipe.pipe, len(request.metas), request.size_bytes, REQUEST_EFFORT + count)
        return count, refused

    def _produce(self, request: Request, event: Item, batch: Batch) -> None:
        if isinstance(event, RefusalError):
            raise event
        refuse_large(event.body, self.settings.max_event_bytes)
        metas = request.metas
        topic = request.route.topic
        meta, key = self._stamper.stamp(request.route, event, request.now_us)
        meta.producer = self._producer.instance
        meta.hops = event.hops
        if event.origin is not None:
            meta.id, key = event.origin.id, key or key_bytes(meta.pipe, event.origin.key)
        partition = request.partition if key is None else partition_of(key, topic.partitions)
        headers = [(META_HEADER, encode_meta(meta)), *event.headers]
        if len(headers) > FEW_HEADERS or event.origin is not None:
            _check_envelope(key, headers)
        if partition in batch.refusing:
            raise _unavailable()
        try:
            batch.pace.send(event.body, key, partition, headers, batch)
        except (BufferError, KafkaException) as exc:
            batch.refusing.add(partition)  # what follows there may have the same key, and must not overtake it
            raise _unavailable() from exc
        batch.numbers[partition].append(len(metas))
        metas.append(meta)
        self._unsettled += 1
        request.size_bytes += len(event.body)

    def _on_done(self, batches: list[Batch]) -> None:
        """Journal and book ACKs before any answer is sent.

        An event whose ACK cannot be journalled is answered with 503, although it is stored: its sender repeats it.
        """
        reusing = [batch for batch in batches if batch.reused]
        for batch in reusing:
            self._note_reuse(batch)
        if reusing:
            self._producer.renew("its offsets were given again")
        passes = self._stored(batches)
        if not passes:
            return
        acks = [found.ack for found in passes]
        try:
            self._journal.write(acks)
        except OSError as exc:
            self._note_journal(f"ACKs cannot be journalled: {exc.strerror}")
            for batch in batches:
                batch.places = [None] * len(batch.places)
            return
        self._note_journal("")
        done_us = _monotonic_us()
        for found in passes:
            self._teller.passed(found.ack, found.lags_in_us, [done_us - began_us for began_us in found.began_us])
        self._teller.acked(acks)

    def _stored(self, batches: list[Batch]) -> Collection[Pass]:
        """Return the events of these requests that are stored, by cell, pipe and bucket. A hot path."""
        stored: dict[tuple[str, str, int, int], Pass] = {}
        for batch in batches:
            request: Request = batch.subject
            pipe, generation, now_us = request.route.pipe, request.route.topic.generation, request.now_us
            bases = {partition: partition_base(generation, partition) for partition in batch.numbers}
            found, bucket, producer = None, -1, -1
            for meta, place in zip(request.metas, batch.places, strict=True):
                if place is None:
                    continue
                partition, offset = place
                if found is None or meta.bucket != bucket or meta.producer != producer:
                    bucket, producer = meta.bucket, meta.producer
                    key = (pipe.cell, pipe.pipe, bucket, producer)
                    found = stored.get(key) or stored.setdefault(key, Pass(Ack(*key[:3], [], producer), [], []))
                found.ack.positions.append(bases[partition] + offset)
                found.lags_in_us.append(now_us - meta.event_time_us)
                found.began_us.append(request.began_us)
        return stored.values()

    def _on_replaced(self) -> None:
        """Refuse what waits to be produced: it is stamped for the instance that failed."""
        self._acks.restart()

    def _note_reuse(self, batch: Batch) -> None:
        """Report offsets that were given twice to records of one producer.

        Kafka has lost what had them first. Those of `batch` are not ACKed: no two ACKed records of a producer share an
        offset.
        """
        request: Request = batch.subject
        log.error("Kafka lost records that it had acknowledged: %s gave offsets again", request.route.topic.name)
        pipe, generation = request.route.pipe, request.route.topic.generation
        for partition, offset in batch.reused:
            position = partition_base(generation, partition) + offset
            for bucket in {request.metas[number].bucket for number in batch.numbers[partition]}:
                self._teller.reused(pipe.cell, pipe.pipe, bucket, [position])

    def _note_journal(self, trouble: str) -> None:
        """Remember whether the journal can be written; the heartbeat says so, the log once for each change."""
        if trouble != self._trouble:
            log.error("%s", trouble) if trouble else log.warning("ACKs can be journalled again")
            self._trouble = trouble

    def _note_idleness(self) -> None:
        if self._quiet and not self._waiting:
            self._usage.turn(idle=True)
        self._quiet = True

    def _beat(self) -> None:
        troubles = (self._producer.trouble, self._trouble, self._teller.trouble, self._files.trouble)
        dropped = self._tracing.dropped if self._tracing is not None else 0
        self._pulse.beat(
            "running",
            self.table.offset,
            unsettled=self._unsettled,
            detail="; ".join(filter(None, troubles)),
            dropped_spans=dropped,
            failing_files=self._files.failing,
            taken=self.meters.tell(),
        )

    async def _every(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                self._reader.refresh()
                self._peers.refresh()
                self._feeds.turn()
                self._producer.poll(0)  # reports of audits and heartbeats while no request is waiting
                self._note_idleness()
                self._teller.tell_if_due(self.settings.checkpoint_ms / 1_000)
                if self._pulse.due():
                    self._beat()
                if self._producer.is_failing:
                    log.critical("Kafka producers fail again and again; leaving so that a new process takes over")
                    signal.raise_signal(signal.SIGTERM)
            except (KafkaException, OSError):
                log.exception("the background turn failed; the next one tries again")


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1_000


def _producer_of(kafka: str, name: str) -> Producer:
    return ingest_producer(kafka, name, PRODUCE_TIMEOUT_MS)


def _verdicts(request: Request, places: list[Place | None]) -> list[Verdict]:
    """Of what was produced, in its order."""
    generation = request.route.topic.generation
    return [
        Verdict(202, meta.id, f"{generation}-{place[0]}-{place[1]}", meta.bucket) if place else _refused(_unavailable())
        for meta, place in zip(request.metas, places, strict=True)
    ]


def _check_envelope(key: bytes | None, headers: Headers) -> None:
    """Raises RefusalError for attributes that leave later hops no room for theirs."""
    size = wire_bytes(None, key, headers)
    if size > ENVELOPE_BYTES:
        raise RefusalError(
            413, "event-too-large", f"needs at most {ENVELOPE_BYTES} bytes of attributes and headers, got {size}"
        )


def _refused(refusal: RefusalError) -> Verdict:
    return Verdict(refusal.status, code=refusal.code, detail=refusal.detail, pointer=refusal.pointer)


def _unavailable() -> RefusalError:
    detail = "events cannot be stored at the moment; send this one again with the same id"
    return RefusalError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


def _unknown_key() -> RefusalError:
    return RefusalError(401, "key-invalid", "this API key is not known, or was revoked")


def _unread() -> RefusalError:
    detail = "which API keys there are is still being read; send this again"
    return RefusalError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


def _starting() -> RefusalError:
    return RefusalError(503, "pipe-starting", "the pipe is not live yet; try again", retry_after_s=RETRY_AFTER_S)
