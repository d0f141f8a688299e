"""Redis, beat and workers killed, doubled, emptied and full: what is due stays due, is done once, and silence is told.

Redis, the workers and the beats are the box's own programs; Postgres and Kafka are real.
"""

import os
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from django.test import Client
from django.utils import timezone
from redis.exceptions import OutOfMemoryError

from controlplane.settings import control_settings
from controlplane.topics import TopicAdmin
from dataplane.names import PURPOSES, WIRE_VERSION, cell_topic
from localbox.testing import box_of
from mgmt.models import Cell, ControlAction, Incident, Pipe, Tenant, Tick, Topic, User
from mgmt.schedule import PROVISION
from mgmt.services import create_pipe, create_tenant, register_release
from tests.integration.controlplane.observing import observing
from tests.integration.controlplane.records import control_records
from tests.rig.control_plane import ControlProcesses, RedisServer
from tests.rig.plane import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1_800)]
DUE_S: Final = 60.0  # within it the control plane has found what is due, whatever happened to Redis
START_S: Final = 240.0  # for processes to start beside those of others
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
    """A cell that no other test shares; its topics go when the test is over."""
    name = f"t{uuid.uuid4().hex[:8]}"
    register_release(release=RELEASE, wire=WIRE_VERSION, about="", now=timezone.now())
    Cell.objects.create(id=name, release_id=RELEASE)
    yield name
    topics = [cell_topic(name, purpose, 1) for purpose in PURPOSES]
    for future in AdminClient({"bootstrap.servers": kafka}).delete_topics(topics).values():
        future.exception()


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(name="Alice", owner=User.objects.create_user("alice"))


def ask_for_pipe(tenant: Tenant) -> Pipe:
    author = User.objects.get(username="alice")
    return create_pipe(tenant=tenant, name=f"p{Pipe.objects.count()}", spec=SPEC, author=author)


def is_made(pipe: Pipe) -> bool:
    """Placed on the cell, its topics bound, its records published, its ramp begun."""
    return bool(pipe.revisions.get().state == "ramping")


def allowed_s() -> float:
    """A minute on a machine of our own; where others wait for the processors too, as much more as they make us."""
    return DUE_S * max(1.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1)))


def standing(pipe: Pipe) -> str:
    """What its revision does, and what each task last did."""
    revision = pipe.revisions.get()
    ticks = "".join(f"{tick} at {tick.at}\n" for tick in Tick.objects.all())
    return f"{revision.state}: {revision.state_reason}\n{ticks}"


def becomes_made(pipe: Pipe, control: ControlProcesses) -> None:
    until(lambda: is_made(pipe), "the pipe is made", allowed_s(), seen=lambda: standing(pipe) + control.log())


def works(control: ControlProcesses) -> None:
    """Wait until ticks are done."""
    until(last_tick, "ticks are done", START_S, seen=control.log)


def made_once(cell: str, pipes: list[Pipe]) -> None:
    """One set of topics, each bound; one record of each kind a pipe; one row in the audit for what was done to it."""
    found = TopicAdmin(control_settings().kafka).find(cell_topic(cell, purpose, 1) for purpose in PURPOSES)
    assert {row.topic_id for row in Topic.objects.all()} == {topic.topic_id for topic in found.values()}
    assert Topic.objects.filter(cell=cell).count() == len(PURPOSES)
    kinds = Counter((record.pipe, type(record)) for record in control_records() if hasattr(record, "pipe"))
    assert {kinds[key] for key in kinds if key[0] in {pipe.id for pipe in pipes}} == {1}
    deeds = Counter(ControlAction.objects.values_list("pipe_id", "action"))
    assert deeds == {(pipe.id, "start-ramp"): 1 for pipe in pipes}


def last_tick() -> object:
    return Tick.objects.filter(task=PROVISION).values_list("at", flat=True).first()


def test_what_is_asked_for_while_redis_is_dead_is_made_when_it_is_back(
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
    made_once(cell, [first, second])


def test_redis_emptied_again_and_again_loses_nothing_that_is_due(
    redis: RedisServer, control: ControlProcesses, cell: str, tenant: Tenant
):
    control.start()
    works(control)
    with redis.client() as hand:
        pipe = ask_for_pipe(tenant)

        def emptied_and_made() -> bool:
            return bool(hand.flushall()) and is_made(pipe)

        until(emptied_and_made, "the pipe is made", allowed_s(), seen=control.log)
    made_once(cell, [pipe])


def test_a_full_redis_leaves_work_due_and_pages_say_so(
    redis: RedisServer, control: ControlProcesses, cell: str, tenant: Tenant
):
    admin, alice = Client(), Client()
    admin.force_login(User.objects.create_superuser("admin"))
    alice.force_login(User.objects.get(username="alice"))
    control.beat()
    with (
        box_of("worker", env=control.env),
        redis.client() as hand,
    ):  # a full Redis ends workers: the box starts them anew
        works(control)
        hand.config_set("maxmemory", "1mb")
        with pytest.raises(OutOfMemoryError):
            hand.set("more", b"x" * 100_000)

        def stands_still() -> bool:
            return "The control plane does nothing" in admin.get("/staff/").content.decode()

        until(stands_still, "the controllers' page says that nothing is done", allowed_s(), seen=control.log)
        pipe = ask_for_pipe(tenant)

        def owner_is_told() -> bool:
            return "Our control plane is behind" in alice.get(f"/pipes/{pipe.id}/").content.decode()

        until(owner_is_told, "the pipe's page says that it waits for us", allowed_s(), seen=control.log)
        assert pipe.revisions.get().state == "requested"
        hand.config_set("maxmemory", "0")
        becomes_made(pipe, control)
        until(lambda: not stands_still(), "the page has no such words any more", allowed_s())
    made_once(cell, [pipe])


KILLED_BEFORE_THE_ROWS: Final = """
import os
from controlplane.provisioner import act
act._bind = lambda *args, **named: os.kill(os.getpid(), 9)
"""


def test_a_worker_killed_between_topics_and_rows_leaves_one_pipe_and_no_orphan(
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
    made_once(cell, [pipe])


def test_two_beats_and_two_workers_do_nothing_twice(control: ControlProcesses, cell: str, tenant: Tenant):
    for start in (control.beat, control.worker) * 2:
        start()
    works(control)
    pipes = [ask_for_pipe(tenant) for _ in range(3)]
    for pipe in pipes:
        becomes_made(pipe, control)
    made_once(cell, pipes)


def test_a_missing_beat_is_an_incident_until_one_is_back(control: ControlProcesses, cell: str):
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
