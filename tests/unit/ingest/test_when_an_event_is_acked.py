"""An event is ACKed after its own delivery report, and never when that report says that it is not stored."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from dataplane.ingest import replica as module
from dataplane.ingest import telling
from dataplane.ingest.acks import Acks
from dataplane.ingest.events import Event, Item
from dataplane.ingest.journal import AckJournal
from dataplane.ingest.problems import RefusalError
from dataplane.ingest.replica import FEW_HEADERS, Replica
from dataplane.ingest.route import Route
from dataplane.ingest.verdicts import Verdict
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.ledger.usage import PipeUsage
from dataplane.names import AUDIT_TOPIC
from dataplane.plan import source_fields
from dataplane.record_limits import ENVELOPE_BYTES, wire_bytes
from dataplane.runtime.settings import settings_from
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, TopicRecord

DESTINATIONS = {"crm": {"type": "http", "url": "http://crm.example/"}}
SPEC = parse_pipe_spec({"sources": {"shop": {}}, "destinations": DESTINATIONS})
PIPE = PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)])
ROUTE = Route(PIPE, "shop", TopicRecord("in", 3, 4, ""), {1: source_fields(SPEC)["shop"]}, [(1, 100)])


class Place:
    """What a delivery report names."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return self._offset


class SlowProducer:
    """Takes every record; reports come when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[KafkaError | None, Place], None]] = []
        self._due: list[tuple[KafkaError | None, Place]] = []

    def produce(self, topic: str, _value: bytes, *record: Any, headers: object = None, **named: Any) -> None:
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
    return [Event(body.encode(), None, []) for body in bodies]


async def taken(replica: Replica, events: list[Item]) -> "asyncio.Task[list[Verdict]]":
    """The request is under way, and everything that needs no report has been done."""
    task = asyncio.ensure_future(replica.take(ROUTE, events))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> SlowProducer:
    made = SlowProducer()
    monkeypatch.setattr(module, "ingest_producer", lambda *_: made)
    return made


def with_replica(folder: Path, story: Callable[[Replica], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        settings = settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(folder)})
        replica = Replica(settings, "ingest-1")
        replica._loop = asyncio.get_running_loop()
        replica._acks = Acks(replica._producer, replica._on_done)
        try:
            await story(replica)
        finally:
            replica._journal.close()
            replica._reader.close()

    asyncio.run(run())


def test_no_answer_is_given_before_the_report(tmp_path: Path, producer: SlowProducer):
    async def story(replica: Replica) -> None:
        task = await taken(replica, events("{}"))
        assert not task.done(), "answered before anybody said that it is stored"
        producer.report(None)
        (verdict,) = await task
        assert (verdict.status, verdict.position) == (202, "3-2-0")

    with_replica(tmp_path, story)


def test_a_request_is_acked_only_when_all_its_reports_are_good(tmp_path: Path, producer: SlowProducer):
    async def story(replica: Replica) -> None:
        task = await taken(replica, events("1", "2", "3"))
        producer.report(None, KafkaError(KafkaError._MSG_TIMED_OUT), None)
        verdicts = await task
        assert [verdict.status for verdict in verdicts] == [503, 503, 503], "whose report it was, nobody can say"
        journal = AckJournal(tmp_path / "data" / "acks", "ingest-1")
        assert journal.left_behind == [], "what was not answered is not told as ACKed"
        journal.close()

    with_replica(tmp_path, story)


def test_a_request_is_noted_for_its_pipe_with_the_events_that_were_taken(tmp_path: Path, producer: SlowProducer):
    async def story(replica: Replica) -> None:
        refused = RefusalError(422, "invalid", "no")
        task = await taken(replica, [*events("{}", "[1]"), refused])
        producer.report(None, None)
        await task
        replica._usage.hasten()
        usage = replica._usage.take_if_due()
        assert usage is not None
        assert usage.pipes == [PipeUsage("p", 2, 5, module.REQUEST_EFFORT + 3)]

    with_replica(tmp_path, story)


def test_while_the_ledger_takes_no_reports_for_too_long_no_event_is_taken(
    tmp_path: Path, producer: SlowProducer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(telling, "MOST_UNREPORTED", 2)
    monkeypatch.setattr(telling, "LATE_S", -1.0)

    async def story(replica: Replica) -> None:
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
        replica._teller.tell_if_due(0)
        for report in producer.waiting:
            report(None, Place(0))
        replica._teller.tell_if_due(0)
        assert replica.ready == ""
        task = await taken(replica, events("3"))
        assert not task.done(), "it is taken"
        task.cancel()

    with_replica(tmp_path, story)


@pytest.mark.parametrize("over", [0, 1])
def test_an_event_whose_attributes_fill_the_envelope_is_refused_alone(
    tmp_path: Path, producer: SlowProducer, over: int
):
    """Counted as the client counts: names, values, framing, our own header."""

    def event(attributes: int) -> Event:
        values = [(f"ce_{number:02}", b"x" * 1_000) for number in range(attributes)]
        return Event(b"{}", None, [("content-type", b"application/json"), *values])

    async def story(replica: Replica) -> None:
        meta, _ = replica._stamper.stamp(ROUTE, event(0), 1_790_000_000_000_000)
        meta.producer = replica._producer.instance
        headers = [(META_HEADER, encode_meta(meta)), *event(60).headers]
        room = ENVELOPE_BYTES - wire_bytes(None, None, headers) + over
        full = Event(b"{}", None, [*event(60).headers, ("ce_y", b"x" * (room - 14))])
        task = await taken(replica, [event(1), full, event(2)])
        producer.report(*[None] * (3 - over))
        statuses = [verdict.status for verdict in await task]
        assert statuses == [202, 413 if over else 202, 202]
        if over:
            verdict = (await task)[1]
            assert verdict.code == "event-too-large"
            assert verdict.detail == f"needs at most {ENVELOPE_BYTES} bytes of attributes and headers, got 65537"

    with_replica(tmp_path, story)


def test_as_many_headers_as_are_not_counted_fit_at_their_largest():
    """A request's attribute has at most 64 characters of name and 1,024 of value; four bytes each."""
    largest: Headers = [("ce_" + "n" * 64, b"v" * 4_096)] * FEW_HEADERS
    assert wire_bytes(None, b"k" * 300, [(META_HEADER, b"m" * 500), *largest]) <= ENVELOPE_BYTES


