"""A cell that is unstable or being scaled is neither deployed to nor given a revision, and who asks is told why.

Kafka, Postgres, the Observer and the controllers are real; what lanes say of themselves the test says for them.
"""

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from controlplane.compute.local import LocalCompute
from controlplane.control_topic import ControlTopic
from controlplane.deployer.snapshot import Policy
from controlplane.deployer.tasks import rounds
from controlplane.kafka import producer
from controlplane.leases import take
from controlplane.observer.tasks import tend
from controlplane.provisioner.act import Hands
from controlplane.provisioner.tasks import Provisioner
from controlplane.settings import control_settings
from controlplane.topics import TopicAdmin, cluster_plans
from dataplane.ledger.heartbeat import Heartbeat, encode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC, PURPOSES, WIRE_VERSION, cell_topic
from mgmt.models import Cell, ControlAction, Release, RolloutStep, User, Verdict
from mgmt.models import Heartbeat as HeartbeatRow
from mgmt.services import create_pipe, create_tenant, register_release, request_rollout
from tests.integration.controlplane.observing import observing
from tests.rig.plane import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1_200)]
OLD, NEW = "0" * 16, "1" * 16
POLICY: Final = Policy(up_s=75, watch_s=90)
SPEC: Final = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}
LIMIT_S: Final = 120.0


class Processes:
    """Says to Kafka what a cell's driver and its lane would say."""

    def __init__(self, kafka: str, cell: str) -> None:
        TopicAdmin(kafka).ensure(cluster_plans(control_settings().topics))
        self._producer: Producer = producer(kafka)
        self._cell = cell

    def beat(self, *writers: str) -> None:
        for writer in writers:
            kind: Any = writer.partition("-")[0]
            now_us = time.time_ns() // 1_000
            said = Heartbeat(self._cell, writer, kind, 1, "a", now_us, "running", 1, 1, "host", 0.0, 1)
            self._producer.produce(HEARTBEAT_TOPIC, encode_heartbeat(said))
        assert self._producer.flush(10) == 0

    def is_heard(self) -> bool:
        """Say something; whether the Observer has heard of the cell just now."""
        self.beat("driver")
        just_now = datetime.now(UTC) - timedelta(seconds=3)
        return HeartbeatRow.objects.filter(cell=self._cell, at__gte=just_now).exists()


@pytest.fixture
def cell(kafka: str) -> Iterator[str]:
    """A cell of one lane that no other test shares; its topics go when the test is over."""
    for release in (OLD, NEW):
        register_release(release=release, wire=WIRE_VERSION, about="", now=datetime.now(UTC))
    name = f"t{uuid.uuid4().hex[:8]}"
    Cell.objects.create(id=name, lanes={"process": 1}, release_id=OLD)
    yield name
    topics = [cell_topic(name, purpose, 1) for purpose in PURPOSES]
    for future in AdminClient({"bootstrap.servers": kafka}).delete_topics(topics).values():
        future.exception()


@pytest.fixture
def provisioner(kafka: str, tmp_path: Path) -> Provisioner:
    settings = msgspec.structs.replace(control_settings(), var=tmp_path)
    return Provisioner(Hands(settings, TopicAdmin(kafka), ControlTopic(kafka), LocalCompute(tmp_path), {}))


def both_are_refused(provisioner: Provisioner, processes: Processes, cell: str, why: str) -> None:
    """A pipe and a release are asked for: nothing is changed, and the reason stands on the rows that pages show, and in
    the audit once for each."""
    alice = User.objects.create_user("alice")
    pipe = create_pipe(tenant=create_tenant(name="Alice", owner=alice), name="orders", spec=SPEC, author=alice)
    request_rollout(release=Release.objects.get(id=NEW), author=alice, now=datetime.now(UTC))

    def told() -> bool:
        until(processes.is_heard, "the Observer hears of the cell", LIMIT_S)  # else that would be the reason
        list(rounds(POLICY, datetime.now(UTC)))
        provisioner.tick()
        return why in pipe.revisions.get().state_reason and why in RolloutStep.objects.get().why

    until(told, f"both say that {why}", LIMIT_S, seen=lambda: pipe.revisions.get().state_reason)
    row = Cell.objects.get(id=cell)
    assert (pipe.revisions.get().state, row.release_id, row.epoch) == ("requested", OLD, 1)
    refused = ControlAction.objects.filter(outcome="refused", cell=cell)
    assert sorted(refused.values_list("controller", flat=True)) == ["deploy", "provision"]
    assert all(why in reason for reason in refused.values_list("reason", flat=True))


def test_what_is_asked_for_while_a_lane_is_silent_is_refused_with_the_reason(
    kafka: str, cell: str, provisioner: Provisioner
):
    processes = Processes(kafka, cell)

    def turns(state: str, *heard: str) -> bool:
        processes.beat(*heard)
        tend()
        return Verdict.objects.filter(cell=cell, state=state).exists()

    with observing():
        until(lambda: turns("stable", "driver", "process-0"), "the cell is stable", LIMIT_S)
        until(lambda: turns("unstable", "driver"), "its lane was silent for long enough", LIMIT_S)
        both_are_refused(provisioner, processes, cell, f"cell {cell} is unstable")


def test_what_is_asked_for_while_the_cell_is_scaled_is_refused_with_the_reason(
    kafka: str, cell: str, provisioner: Provisioner
):
    take(cell, "scale", "process lanes from 1 to 2", datetime.now(UTC), lasts=timedelta(minutes=5))
    with observing():
        both_are_refused(provisioner, Processes(kafka, cell), cell, f"scaling is changing cell {cell}")
