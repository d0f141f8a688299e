"""One ingest replica: control table, producer, delivery reports, ack journal and audit, apart from HTTP."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.ingest.acks import Acks, Batch, Report
from dataplane.ingest.events import Event, Item
from dataplane.ingest.journal import Ack, AckJournal
from dataplane.ingest.problems import RefusalError
from dataplane.ingest.stamp import choose_revision, event_time_us, key_bytes, message_id
from dataplane.ingest.telling import Teller
from dataplane.ledger.meta import META_HEADER, Meta, encode_meta
from dataplane.ledger.units import bucket_of, partition_base
from dataplane.names import WIRE_VERSION
from dataplane.plan import Plan, compile_plan
from dataplane.runtime.heartbeat import Pulse
from dataplane.runtime.kafka import ingest_producer
from dataplane.runtime.settings import Settings
from dataplane.spec.keys import key_digest, key_is_well_formed
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.records import KeyRecord, PipeRecord, TopicRecord

log = logging.getLogger(__name__)

PRODUCE_TIMEOUT_MS: Final = 5_000  # below every sensible HTTP deadline
CONTROL_EVERY_S: Final = 0.1
RETRY_AFTER_S: Final = 2
CHANCE_DIGITS: Final = 19


class Route(Struct):
    """Everything a key leads to, looked up once per change of the control table."""

    pipe: PipeRecord
    source: str
    topic: TopicRecord
    plans: dict[int, Plan]


class Request(Struct):
    """The events of one request on their way to Kafka: where they go, when they came, what each was stamped with."""

    route: Route
    now_us: int
    metas: list[Meta]


class Pass(Struct):
    """Units of one request and bucket that are stored, with what their lags are counted from."""

    ack: Ack
    event_times_us: list[int]
    in_us: int


class Verdict(Struct, omit_defaults=True):
    """What became of one event."""

    status: int
    id: str = ""
    position: str = ""
    bucket: int = 0
    code: str = ""
    detail: str = ""


class Replica:
    """Takes events and says of each what became of it. Used from one event loop; `start` before, `stop` after."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name
        self._reader = ControlReader(settings.kafka, snapshot_path(settings.var))
        self.table = self._reader.table
        self._producer = ingest_producer(settings.kafka, name, PRODUCE_TIMEOUT_MS)
        self._journal = AckJournal(settings.var / "data" / "acks", name)
        self._teller = Teller(self._producer, self._journal, name)
        self._pulse = Pulse(self._producer, cell="", writer=name, kind="ingest", epoch=0, incarnation=str(os.getpid()))
        self._routes: dict[str, Route] = {}
        self._routes_at = -1
        self._grace_us = settings.grace_s * 1_000_000
        self._waiting = 0
        self._broken = False
        self._trouble = ""  # why ACKs cannot be journalled
        self._chance, self._chance_at = "", 0
        self._background: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to read the control topic, collect reports, audit and beat. Call on the loop."""
        self._acks = Acks(self._producer, self._on_done)
        self._background = [asyncio.create_task(self._every(CONTROL_EVERY_S))]

    async def stop(self) -> None:
        """Tell the ledger what is left and leave."""
        for task in self._background:
            task.cancel()
        await asyncio.to_thread(self._teller.finish, 5.0)
        self._pulse.beat("drained", self.table.offset)
        self._producer.flush(2)
        self._journal.close()
        self._reader.close()

    @property
    def ready(self) -> str:
        """Empty if events can be taken, else why not."""
        return "" if len(self.table) or self._reader.at_end else "the control topic has not been read yet"

    def route(self, key: str) -> Route:
        """Where a key leads. Raises RefusalError for an unknown or revoked key, a closed pipe, one not live yet."""
        digest = key_digest(key)
        if self._routes_at != self.table.changes:
            self._routes.clear()
            self._routes_at = self.table.changes
        route = self._routes.get(digest)
        if route is None:
            if not key_is_well_formed(key):  # junk and typing mistakes cost no look-up
                raise _unknown_key()
            route = self._routes[digest] = self._find(digest)
        return route

    def _find(self, digest: str) -> Route:
        key = self.table.key(digest)
        if key is None or key.revoked:
            raise _unknown_key()
        pipe = self.table.pipe(key.pipe)
        cell = self.table.cell(pipe.cell) if pipe else None
        if pipe is None or cell is None or not pipe.weights:
            raise _starting()
        if pipe.state == "closed":
            raise RefusalError(409, "pipe-closed", "this pipe is closed; open it again to send events")
        return Route(pipe, key.source, cell.topics["ingest"], self._plans(key, pipe))

    def _plans(self, key: KeyRecord, pipe: PipeRecord) -> dict[int, Plan]:
        plans = {}
        for revision, _ in pipe.weights:
            record = self.table.plan(pipe.pipe, revision)
            if record is None or key.source not in record.spec.sources:
                raise _starting()
            plans[revision] = compile_plan(record.spec)
        return plans

    async def take(self, route: Route, items: list[Item]) -> list[Verdict]:
        """Store every event and answer for each: 202 after its own delivery report, else why not."""
        request = Request(route, time.time_ns() // 1_000, [])
        batch = Batch(len(items), request, asyncio.get_running_loop())
        verdicts: list[Verdict | None] = []
        for item in items:
            try:
                if isinstance(item, RefusalError):
                    raise item
                self._produce(request, item, batch)
                verdicts.append(None)
            except RefusalError as refusal:
                verdicts.append(Verdict(refusal.status, code=refusal.code, detail=refusal.detail))
        if request.metas:
            self._acks.produced(batch, len(request.metas))
            self._waiting += 1
            await batch.future
            self._waiting -= 1
        reports = zip(request.metas, batch.reports, strict=False)
        generation = route.topic.generation
        return [verdict or _verdict(*next(reports), generation) for verdict in verdicts]

    def _produce(self, request: Request, event: Event, batch: Batch) -> None:
        if len(event.body) > self.settings.max_event_bytes:
            limit = self.settings.max_event_bytes
            raise RefusalError(413, "event-too-large", f"needs at most {limit} bytes an event, got {len(event.body)}")
        meta, key = self._stamp(request.route, event, request.now_us)
        try:
            self._producer.produce(
                request.route.topic.name,
                event.body,
                key,
                headers=[(META_HEADER, encode_meta(meta)), *event.headers],
                on_delivery=self._acks.reporter(batch, len(request.metas)),
            )
        except (BufferError, KafkaException) as exc:
            raise _unavailable() from exc
        request.metas.append(meta)

    def _stamp(self, route: Route, event: Event, now_us: int) -> tuple[Meta, bytes | None]:
        pipe = route.pipe
        id_ = message_id(now_us, self._chance_digits())
        revision = pipe.weights[0][0]
        fields = route.plans[revision].sources[route.source]
        key = key_bytes(pipe.pipe, fields.key(event.value)) if fields.any else None
        if len(pipe.weights) > 1:
            revision = choose_revision(pipe.weights, key or id_.encode()) or revision
            fields = route.plans[revision].sources[route.source]
        given = fields.event_time(event.value) if fields.any else None
        event_us = event_time_us(event.time if given is None else given) or now_us
        bucket, off_time = bucket_of(event_us, now_us, self._grace_us)
        return Meta(WIRE_VERSION, id_, pipe.pipe, revision, route.source, event_us, now_us, bucket, off_time), key

    def _chance_digits(self) -> str:
        if self._chance_at + CHANCE_DIGITS > len(self._chance):
            self._chance, self._chance_at = os.urandom(CHANCE_DIGITS * 1_000).hex(), 0
        at = self._chance_at
        self._chance_at = at + CHANCE_DIGITS
        return self._chance[at : at + CHANCE_DIGITS]

    def _on_done(self, batches: list[Batch]) -> None:
        """Reports are in: journal and account the ACKs before any answer goes out.

        What cannot be journalled is not ACKed: it is stored, and its sender is told to send it again.
        """
        now_us = time.time_ns() // 1_000
        passes = [found for batch in batches for found in self._stored(batch)]
        acks = [found.ack for found in passes]
        if not acks:
            return
        try:
            self._journal.write(acks)
        except OSError as exc:
            self._note_journal(f"ACKs cannot be journalled: {exc.strerror}")
            for batch in batches:
                batch.reports = [None] * len(batch.reports)
            return
        self._note_journal("")
        for found in passes:
            self._teller.passed(found.ack, found.event_times_us, in_us=found.in_us, out_us=now_us)
        self._teller.acked(acks)

    def _stored(self, batch: Batch) -> Iterable[Pass]:
        """What of a request is stored, by bucket."""
        request: Request = batch.subject
        pipe, topic = request.route.pipe, request.route.topic
        stored: dict[int, Pass] = {}
        for meta, report in zip(request.metas, batch.reports, strict=False):
            if report is None or report[0] is not None:
                self._broken |= report is not None and report[0] is not None and report[0].fatal()
                continue
            found = stored.get(meta.bucket)
            if found is None:
                found = Pass(Ack(pipe.cell, pipe.pipe, meta.bucket, []), [], request.now_us)
                stored[meta.bucket] = found
            found.ack.positions.append(partition_base(topic.generation, report[1]) + report[2])
            found.event_times_us.append(meta.event_time_us)
        return stored.values()

    def _note_journal(self, trouble: str) -> None:
        """Remember whether the journal can be written; the heartbeat says so, the log once for each change."""
        if trouble != self._trouble:
            log.error("%s", trouble) if trouble else log.warning("ACKs can be journalled again")
            self._trouble = trouble

    async def _every(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                self._reader.refresh()
                self._producer.poll(0)  # reports of audits and heartbeats while no request is waiting
                self._teller.tell_if_due(self.settings.checkpoint_ms / 1_000)
                if self._pulse.due():
                    self._pulse.beat("running", self.table.offset, unsettled=self._waiting, detail=self._trouble)
                if self._broken:
                    log.critical("the producer is of no more use; leaving so that a new process takes over")
                    signal.raise_signal(signal.SIGTERM)
            except (KafkaException, OSError):
                log.exception("the background turn failed; the next one tries again")


def _verdict(meta: Meta, report: Report | None, generation: int) -> Verdict:
    if report is None or report[0] is not None:
        refusal = _unavailable()
        return Verdict(refusal.status, code=refusal.code, detail=refusal.detail)
    return Verdict(202, meta.id, f"{generation}-{report[1]}-{report[2]}", meta.bucket)


def _unavailable() -> RefusalError:
    detail = "events cannot be stored at the moment; send this one again with the same id"
    return RefusalError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


def _unknown_key() -> RefusalError:
    return RefusalError(401, "key-invalid", "this API key is not known, or was revoked")


def _starting() -> RefusalError:
    return RefusalError(503, "pipe-starting", "the pipe is not live yet; try again", retry_after_s=RETRY_AFTER_S)