class PurgeableProducer(SlowProducer):
    """One that can be replaced, and still reports what it was asked for."""

    def purge(self) -> None:
        """What is on its way stays on its way."""

    def __len__(self) -> int:
        return len(self._due)


def test_a_success_that_a_replaced_instance_reports_acks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The new instance may be given the same offset, and no two ACKed records of one pipe may share it."""
    made: list[PurgeableProducer] = []

    def make(*_: object) -> PurgeableProducer:
        made.append(PurgeableProducer())
        return made[-1]

    monkeypatch.setattr(module, "ingest_producer", make)

    async def story(replica: Replica) -> None:
        task = await taken(replica, events("1"))
        replica._producer.renew("a test")
        made[0].report(None)
        (verdict,) = await task
        assert (verdict.status, len(made)) == (503, 2)

    with_replica(tmp_path, story)


def test_what_follows_a_record_that_cannot_be_produced_does_not_overtake_it(
    tmp_path: Path, producer: SlowProducer, monkeypatch: pytest.MonkeyPatch
):
    produce, calls = producer.produce, list[bytes]()

    def full_at_the_second(topic: str, value: bytes, *record: Any, **named: Any) -> None:
        calls.append(value)
        if len(calls) == 2:
            raise BufferError
        produce(topic, value, *record, **named)

    monkeypatch.setattr(producer, "produce", full_at_the_second)

    async def story(replica: Replica) -> None:
        task = await taken(replica, events("1", "2", "3"))
        producer.report(None)
        assert [verdict.status for verdict in await task] == [202, 503, 503]
        assert calls[:2] == [b"1", b"2"]
        assert b"3" not in calls

    with_replica(tmp_path, story)
