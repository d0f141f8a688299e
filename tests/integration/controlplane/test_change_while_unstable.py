"""An unstable or scaling cell gets no release and no revision, and both requests are refused with the reason.

Kafka, Postgres, the Observer and the controllers are real; the test sends the heartbeats of the lanes.
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

from controlplane.compute.local import LocalCompute
from controlplane.control_topic import ControlTopic
from controlplane.deployer.snapshot import RolloutPolicy
from controlplane.deployer.tasks import rounds
from controlplane.kafka import producer
from controlplane.leases import acquire
from controlplane.observer.tasks import tend
from controlplane.provisioner.act import Effects
from controlplane.provisioner.tasks import Provisioner
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.ledger.heartbeat import HeartbeatRecord, encode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC, PURPOSES, WIRE_VERSION, cell_topic
from mgmt.models import Cell, CellVerdict, ControlAction, Release, RolloutStep, User
from mgmt.models import Heartbeat as HeartbeatRow
from mgmt.services import create_pipe, create_tenant, register_release, request_rollout
from tests.integration.controlplane.observing import observing
from tests.support.kafka import broker_admin
from tests.support.patience import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1_200)]
OLD, NEW = "0" * 16, "1" * 16
POLICY: Final = RolloutPolicy(up_s=75, watch_s=90)
SPEC: Final = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}
LIMIT_S: Final = 120.0


class Processes:
    """Producer of the heartbeats that a cell's driver and its lane would send."""

    def __init__(self, kafka: str, cell: str) -> None:
        TopicCreator(kafka).ensure(cluster_plans(control_settings().topics))
        self._producer: Producer = producer(kafka)
        self._cell = cell

    def beat(self, *writers: str) -> None:
        for writer in writers:
            kind: Any = writer.partition("-")[0]
            now_us = time.time_ns() // 1_000
            said = HeartbeatRecord(self._cell, writer, kind, 1, "a", now_us, "running", 1, 1, "host", 0.0, 1)
            self._producer.produce(HEARTBEAT_TOPIC, encode_heartbeat(said))
        assert self._producer.flush(10) == 0

    def is_heard(self) -> bool:
        """Send a heartbeat; return True if the Observer has recorded one of the cell just now."""
        self.beat("driver")
        just_now = datetime.now(UTC) - timedelta(seconds=3)
        return HeartbeatRow.objects.filter(cell=self._cell, at__gte=just_now).exists()


@pytest.fixture
def cell(kafka: str) -> Iterator[str]:
    """A cell of one lane that no other test shares; its topics are deleted after the test."""
    for release in (OLD, NEW):
        register_release(release=release, wire=WIRE_VERSION, about="", now=datetime.now(UTC))
    name = f"t{uuid.uuid4().hex[:8]}"
    Cell.objects.create(id=name, lanes={"process": 1}, release_id=OLD)
    yield name
    topics = [cell_topic(name, purpose, 1) for purpose in PURPOSES]
    for future in broker_admin(kafka).delete_topics(topics).values():
        future.exception()


@pytest.fixture
def provisioner(kafka: str, tmp_path: Path) -> Provisioner:
    settings = msgspec.structs.replace(control_settings(), var=tmp_path)
    return Provisioner(Effects(settings, TopicCreator(kafka), ControlTopic(kafka), LocalCompute(tmp_path), {}))


def both_are_refused(
    provisioner: Provisioner, processes: Processes, cell: str, why: str, tenants_read: str = ""
) -> None:
    """Request a pipe and a release: nothing changes, and the reason is on the rows that pages show and, once for
    each, in the audit.

    tenants_read: the reason on the pipe, if it is another one
    """
    alice = User.objects.create_user("alice")
    pipe = create_pipe(tenant=create_tenant(name="Alice", owner=alice), name="orders", spec=SPEC, author=alice)
    request_rollout(release=Release.objects.get(id=NEW), author=alice, now=datetime.now(UTC))

    def told() -> bool:
        until(processes.is_heard, "the Observer hears of the cell", LIMIT_S)  # else silence would be the reason
        list(rounds(POLICY, datetime.now(UTC)))
        provisioner.tick()
        return (tenants_read or why) in pipe.revisions.get().state_reason and why in RolloutStep.objects.get().why

    until(told, f"both say that {why}", LIMIT_S, seen=lambda: pipe.revisions.get().state_reason)
    row = Cell.objects.get(id=cell)
    assert (pipe.revisions.get().state, row.release_id, row.epoch) == ("requested", OLD, 1)
    refused = ControlAction.objects.filter(outcome="refused", cell=cell)
    assert sorted(refused.values_list("controller", flat=True)) == ["deploy", "provision"]
    assert all(why in reason for reason in refused.values_list("reason", flat=True))


def test_pipe_and_release_are_refused_with_the_reason_while_a_lane_is_silent(
    kafka: str, cell: str, provisioner: Provisioner
):
    processes = Processes(kafka, cell)

    def turns(state: str, *heard: str) -> bool:
        processes.beat(*heard)
        tend()
        return CellVerdict.objects.filter(cell=cell, state=state).exists()

    with observing():
        until(lambda: turns("stable", "driver", "process-0"), "the cell is stable", LIMIT_S)
        until(lambda: turns("unstable", "driver"), "its lane was silent for long enough", LIMIT_S)
        both_are_refused(
            provisioner, processes, cell, f"cell {cell} is unstable", "the cell is recovering from a fault"
        )


def test_pipe_and_release_are_refused_with_the_reason_while_the_cell_is_scaled(
    kafka: str, cell: str, provisioner: Provisioner
):
    acquire(cell, "scale", "process lanes from 1 to 2", datetime.now(UTC), lasts=timedelta(minutes=5))
    with observing():
        both_are_refused(provisioner, Processes(kafka, cell), cell, f"scaling is changing cell {cell}")
