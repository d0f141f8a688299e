"""Dead and held messages on real Kafka: each counts once despite cuts; redrive records carry them to lanes."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition
from django.db import connection
from pyroaring import BitMap64

from controlplane.compute.local import LocalCompute
from controlplane.control_topic import ControlTopic
from controlplane.observer.tasks import tend
from controlplane.provisioner.act import Effects
from controlplane.provisioner.tasks import Provisioner
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator
from dataplane.ledger.deadletter import DeadLetterReason, dead_headers
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.names import CONTROL_TOPIC, PURPOSES, cell_topic
from dataplane.tables.records import RedriveRecord, decode_record
from dataplane.tables.redrives import (
    REDRIVES_VERSION,
    RedriveProgress,
    decode_offsets,
    encode_progress,
    format_place,
    redrive_key,
)
from mgmt.deliveries.queries.message_selection import MessageSelection, preview
from mgmt.messages.queries.records import RecordUnavailableError, read_record
from mgmt.models import Alert, Cell, DeadLetter, OffsetSet, Pipe, Redrive, User
from mgmt.services import create_pipe, create_tenant, start_redrive
from tests.integration.controlplane.observing import observing
from tests.support.kafka import admin_consumer, admin_producer, broker_admin
from tests.support.patience import until

pytestmark = pytest.mark.django_db(transaction=True)
SPEC = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}


class Lane:
    """Writer of the records of a transmit lane and a retrier lane."""

    def __init__(self, kafka: str, cell: str, pipe: str) -> None:
        self._producer = admin_producer({"bootstrap.servers": kafka, "linger.ms": 5})
        self._cell, self._pipe = cell, pipe

    def topic(self, purpose: str) -> str:
        return cell_topic(self._cell, purpose, 1)  # type: ignore[arg-type]

    def dead_letter(self, numbers: range) -> None:
        for number in numbers:
            meta = self._meta(number)
            death = DeadLetterReason("transmit:crm", "rejected", "rejected: returned 401", "401\nno")
            headers = dead_headers(meta, [(META_HEADER, encode_meta(meta))], death)
            self._produce("dead", headers, number)
        assert self._producer.flush(10) == 0

    def hold(self, numbers: range) -> None:
        for number in numbers:
            self._produce("held", [(META_HEADER, encode_meta(self._meta(number)))], number)
        assert self._producer.flush(10) == 0

    def report_done(self, move: Redrive, offsets: dict[tuple[str, int], BitMap64]) -> None:
        reached = {format_place(place): found.max() + 1 for place, found in offsets.items()}
        done = RedriveProgress(REDRIVES_VERSION, move.id, move.total, 0, move.total, True, 0, reached)
        self._producer.produce(self.topic("signals"), encode_progress(done), redrive_key(move.id).encode())
        assert self._producer.flush(10) == 0

    def _meta(self, number: int) -> MessageMeta:
        return MessageMeta(1, f"m{number}", self._pipe, 1, "shop", 0, 0, 29_000_000, position=number, destination="crm")

    def _produce(self, purpose: str, headers: list[tuple[str, bytes]], number: int) -> None:
        self._producer.produce(self.topic(purpose), b'{"n": 1}', partition=number % 4, headers=headers)


@pytest.fixture
def provisioner(kafka: str, tmp_path: Path) -> Provisioner:
    settings = msgspec.structs.replace(control_settings(), var=tmp_path)
    return Provisioner(Effects(settings, TopicCreator(kafka), ControlTopic(kafka), LocalCompute(tmp_path), {}))


@pytest.fixture
def pipe(kafka: str, provisioner: Provisioner) -> Iterator[Pipe]:
    """A placed pipe on a cell that no other test shares."""
    cell = f"t{uuid.uuid4().hex[:8]}"
    Cell.objects.create(id=cell)
    alice = User.objects.create_user("alice")
    pipe = create_pipe(tenant=create_tenant(name="Alice", owner=alice), name="orders", spec=SPEC, author=alice)
    provisioner.tick()
    pipe.refresh_from_db()
    assert pipe.cell_id == cell
    yield pipe
    names = [cell_topic(cell, purpose, 1) for purpose in PURPOSES]
    for future in broker_admin(kafka).delete_topics(names).values():
        future.exception()


@pytest.fixture
def lane(kafka: str, pipe: Pipe) -> Lane:
    return Lane(kafka, str(pipe.cell_id), pipe.id)


def waiting(kind: str) -> int:
    return sum(OffsetSet.objects.filter(kind=kind).values_list("count", flat=True))


def cut_other_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def redrive_records(kafka: str) -> list[RedriveRecord]:
    consumer = admin_consumer({"bootstrap.servers": kafka, "group.id": "penstock.test"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(CONTROL_TOPIC, 0), timeout=10)
        consumer.assign([TopicPartition(CONTROL_TOPIC, 0, low)])
        found, offset = [], low
        while offset < high:
            for message in consumer.consume(1000, 0.5):
                offset = message.offset() + 1
                found.append(decode_record(message.value()))
        return [record for record in found if isinstance(record, RedriveRecord)]
    finally:
        consumer.close()


def test_each_dead_and_held_message_counts_once_despite_cut_connections(lane: Lane):
    with observing():
        for batch in range(4):
            lane.dead_letter(range(batch * 50, batch * 50 + 50))
            lane.hold(range(batch * 50, batch * 50 + 50))
            time.sleep(0.6)
            cut_other_connections()
        until(lambda: waiting("dead") == waiting("held") == 200, limit_s=30)
        time.sleep(2)
    assert (waiting("dead"), waiting("held"), DeadLetter.objects.count()) == (200, 200, 200)
    alert = Alert.objects.get()
    assert (alert.count, alert.state) == (200, "opened")


def test_redrive_is_published_as_a_record_and_ends_by_reported_progress(
    kafka: str, lane: Lane, pipe: Pipe, provisioner: Provisioner
):
    with observing():
        lane.dead_letter(range(20))
        until(lambda: waiting("dead") == 20, limit_s=30)
        seen = preview(pipe_id=pipe.id, chosen=MessageSelection("crm"))
        assert (seen.count, seen.causes) == (20, {"rejected": 20})
        move = start_redrive(pipe=pipe, chosen=MessageSelection("crm"))
        provisioner.tick()
        (record,) = [one for one in redrive_records(kafka) if one.move == move.id]
        assert (record.cell, record.destination, record.what, record.state) == (
            pipe.cell_id,
            "crm",
            "redrive",
            "running",
        )
        offsets = decode_offsets(record.offsets)
        assert sum(len(found) for found in offsets.values()) == 20
        lane.report_done(move, offsets)
        until(lambda: Redrive.objects.get().state == "done", limit_s=30)
        provisioner.tick()
        last = [one for one in redrive_records(kafka) if one.move == move.id][-1]
        assert (last.version, last.offsets) == (2, {}), "a finished redrive carries no offsets"


def test_task_releases_held_messages_once_their_destination_is_active(lane: Lane, pipe: Pipe):
    with observing():
        lane.hold(range(8))
        until(lambda: waiting("held") == 8, limit_s=30)
    tend()
    move = Redrive.objects.get()
    assert (move.what, move.total, waiting("held")) == ("release", 8, 0)


def test_message_of_a_dead_letter_is_read_from_its_topic(lane: Lane):
    with observing():
        lane.dead_letter(range(4))
        until(lambda: DeadLetter.objects.count() == 4, limit_s=30)
    letter = DeadLetter.objects.get(message_id="m2")
    stored = read_record(letter.topic, letter.partition, letter.offset, pipes=(letter.pipe_id,))
    assert (stored.meta.id, stored.body) == ("m2", b'{"n": 1}')
    with pytest.raises(RecordUnavailableError):
        read_record(letter.topic, letter.partition, 10_000, pipes=(letter.pipe_id,))
