"""Redis, beat and workers killed, doubled, flushed, full: due work stays due, is done once, and stalls are reported.

Redis, the workers and the beats are the box's own programs; Postgres and Kafka are real.
"""

import os
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from django.test import Client
from django.utils import timezone
from redis.exceptions import OutOfMemoryError

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator
from dataplane.names import PURPOSES, WIRE_VERSION, cell_topic
from localbox.testing import box_of
from mgmt.cells.schedule import PROVISION
from mgmt.models import Cell, ControlAction, Incident, Pipe, TaskRun, Tenant, Topic, User
from mgmt.services import create_pipe, create_tenant, register_release
from tests.integration.controlplane.observing import observing
from tests.integration.controlplane.records import control_records
from tests.support.control_plane import ControlProcesses, RedisServer
from tests.support.kafka import broker_admin
from tests.support.patience import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1_800)]
DUE_S: Final = 60.0  # limit within which the control plane finds due work, whatever happened to Redis
START_S: Final = 240.0  # limit for processes to start on a busy machine
RELEASE: Final = "0123456789abcdef"
SPEC: Final = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def control(redis: RedisServer, environment: dict[str, str], tmp_path: Path) -> Iterator[ControlProcesses]:
    processes = ControlProcesses(environment | {"REDIS_URL": redis.url}, tmp_path)
    yield processes
    processes.close()


@pytest.fixture
def cell(kafka: str) -> Iterator[str]:
    """A cell that no other test shares; its topics are deleted after the test."""
    name = f"t{uuid.uuid4().hex[:8]}"
    register_release(release=RELEASE, wire=WIRE_VERSION, about="", now=timezone.now())
    Cell.objects.create(id=name, release_id=RELEASE)
    yield name
    topics = [cell_topic(name, purpose, 1) for purpose in PURPOSES]
    for future in broker_admin(kafka).delete_topics(topics).values():
        future.exception()


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(name="Alice", owner=User.objects.create_user("alice"))


def ask_for_pipe(tenant: Tenant) -> Pipe:
    author = User.objects.get(username="alice")
    return create_pipe(tenant=tenant, name=f"p{Pipe.objects.count()}", spec=SPEC, author=author)


def is_made(pipe: Pipe) -> bool:
    """Return True if the pipe is placed, its topics bound, its records published and its ramp begun."""
    return bool(pipe.revisions.get().state == "ramping")


def allowed_s() -> float:
    """Return a minute on an idle machine, and proportionally more where other processes use the CPUs."""
    return DUE_S * max(1.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1)))


def standing(pipe: Pipe) -> str:
    """Return the state of the pipe's revision and the last run of each task."""
    revision = pipe.revisions.get()
    ticks = "".join(f"{tick} at {tick.at}\n" for tick in TaskRun.objects.all())
    return f"{revision.state}: {revision.state_reason}\n{ticks}"


def becomes_made(pipe: Pipe, control: ControlProcesses) -> None:
    until(lambda: is_made(pipe), "the pipe is made", allowed_s(), seen=lambda: standing(pipe) + control.log())


def works(control: ControlProcesses) -> None:
    """Wait until a tick has run."""
    until(last_tick, "ticks are done", START_S, seen=control.log)


def made_once(cell: str, pipes: list[Pipe], control: ControlProcesses) -> None:
    """Assert one set of bound topics, one record of each kind per pipe, and one control audit row per pipe.

    First wait for two ticks: the second one begins after this call, and could do the work once more.
    """
    for _ in range(2):
        before = last_tick()
        until(partial(has_ticked, before), "another tick", START_S, seen=control.log)
    found = TopicCreator(control_settings().kafka).find(cell_topic(cell, purpose, 1) for purpose in PURPOSES)
    assert {row.topic_id for row in Topic.objects.all()} == {topic.topic_id for topic in found.values()}
    assert Topic.objects.filter(cell=cell).count() == len(PURPOSES)
    kinds = Counter((record.pipe, type(record)) for record in control_records() if hasattr(record, "pipe"))
    assert {kinds[key] for key in kinds if key[0] in {pipe.id for pipe in pipes}} == {1}
    actions = Counter(ControlAction.objects.values_list("pipe_id", "action"))
    assert actions == {(pipe.id, "start-ramp"): 1 for pipe in pipes}


