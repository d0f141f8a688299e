"""Provisioner's tick on real Kafka and Postgres: pipes go live despite repeated, parallel and killed ticks."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition
from django.db import connection

from controlplane.compute.local import LocalCompute
from controlplane.compute.port import DesiredApplication
from controlplane.control_topic import ControlTopic
from controlplane.locks import held
from controlplane.provisioner.act import Effects
from controlplane.provisioner.cell_change import ONE_CHANGE
from controlplane.provisioner.tasks import LOCK, Provisioner
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, first_readers
from dataplane.names import DELAYS_S, PURPOSES, WIRE_VERSION, cell_topic, lane_group
from dataplane.tables.records import (
    ApiKeyRecord,
    CellRecord,
    DestinationRecord,
    PipeRecord,
    PlanRecord,
    Record,
    SchemaRecord,
)
from mgmt.models import Cell, Heartbeat, Pipe, PipeRevision, SettledOffset, Topic, User
from mgmt.pipes.topics import cell_plans
from mgmt.services import (
    create_api_key,
    create_pipe,
    create_tenant,
    publish_revision,
    register_release,
    register_schema,
    revoke_api_key,
)
from tests.integration.controlplane.records import control_records
from tests.support.kafka import admin_consumer, broker_admin
from tests.support.patience import Patience

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[3]
RELEASE = "0123456789abcdef"
SPEC = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}


def provisioner_at(kafka: str, var: Path) -> Provisioner:
    settings = msgspec.structs.replace(control_settings(), var=var)
    hands = Effects(settings, TopicCreator(kafka), ControlTopic(kafka), LocalCompute(var), {})
    return Provisioner(hands)


@pytest.fixture
def provisioner(kafka: str, tmp_path: Path) -> Provisioner:
    return provisioner_at(kafka, tmp_path)


@pytest.fixture
def cell(kafka: str) -> Iterator[str]:
    """A cell that no other test shares, because its topics are real; they are deleted after the test."""
    name = f"t{uuid.uuid4().hex[:8]}"
    register_release(release=RELEASE, wire=WIRE_VERSION, about="", now=datetime.now(UTC))
    Cell.objects.create(id=name, release_id=RELEASE)
    yield name
    admin = broker_admin(kafka)
    for future in admin.delete_topics([cell_topic(name, purpose, 1) for purpose in PURPOSES]).values():
        future.exception()


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def pipe(cell: str, alice: User) -> Pipe:
    assert Cell.objects.filter(id=cell).exists()
    pipe = create_pipe(tenant=create_tenant(name="Alice", owner=alice), name="orders", spec=SPEC, author=alice)
    create_api_key(source=pipe.sources.get())
    return pipe


def beat(cell: str, writer: str, kind: str, table_offset: int) -> None:
    Heartbeat.objects.update_or_create(
        cell=cell,
        writer=writer,
        defaults={
            "kind": kind,
            "epoch": 1,
            "incarnation": "x",
            "state": "running",
            "table_offset": table_offset,
            "at": datetime.now(UTC),
            "body": {},
        },
    )


def all_hold(cell: str, table_offset: int) -> None:
    for kind in ("process", "transmit"):
        beat(cell, f"{kind}-0", kind, table_offset)
    beat("", "ingest-1", "ingest", table_offset)


def tick_to(provisioner: Provisioner, revision: PipeRevision, state: str, table_offset: int = 10**9) -> None:
    """Tick between heartbeats of all lanes until the revision has the state. A tick has several rounds; one that waits
    long for Kafka finds its first heartbeats too old, and the next tick continues."""
    patience = Patience(60)
    while revision.state != state:
        assert not patience.is_over, f"{revision.state}: {revision.state_reason}"
        revision.pipe.refresh_from_db()
        all_hold(str(revision.pipe.cell_id), table_offset)
        provisioner.tick()
        revision.refresh_from_db()


def of_pipe(pipe: Pipe) -> list[Record]:
    return [record for record in control_records() if getattr(record, "pipe", None) == pipe.id]


def revision_of(pipe: Pipe, number: int = 1) -> PipeRevision:
    return PipeRevision.objects.get(pipe=pipe, number=number)


def test_new_pipe_is_placed_published_and_ramping_after_one_tick(
    provisioner: Provisioner, cell: str, pipe: Pipe, tmp_path: Path
):
    provisioner.tick()
    pipe.refresh_from_db()
    revision = revision_of(pipe)
    assert (pipe.cell_id, revision.state) == (cell, "ramping")
    assert revision.state_reason == f"waiting for cell {cell}: no process lane has reported in the last seconds"
    kinds = [type(record) for record in of_pipe(pipe)]
    assert kinds.index(PlanRecord) < kinds.index(DestinationRecord) < kinds.index(PipeRecord)
    assert LocalCompute(tmp_path).observe(cell).desired == DesiredApplication(
        cell, 1, control_settings().cell_master, RELEASE
    )


def test_cell_topics_are_bound_and_every_lane_group_has_first_offsets(provisioner: Provisioner, kafka: str, cell: str):
    provisioner.tick()
    rows = {topic.purpose: topic for topic in Topic.objects.filter(cell=cell)}
    assert set(rows) == set(PURPOSES)
    found = TopicCreator(kafka).find(row.name for row in rows.values())
    assert all(found[row.name].topic_id == row.topic_id for row in rows.values())
    (record,) = [r for r in control_records() if isinstance(r, CellRecord) and r.cell == cell]
    assert record.topics["ingest"].topic_id == rows["ingest"].topic_id
    for group in first_readers(cell_plans(cell, 1, control_settings().topics), cell):
        assert set(committed_offsets(kafka, cell, group)) == {0}


def test_offsets_that_kafka_has_forgotten_are_restored_from_the_ledger(
    provisioner: Provisioner, kafka: str, cell: str, tmp_path: Path
):
    provisioner.tick()
    topic = Topic.objects.get(cell=cell, purpose="ingest").name
    group = lane_group(cell, "process")
    admin = broker_admin(kafka)
    for future in admin.delete_consumer_groups([group]).values():
        future.result()
    SettledOffset.objects.create(topic=topic, partition=1, offset=70)
    provisioner_at(kafka, tmp_path).tick()
    offsets = committed_offsets(kafka, cell, group)
    assert (offsets[1], sum(offsets)) == (70, 70), "a partition without a known offset begins at its start"


def committed_offsets(kafka: str, cell: str, group: str) -> list[int]:
    plans = first_readers(cell_plans(cell, 1, control_settings().topics), cell)[group]
    places = [TopicPartition(plan.name, number) for plan in plans for number in range(plan.partitions)]
    consumer = admin_consumer({"bootstrap.servers": kafka, "group.id": group})
    committed = consumer.committed(places, timeout=10)
    consumer.close()
    return [place.offset for place in committed]


def made_before(cell: str) -> None:
    """Reduce the cell to the topics of an earlier release."""
    rows = Topic.objects.filter(cell=cell, purpose__in=[*DELAYS_S, "signals"])
    admin = broker_admin(control_settings().kafka)
    for future in admin.delete_topics([row.name for row in rows]).values():
        future.result()
    rows.delete()


def test_cell_of_an_earlier_release_gets_its_missing_topics(provisioner: Provisioner, kafka: str, cell: str):
    provisioner.tick()
    made_before(cell)
    before = Cell.objects.get(id=cell).version
    provisioner.tick()
    assert {topic.purpose for topic in Topic.objects.filter(cell=cell)} == set(PURPOSES)
    (*_, record) = [r for r in control_records() if isinstance(r, CellRecord) and r.cell == cell]
    assert (record.version, set(record.topics)) == (before + 1, set(PURPOSES))
    assert set(committed_offsets(kafka, cell, lane_group(cell, "retrier"))) == {0}


def test_new_topics_wait_for_the_end_of_lanes_of_an_earlier_release(provisioner: Provisioner, kafka: str, cell: str):
    provisioner.tick()
    made_before(cell)
    lane = admin_consumer({"bootstrap.servers": kafka, "group.id": lane_group(cell, "retrier")})
    lane.subscribe([cell_topic(cell, "retry-in", 1)])
    while not lane.assignment():
        lane.poll(0.1)
    provisioner.tick()
    assert not Topic.objects.filter(cell=cell, purpose="delay-10s").exists(), "a topic was bound without first offsets"
    lane.close()
    provisioner.tick()
    assert Topic.objects.filter(cell=cell, purpose="delay-10s").exists()
    assert set(committed_offsets(kafka, cell, lane_group(cell, "retrier"))) == {0}


def test_revision_is_live_when_all_processes_hold_its_records(provisioner: Provisioner, cell: str, pipe: Pipe):
    provisioner.tick()
    end = revision_of(pipe).published_offset
    assert end is not None
    all_hold(cell, end - 1)
    provisioner.tick()
    assert "has read control records up to" in revision_of(pipe).state_reason
    revision = revision_of(pipe)
    tick_to(provisioner, revision, "live", end)
    assert revision.state_reason == ""
    assert revision.live_at is not None


def test_second_revision_takes_over_step_by_step(provisioner: Provisioner, cell: str, pipe: Pipe, alice: User):
    tick_to(provisioner, revision_of(pipe), "live")
    moved = SPEC | {"destinations": {"crm": {"type": "http", "url": "https://new.example.com/in"}}}
    second = publish_revision(pipe=pipe, spec=moved, based_on=1, author=alice)
    all_hold(cell, 0)
    provisioner.tick()
    assert revision_of(pipe, 2).state == "requested"
    assert weights(pipe) == [(1, 100)], "no message is sent to a plan that some processes lack"
    tick_to(provisioner, second, "live")
    assert weights(pipe) == [(2, 100)]
    assert revision_of(pipe, 1).state == "retired"
    newest = [record for record in of_pipe(pipe) if isinstance(record, DestinationRecord)][-1]
    assert newest.to.url == "https://new.example.com/in"
    assert second.number == 2


def weights(pipe: Pipe) -> list[tuple[int, int]]:
    return [record for record in of_pipe(pipe) if isinstance(record, PipeRecord)][-1].weights


def test_revoked_key_is_published_as_revoked(provisioner: Provisioner, pipe: Pipe):
    provisioner.tick()
    revoke_api_key(key=pipe.sources.get().keys.get())
    provisioner.tick()
    newest = [record for record in of_pipe(pipe) if isinstance(record, ApiKeyRecord)][-1]
    assert newest.revoked


def test_schema_and_its_next_version_are_each_published_by_the_next_tick(
    provisioner: Provisioner, pipe: Pipe, alice: User
):
    source = pipe.sources.get()
    for number in (1, 2):
        made, _ = register_schema(source=source, document={"type": "object", "title": str(number)}, author=alice)
        provisioner.tick()
        newest = [record for record in control_records() if isinstance(record, SchemaRecord)][-1]
        assert newest == SchemaRecord(pipe.id, "shop", number, made.text)


def test_second_tick_finds_nothing_to_do(provisioner: Provisioner, pipe: Pipe):
    provisioner.tick()
    before = len(of_pipe(pipe))
    assert provisioner.tick() == "nothing to do"
    assert len(of_pipe(pipe)) == before


def test_new_process_without_memory_publishes_nothing_twice(
    provisioner: Provisioner, kafka: str, pipe: Pipe, tmp_path: Path
):
    provisioner.tick()
    before = len(of_pipe(pipe))
    provisioner_at(kafka, tmp_path).tick()
    assert len(of_pipe(pipe)) == before


def test_concurrent_ticks_do_the_work_of_one(kafka: str, cell: str, pipe: Pipe, tmp_path: Path):
    def tick(_: int) -> str:
        try:
            return provisioner_at(kafka, tmp_path).tick()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(tick, range(4)))
    assert any("Place" in words for words in said)
    keys = [type(record).__name__ for record in of_pipe(pipe)]
    assert len(keys) == len(set(keys)), "each record is published once"
    assert Topic.objects.filter(cell=cell).count() == len(PURPOSES)


def test_tick_is_skipped_while_another_holds_the_lock(provisioner: Provisioner):
    with ThreadPoolExecutor(1) as pool, held(LOCK):

        def tick() -> str:
            try:
                return provisioner.tick()
            finally:
                connection.close()

        assert pool.submit(tick).result() == "skipped: another tick is running"


KILLED = """
import os, sys
import django
django.setup()
from controlplane.provisioner import act
act.{name} = lambda *args, **named: os.kill(os.getpid(), 9)
from controlplane.provisioner.tasks import tick
tick()
"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("first_readers", id="after the topics are made, before their first offsets are committed"),
        pytest.param("_bind", id="after the first offsets, before the topics are bound"),
        pytest.param("submit", id="after binding, before the application is requested"),
        pytest.param("desired_records", id="after placing, before publishing"),
        pytest.param("start_ramp", id="after publishing, before the ramp"),
    ],
)
def test_tick_killed_at_any_stage_is_completed_by_later_ticks(
    provisioner: Provisioner, cell: str, pipe: Pipe, environment: dict[str, str], tmp_path: Path, name: str
):
    code = KILLED.format(name=name)
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    assert killed.returncode == -9
    assert revision_of(pipe).state == "requested"
    made = TopicCreator(control_settings().kafka).find(cell_topic(cell, purpose, 1) for purpose in PURPOSES)
    assert len(made) == len(PURPOSES), "the kill came after the creation of the topics"
    patience = Patience(2 * ONE_CHANGE.total_seconds())  # the lease of the killed tick lasts this long
    while revision_of(pipe).state != "ramping":
        assert not patience.is_over, revision_of(pipe).state_reason
        provisioner.tick()
        time.sleep(0.2)
    assert {topic.topic_id for topic in Topic.objects.filter(cell=cell)} == {found.topic_id for found in made.values()}
    application = DesiredApplication(cell, 1, control_settings().cell_master, RELEASE)
    assert LocalCompute(tmp_path).observe(cell).desired == application
    keys = [type(record).__name__ for record in of_pipe(pipe)]
    assert len(keys) == len(set(keys)), "each record is published once"


def test_recreated_topic_stops_its_cell_and_is_reported(
    provisioner: Provisioner, kafka: str, cell: str, pipe: Pipe, tmp_path: Path
):
    provisioner.tick()
    Topic.objects.filter(cell=cell, purpose="ingest").update(topic_id="another")
    provisioner_at(kafka, tmp_path).tick()
    assert "was deleted and recreated" in revision_of(pipe).state_reason


def test_spec_that_cannot_run_fails_only_its_own_revision(provisioner: Provisioner, pipe: Pipe):
    provisioner.tick()
    PipeRevision.objects.create(pipe=pipe, number=2, spec={"sources": {}})
    provisioner.tick()
    broken = revision_of(pipe, 2)
    assert (broken.state, broken.state_reason[:21]) == ("failed", "the spec cannot run: ")
    assert revision_of(pipe, 1).state == "ramping"


def test_revision_without_kafka_reports_waiting_for_kafka(pipe: Pipe, tmp_path: Path):
    said = provisioner_at("127.0.0.1:1", tmp_path).tick()
    assert said.startswith("waiting for Kafka")
    assert revision_of(pipe).state_reason.startswith("waiting for Kafka")
