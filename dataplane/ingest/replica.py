"""One ingest replica: control table, producer, delivery reports, ack journal and audit, apart from HTTP."""

import asyncio
import logging
import os
import time
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from msgspec import Struct

from dataplane.ingest.acks import Acks, Batch
from dataplane.ingest.events import Event, Item
from dataplane.ingest.journal import Ack, AckJournal
from dataplane.ingest.problems import RefusalError
from dataplane.ingest.stamp import choose_revision, event_time_us, key_bytes, message_id
from dataplane.ingest.telling import Teller
from dataplane.ledger.meta import META_HEADER, Meta, encode_meta, new_meta
from dataplane.ledger.units import bucket_of, format_position, partition_base
from dataplane.plan import Plan, compile_plan
from dataplane.runtime.heartbeat import Pulse
from dataplane.runtime.kafka import ingest_producer
from dataplane.runtime.settings import Settings
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.records import KeyRecord, PipeRecord, TopicRecord

log = logging.getLogger(__name__)

PRODUCE_TIMEOUT_MS: Final = 5_000  # below every sensible HTTP deadline
CONTROL_EVERY_S: Final = 0.1
RETRY_AFTER_S: Final = 2
CHANCE_BYTES: Final = 10


class Route(Struct):
    """Everything a key leads to, looked up once per change of the control table."""

    pipe: PipeRecord
    source: str
    topic: TopicRecord
    plans: dict[int, Plan]


class Pending(Struct):
    """One record on its way to Kafka."""

    meta: Meta
    cell: str
    generation: int


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
        self._pending: dict[Batch, list[Pending]] = {}
        self._chance = memoryview(b"")
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
        self._acks.close()
        self._journal.close()
        self._reader.close()

    @property
    def ready(self) -> str:
        """Empty if events can be taken, else why not."""
        return "" if len(self.table) or self._reader.at_end else "the control topic has not been read yet"

    def route(self, digest: str) -> Route:
        """Where a key leads. Raises RefusalError for an unknown or revoked key, a closed pipe, one not live yet."""
        if self._routes_at != self.table.changes:
            self._routes.clear()
            self._routes_at = self.table.changes
        route = self._routes.get(digest)
        if route is None:
            route = self._routes[digest] = self._find(digest)
        return route

    def _find(self, digest: str) -> Route:
        key = self.table.key(digest)
        if key is None or key.revoked:
            raise RefusalError(401, "key-invalid", "this API key is not known, or was revoked")
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
        batch = Batch(len(items), asyncio.get_running_loop())
        pending: list[Pending] = []
        verdicts: list[Verdict | None] = []
        for item in items:
            try:
                if isinstance(item, RefusalError):
                    raise item
                pending.append(self._produce(route, item, batch, len(pending)))
                verdicts.append(None)
            except RefusalError as refusal:
                verdicts.append(Verdict(refusal.status, code=refusal.code, detail=refusal.detail))
        if pending:
            self._pending[batch] = pending
            self._acks.produced(batch, len(pending))
            await batch.future
        reports = zip(pending, batch.reports, strict=False)
        return [verdict or _verdict(*next(reports)) for verdict in verdicts]

    def _produce(self, route: Route, event: Event, batch: Batch, index: int) -> Pending:
        if len(event.body) > self.settings.max_event_bytes:
            limit = self.settings.max_event_bytes
            raise RefusalError(413, "event-too-large", f"needs at most {limit} bytes an event, got {len(event.body)}")
        now_us = time.time_ns() // 1_000
        meta, key = self._stamp(route, event, now_us)
        record: dict[str, Any] = {} if key is None else {"key": key}
        try:
            self._producer.produce(
                route.topic.name,
                event.body,
                headers=[(META_HEADER, encode_meta(meta)), *event.headers],
                on_delivery=self._acks.reporter(batch, index),
                **record,
            )
        except (BufferError, KafkaException) as exc:
            raise _unavailable() from exc
        return Pending(meta, route.pipe.cell, route.topic.generation)

    def _stamp(self, route: Route, event: Event, now_us: int) -> tuple[Meta, bytes | None]:
        pipe, chance = route.pipe, self._random_80()
        id_ = message_id(now_us, chance)
        first = route.plans[pipe.weights[0][0]].sources[route.source]
        key = key_bytes(pipe.pipe, first.key(event.value)) if first.any else None
        revision = choose_revision(pipe.weights, key or id_.encode())
        if revision is None:
            raise _starting()
        fields = route.plans[revision].sources[route.source]
        raw_time = fields.event_time(event.value) if fields.any else None
        event_us = event_time_us(event.time if raw_time is None else raw_time) or now_us
        stamp = bucket_of(event_us, now_us, self.settings.grace_s * 1_000_000)
        meta = new_meta(
            id=id_,
            pipe=pipe.pipe,
            revision=revision,
            source=route.source,
            event_time_us=event_us,
            ingest_time_us=now_us,
            bucket=stamp.bucket,
            off_time=stamp.off_time,
        )
        return meta, key

    def _random_80(self) -> int:
        if len(self._chance) < CHANCE_BYTES:
            self._chance = memoryview(os.urandom(CHANCE_BYTES * 1_000))
        chunk, self._chance = self._chance[:CHANCE_BYTES], self._chance[CHANCE_BYTES:]
        return int.from_bytes(chunk)

    def _on_done(self, batches: list[Batch]) -> None:
        """Reports are in: journal and account the ACKs before any answer goes out."""
        now_us = time.time_ns() // 1_000
        acks: list[Ack] = []
        for batch in batches:
            for pending, report in zip(self._pending.pop(batch), batch.reports, strict=False):
                if report is None or report[0] is not None:
                    continue
                meta = pending.meta
                meta.position = partition_base(pending.generation, report[1]) + report[2]
                acks.append(Ack(pending.cell, meta.pipe, meta.bucket, meta.position))
                self._teller.lag(pending.cell, meta, now_us)
        if acks:
            self._journal.write(acks)
            self._teller.acked(acks)

    async def _every(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                self._reader.refresh()
                self._teller.tell_if_due(self.settings.checkpoint_ms / 1_000)
                if self._pulse.due():
                    self._pulse.beat("running", self.table.offset, unsettled=len(self._pending))
            except (KafkaException, OSError):
                log.exception("the background turn failed; the next one tries again")


def _verdict(pending: Pending, report: tuple[KafkaError | None, int, int] | None) -> Verdict:
    if report is None or report[0] is not None:
        refusal = _unavailable()
        return Verdict(refusal.status, code=refusal.code, detail=refusal.detail)
    meta = pending.meta
    return Verdict(202, id=meta.id, position=format_position(meta.position), bucket=meta.bucket)


def _unavailable() -> RefusalError:
    detail = "events cannot be stored at the moment; send this one again with the same id"
    return RefusalError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


def _starting() -> RefusalError:
    return RefusalError(503, "pipe-starting", "the pipe is not live yet; try again", retry_after_s=RETRY_AFTER_S)
