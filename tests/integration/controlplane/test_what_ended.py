"""Dead and held messages on real Kafka: each counts once whatever is cut; a move's record carries them to the lanes."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from django.db import connection
from pyroaring import BitMap64

from controlplane.compute.local import LocalCompute
from controlplane.control_topic import ControlTopic
from controlplane.observer.tasks import tend
from controlplane.provisioner.act import Hands
from controlplane.provisioner.tasks import Provisioner
from controlplane.settings import control_settings
from controlplane.topics import TopicAdmin
from dataplane.ledger.deadletter import Death, dead_headers
from dataplane.ledger.meta import META_HEADER, Meta, encode_meta
from dataplane.names import CONTROL_TOPIC, PURPOSES, cell_topic
from dataplane.tables.moves import MOVES_VERSION, MoveProgress, decode_offsets, encode_progress, format_place, move_key
from dataplane.tables.records import MoveRecord, decode_record
from mgmt.models import Alert, Cell, DeadLetter, Move, OffsetSet, Pipe, User
from mgmt.queries.places import Chosen, preview
from mgmt.queries.records import RecordsAway, read_record
from mgmt.services import create_pipe, create_tenant, start_move
from tests.integration.controlplane.observing import observing, until

pytestmark = pytest.mark.django_db(transaction=True)
SPEC = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}


class Lane:
    """Writes what a transmit lane and a retrier lane would write."""

    def __init__(self, kafka: str, cell: str, pipe: str) -> None:
        self._producer = Producer({"bootstrap.servers": kafka, "linger.ms": 5})
        self._cell, self._pipe = cell, pipe

    def topic(self, purpose: str) -> str:
        return cell_topic(self._cell, purpose, 1)  # type: ignore[arg-type]

    def bury(self, numbers: range) -> None:
        for number in numbers:
            meta = self._meta(number)
            death = Death("transmit:crm", "rejected", "rejected: answered 401", "401\nno")
            headers = dead_headers(meta, [(META_HEADER, encode_meta(meta))], death)
            self._produce("dead", headers, number)
        assert self._producer.flush(10) == 0

    def hold(self, numbers: range) -> None:
        for number in numbers:
            self._produce("held", [(META_HEADER, encode_meta(self._meta(number)))], number)
        assert self._producer.flush(10) == 0

    def moved(self, move: Move, offsets: dict[tuple[str, int], BitMap64]) -> None:
        reached = {format_place(place): found.max() + 1 for place, found in offsets.items()}
        done = MoveProgress(MOVES_VERSION, move.id, move.total, 0, move.total, True, 0, reached)
        self._producer.produce(self.topic("signals"), encode_progress(done), move_key(move.id).encode())
        assert self._producer.flush(10) == 0

    def _meta(self, number: int) -> Meta:
        return Meta(1, f"m{number}", self._pipe, 1, "shop", 0, 0, 29_000_000, position=number, destination="crm")

    def _produce(self, purpose: str, headers: list[tuple[str, bytes]], number: int) -> None:
        self._producer.produce(self.topic(purpose), b'{"n": 1}', partition=number % 4, headers=headers)


@pytest.fixture
def provisioner(kafka: str, tmp_path: Path) -> Provisioner:
    settings = msgspec.structs.replace(control_settings(), var=tmp_path)
    return Provisioner(Hands(settings, TopicAdmin(kafka), ControlTopic(kafka), LocalCompute(tmp_path), {}))


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
    for future in AdminClient({"bootstrap.servers": kafka}).delete_topics(names).values():
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


def move_records(kafka: str) -> list[MoveRecord]:
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "penstock.test"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(CONTROL_TOPIC, 0), timeout=10)
        consumer.assign([TopicPartition(CONTROL_TOPIC, 0, low)])
        found, offset = [], low
        while offset < high:
            for message in consumer.consume(1000, 0.5):
                offset = message.offset() + 1
                found.append(decode_record(message.value()))
        return [record for record in found if isinstance(record, MoveRecord)]
    finally:
        consumer.close()


def test_each_dead_and_held_message_counts_once_whatever_is_cut(lane: Lane):
    with observing():
        for batch in range(4):
            lane.bury(range(batch * 50, batch * 50 + 50))
            lane.hold(range(batch * 50, batch * 50 + 50))
            time.sleep(0.6)
            cut_other_connections()
        until(lambda: waiting("dead") == waiting("held") == 200)
        time.sleep(2)
    assert (waiting("dead"), waiting("held"), DeadLetter.objects.count()) == (200, 200, 200)
    alert = Alert.objects.get()
    assert (alert.count, alert.state) == (200, "opened")


def test_a_redrive_goes_out_as_a_record_and_comes_back_as_progress(
    kafka: str, lane: Lane, pipe: Pipe, provisioner: Provisioner
):
    with observing():
        lane.bury(range(20))
        until(lambda: waiting("dead") == 20)
        seen = preview(pipe_id=pipe.id, chosen=Chosen("crm"))
        assert (seen.count, seen.causes) == (20, {"rejected": 20})
        move = start_move(pipe=pipe, chosen=Chosen("crm"))
        provisioner.tick()
        (record,) = [one for one in move_records(kafka) if one.move == move.id]
        assert (record.cell, record.destination, record.what, record.state) == (
            pipe.cell_id,
            "crm",
            "redrive",
            "running",
        )
        offsets = decode_offsets(record.offsets)
        assert sum(len(found) for found in offsets.values()) == 20
        lane.moved(move, offsets)
        until(lambda: Move.objects.get().state == "done")
        provisioner.tick()
        last = [one for one in move_records(kafka) if one.move == move.id][-1]
        assert (last.version, last.offsets) == (2, {}), "nobody carries its places any longer"


def test_what_was_held_is_released_by_the_task_once_its_destination_is_active(lane: Lane, pipe: Pipe):
    with observing():
        lane.hold(range(8))
        until(lambda: waiting("held") == 8)
    tend()
    move = Move.objects.get()
    assert (move.what, move.total, waiting("held")) == ("release", 8, 0)


def test_a_dead_letters_message_is_read_from_its_topic(lane: Lane):
    with observing():
        lane.bury(range(4))
        until(lambda: DeadLetter.objects.count() == 4)
    letter = DeadLetter.objects.get(message_id="m2")
    stored = read_record(letter.topic, letter.partition, letter.offset, pipes=(letter.pipe_id,))
    assert (stored.meta.id, stored.body) == ("m2", b'{"n": 1}')
    with pytest.raises(RecordsAway):
        read_record(letter.topic, letter.partition, 10_000, pipes=(letter.pipe_id,))