def last_tick() -> object:
    return TaskRun.objects.filter(task=PROVISION).values_list("at", flat=True).first()


def has_ticked(since: object) -> bool:
    return last_tick() != since


def test_pipe_requested_while_redis_is_down_is_made_after_its_return(
    redis: RedisServer, control: ControlProcesses, cell: str, tenant: Tenant
):
    control.start()
    works(control)
    first = ask_for_pipe(tenant)
    becomes_made(first, control)
    redis.kill()
    second = ask_for_pipe(tenant)
    redis.start()
    becomes_made(second, control)
    made_once(cell, [first, second], control)


def test_repeatedly_flushed_redis_loses_no_due_work(
    redis: RedisServer, control: ControlProcesses, cell: str, tenant: Tenant
):
    control.start()
    works(control)
    with redis.client() as hand:
        pipe = ask_for_pipe(tenant)

        def emptied_and_made() -> bool:
            return bool(hand.flushall()) and is_made(pipe)

        until(emptied_and_made, "the pipe is made", allowed_s(), seen=control.log)
    made_once(cell, [pipe], control)


@pytest.mark.long
def test_full_redis_leaves_work_due_and_pages_report_the_delay(
    redis: RedisServer, control: ControlProcesses, cell: str, tenant: Tenant
):
    admin, alice = Client(), Client()
    admin.force_login(User.objects.create_superuser("admin"))
    alice.force_login(User.objects.get(username="alice"))
    control.beat()
    with (
        box_of("worker", env=control.env),
        redis.client() as hand,
    ):  # a full Redis ends workers: the box restarts them
        works(control)
        hand.config_set("maxmemory", "1mb")
        with pytest.raises(OutOfMemoryError):
            hand.set("more", b"x" * 100_000)

        def stands_still() -> bool:
            return "The control plane is stalled" in admin.get("/staff/").content.decode()

        until(stands_still, "the controllers' page says that nothing is done", allowed_s(), seen=control.log)
        pipe = ask_for_pipe(tenant)

        def owner_is_told() -> bool:
            return "Our control plane is delayed" in alice.get(f"/pipes/{pipe.id}/").content.decode()

        until(owner_is_told, "the pipe's page says that it waits for us", allowed_s(), seen=control.log)
        assert pipe.revisions.get().state == "requested"
        hand.config_set("maxmemory", "0")
        becomes_made(pipe, control)
        until(lambda: not stands_still(), "the page has no such words any more", allowed_s())
        made_once(cell, [pipe], control)


KILLED_BEFORE_THE_ROWS: Final = """
import os
from controlplane.provisioner import act
act._bind = lambda *args, **named: os.kill(os.getpid(), 9)
"""


def test_worker_killed_between_topics_and_rows_leaves_one_pipe_and_no_orphan(
    control: ControlProcesses, cell: str, tenant: Tenant
):
    control.beat()
    dying = control.worker(KILLED_BEFORE_THE_ROWS)
    pipe = ask_for_pipe(tenant)
    until(lambda: dying.poll() is not None, "the worker is killed", START_S, seen=control.log)
    assert dying.returncode == -9
    assert not Topic.objects.exists()
    control.worker()
    works(control)
    becomes_made(pipe, control)
    made_once(cell, [pipe], control)


@pytest.mark.long
def test_two_beats_and_two_workers_do_no_work_twice(control: ControlProcesses, cell: str, tenant: Tenant):
    for start in (control.beat, control.worker) * 2:
        start()
    works(control)
    pipes = [ask_for_pipe(tenant) for _ in range(3)]
    for pipe in pipes:
        becomes_made(pipe, control)
    made_once(cell, pipes, control)


@pytest.mark.long
def test_missing_beat_is_an_incident_until_a_beat_returns(control: ControlProcesses, cell: str):
    only = control.beat()
    control.worker()
    works(control)
    with observing():
        only.kill()
        until(lambda: Incident.objects.filter(resolved_at=None).exists(), "the incident is open", allowed_s())
        assert Incident.objects.get().cause == "control-plane-silent"
        control.beat()
        until(
            lambda: not Incident.objects.filter(resolved_at=None).exists(), "it is over", allowed_s(), seen=control.log
        )
    assert Incident.objects.count() == 1
