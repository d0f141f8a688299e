"""An event is ACKed only after its own delivery report, and only if the report confirms that it is stored."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaError

from dataplane.ingest import ledger_reporter
from dataplane.ingest import replica as module
from dataplane.ingest.acks import AckTracker
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.event_writer import FEW_HEADERS, REQUEST_EFFORT
from dataplane.ingest.events import Item, ReceivedEvent
from dataplane.ingest.journal import AckJournal
from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.replica import IngestReplica
from dataplane.ingest.route import SourceRoute
from dataplane.ledger.heartbeat import decode_heartbeat
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.ledger.units import partition_base
from dataplane.ledger.usage import PipeUsage
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC
from dataplane.plan import source_fields
from dataplane.record_limits import ENVELOPE_BYTES, wire_bytes
from dataplane.runtime.settings import settings_from
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, TopicRecord
from tests.support.memory_replica import close_replica

DESTINATIONS = {"crm": {"type": "http", "url": "http://crm.example/"}}
SPEC = parse_pipe_spec({"sources": {"shop": {}}, "destinations": DESTINATIONS})
PIPE = PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)])
ROUTE = SourceRoute(PIPE, "shop", TopicRecord("in", 3, 4, ""), {1: source_fields(SPEC)["shop"]}, [(1, 100)])


class Place:
    """Partition and offset of a delivery report."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return self._offset


class SlowProducer:
    """Producer that accepts every record; delivery reports come when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[KafkaError | None, Place], None]] = []
        self.heartbeats: list[bytes] = []
        self._due: list[tuple[KafkaError | None, Place]] = []

    def produce(self, topic: str, value: bytes, *record: Any, headers: object = None, **named: Any) -> None:
        if topic == HEARTBEAT_TOPIC:
            self.heartbeats.append(value)
            return
        assert headers or topic == AUDIT_TOPIC
        self.waiting.append(named["on_delivery"] if topic == AUDIT_TOPIC else record[2])

    def poll(self, _wait_s: float) -> None:
        while self._due:
            self.waiting.pop(0)(*self._due.pop(0))

    def report(self, *errors: KafkaError | None) -> None:
        self._due += [(error, Place(offset)) for offset, error in enumerate(errors)]

    def flush(self, _wait_s: float) -> int:
        return 0


def events(*bodies: str) -> list[Item]:
    return [ReceivedEvent(body.encode(), None, []) for body in bodies]


async def taken(
    replica: IngestReplica, events: list[Item], route: SourceRoute = ROUTE
) -> "asyncio.Task[list[EventResult]]":
    """Start a request and run everything of it that needs no delivery report."""
    task = asyncio.ensure_future(replica.take(route, events))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> SlowProducer:
    made = SlowProducer()
    monkeypatch.setattr(module, "ingest_producer", lambda *_: made)
    return made


def with_replica(folder: Path, story: Callable[[IngestReplica], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        settings = settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(folder)})
        replica = IngestReplica(settings, "ingest-1")
        replica._loop = asyncio.get_running_loop()
        replica._acks = AckTracker(replica._producer, replica._recorder.on_done)
        try:
            async with asyncio.timeout(30):  # an event that is not answered fails its test, and does not hang it
                await story(replica)
        finally:
            close_replica(replica)

    asyncio.run(run())


def test_no_response_is_sent_before_the_delivery_report(tmp_path: Path, producer: SlowProducer):
    async def story(replica: IngestReplica) -> None:
        task = await taken(replica, events("{}"))
        assert not task.done(), "answered before the broker confirmed the record"
        producer.report(None)
        (verdict,) = await task
        assert (verdict.status, verdict.position) == (202, "3-2-0")

    with_replica(tmp_path, story)


def test_request_is_acked_only_when_all_its_delivery_reports_succeed(tmp_path: Path, producer: SlowProducer):
    async def story(replica: IngestReplica) -> None:
        task = await taken(replica, events("1", "2", "3"))
        producer.report(None, KafkaError(KafkaError._MSG_TIMED_OUT), None)
        verdicts = await task
        assert [verdict.status for verdict in verdicts] == [503, 503, 503], "a report does not identify its event"
        journal = AckJournal(tmp_path / "data" / "acks", "ingest-1")
        assert journal.left_behind == [], "unanswered events are not reported as ACKed"
        journal.close()

    with_replica(tmp_path, story)


def test_acks_reported_together_are_journalled_for_the_cell_that_stored_each(tmp_path: Path, producer: SlowProducer):
    async def story(replica: IngestReplica) -> None:
        moved = msgspec.structs.replace(ROUTE, pipe=msgspec.structs.replace(PIPE, version=2, cell="c2"))
        other = msgspec.structs.replace(ROUTE, pipe=msgspec.structs.replace(PIPE, pipe="q"))
        tasks = [await taken(replica, events("{}"), route) for route in (ROUTE, moved, other, ROUTE)]
        producer.report(None, None, None, None)
        assert [(await task)[0].status for task in tasks] == [202] * 4
        journal = AckJournal(tmp_path / "data" / "acks", "ingest-1")
        base = partition_base(3, 2)
        found = {(ack.cell, ack.pipe): [at - base for at in ack.positions] for ack in journal.left_behind}
        assert found == {("c1", "p"): [0, 3], ("c2", "p"): [1], ("c1", "q"): [2]}
        journal.close()

    with_replica(tmp_path, story)


def test_request_is_counted_for_its_pipe_with_its_accepted_events(tmp_path: Path, producer: SlowProducer):
    async def story(replica: IngestReplica) -> None:
        refused = EventRejectedError(422, "invalid", "no")
        task = await taken(replica, [*events("{}", "[1]"), refused])
        producer.report(None, None)
        await task
        replica._usage.hasten()
        usage = replica._usage.take_if_due()
        assert usage is not None
        assert usage.pipes == [PipeUsage("p", 2, 5, REQUEST_EFFORT + 3)]

    with_replica(tmp_path, story)


def test_replica_accepts_no_events_while_reports_to_the_ledger_are_late(
    tmp_path: Path, producer: SlowProducer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ledger_reporter, "MOST_UNREPORTED", 2)
    monkeypatch.setattr(ledger_reporter, "LATE_S", -1.0)

    async def story(replica: IngestReplica) -> None:
        replica._reader.at_end = True
        task = await taken(replica, events("1", "2"))
        producer.report(None, None)
        assert [verdict.status for verdict in await task] == [202, 202]
        (verdict,) = await replica.take(ROUTE, events("3"))
        assert (verdict.status, verdict.code) == (503, "unavailable")
        assert replica.ready.startswith("reports to the ledger are not stored")
        readings = {reading.name: reading.value for reading in replica.readings()}
        assert readings["penstock_ingest_ready"] == 0
        assert readings["penstock_ingest_unreported_events"] == 2
        replica._beat()
        assert decode_heartbeat(producer.heartbeats[-1]).detail.startswith("reports to the ledger are not stored")
        replica._reporter.report_if_due(0)
        for report in producer.waiting:
            report(None, Place(0))
        replica._reporter.report_if_due(0)
        assert replica.ready == ""
        task = await taken(replica, events("3"))
        assert not task.done(), "the event is accepted"
        task.cancel()

    with_replica(tmp_path, story)


@pytest.mark.parametrize("over", [0, 1])
def test_event_whose_attributes_fill_the_envelope_is_refused_alone(tmp_path: Path, producer: SlowProducer, over: int):
    """Size as the Kafka client counts it: names, values, framing and the `Meta` header."""

    def event(attributes: int) -> ReceivedEvent:
        values = [(f"ce_{number:02}", b"x" * 1_000) for number in range(attributes)]
        return ReceivedEvent(b"{}", None, [("content-type", b"application/json"), *values])

    async def story(replica: IngestReplica) -> None:
        meta, _ = replica._writer._stamper.stamp(ROUTE, event(0), 1_790_000_000_000_000)
        meta.producer = replica._producer.instance
        headers = [(META_HEADER, encode_meta(meta)), *event(60).headers]
        room = ENVELOPE_BYTES - wire_bytes(None, None, headers) + over
        full = ReceivedEvent(b"{}", None, [*event(60).headers, ("ce_y", b"x" * (room - 14))])
        task = await taken(replica, [event(1), full, event(2)])
        producer.report(*[None] * (3 - over))
        statuses = [verdict.status for verdict in await task]
        assert statuses == [202, 413 if over else 202, 202]
        if over:
            verdict = (await task)[1]
            assert verdict.code == "event-too-large"
            assert verdict.detail == f"needs at most {ENVELOPE_BYTES} bytes of attributes and headers, got 65537"

    with_replica(tmp_path, story)


def test_headers_too_few_to_be_counted_fit_at_their_largest():
    """An attribute has at most 64 characters of name and 1,024 of value, each of up to four bytes."""
    largest: Headers = [("ce_" + "n" * 64, b"v" * 4_096)] * FEW_HEADERS
    assert wire_bytes(None, b"k" * 300, [(META_HEADER, b"m" * 500), *largest]) <= ENVELOPE_BYTES


class PurgeableProducer(SlowProducer):
    """Producer that can be replaced and still delivers the reports of its records."""

    def purge(self) -> None:
        """Leave records in flight as they are."""

    def __len__(self) -> int:
        return len(self._due)


def test_success_reported_by_a_replaced_producer_acks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The new producer may get the same offset, and two ACKed records of a pipe must not share it."""
    made: list[PurgeableProducer] = []

    def make(*_: object) -> PurgeableProducer:
        made.append(PurgeableProducer())
        return made[-1]

    monkeypatch.setattr(module, "ingest_producer", make)

    async def story(replica: IngestReplica) -> None:
        task = await taken(replica, events("1"))
        replica._producer.renew("a test")
        made[0].report(None)
        (verdict,) = await task
        assert (verdict.status, len(made)) == (503, 2)

    with_replica(tmp_path, story)


def test_event_does_not_overtake_an_earlier_one_that_cannot_be_produced(
    tmp_path: Path, producer: SlowProducer, monkeypatch: pytest.MonkeyPatch
):
    produce, calls = producer.produce, list[bytes]()

    def full_at_the_second(topic: str, value: bytes, *record: Any, **named: Any) -> None:
        calls.append(value)
        if len(calls) == 2:
            raise BufferError
        produce(topic, value, *record, **named)

    monkeypatch.setattr(producer, "produce", full_at_the_second)

    async def story(replica: IngestReplica) -> None:
        task = await taken(replica, events("1", "2", "3"))
        producer.report(None)
        assert [verdict.status for verdict in await task] == [202, 503, 503]
        assert calls[:2] == [b"1", b"2"]
        assert b"3" not in calls

    with_replica(tmp_path, story)
