"""From a change of a pipe in Postgres to a webhook: publisher, broker, ingest and lanes, for two tenants."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pytest_django import Settings

from controlplane.operational_events.publish import publish_due
from dataplane.ingest.operational_feed import GROUP_PART
from dataplane.ledger.bins import Bin
from dataplane.names import OPERATIONAL_TOPIC
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.models import Alert, OperationalEvent, Pipe, User
from mgmt.services import create_pipe, create_tenant, pause_pipe, resolve_alert
from tests.support.kafka import admin_consumer
from tests.support.lane_plane import LanePlane
from tests.support.patience import until

pytestmark = [pytest.mark.timeout(600), pytest.mark.django_db(transaction=True)]
NOW = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)


@pytest.fixture
def plane(tmp_path: Path, settings: Settings) -> Iterator[LanePlane]:
    running = LanePlane(tmp_path)
    running.wait_ready()
    settings.PENSTOCK_FERNET_KEYS = [running.cluster.fernet_key]
    yield running
    running.close()


def make_pipes(plane: LanePlane, owner: str, path: str) -> tuple[Pipe, Pipe]:
    """Create a tenant with a pipe that receives its events at this path, and one that they are about."""
    author = User.objects.create_user(owner)
    tenant = create_tenant(name=owner, owner=author)
    sources = {"shop": {}, "events": {"type": "penstock", "events": ["penstock.alert.*", "penstock.pipe.paused"]}}
    to = {"siem": {"type": "http", "url": "https://siem.example.com/"}}
    receiving = create_pipe(tenant=tenant, name="siem", spec={"sources": sources, "destinations": to}, author=author)
    plain = {"sources": {"shop": {}}, "destinations": to}
    watched = create_pipe(tenant=tenant, name="orders", spec=plain, author=author)
    here = {"siem": {"url": plane.receiver.url(path), "ordered": True}}
    plane.add_pipe(receiving.id, here, tenant=tenant.id, sources=sources)
    return receiving, watched


def has_begun(plane: LanePlane, pipe: Pipe) -> bool:
    group = f"penstock.{pipe.id}.events.{GROUP_PART}"
    consumer = admin_consumer({"bootstrap.servers": plane.cluster.kafka, "group.id": group, "log_level": 3})
    (known,) = consumer.committed([TopicPartition(OPERATIONAL_TOPIC, 0)], timeout=10)
    consumer.close()
    return bool(known.offset >= 0)


def received(plane: LanePlane, path: str) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in plane.receiver.got[path]]


def test_changes_of_a_pipe_reach_the_webhook_of_their_own_tenant(plane: LanePlane):
    mine, orders = make_pipes(plane, "alice", "/alice")
    theirs, others = make_pipes(plane, "charlie", "/charlie")
    until(lambda: has_begun(plane, mine) and has_begun(plane, theirs), "both sources", 90)
    note_failures(failures=[FailureGroup(orders.id, "siem", "rejected", 3, NOW, {}, status=401)], now=NOW)
    resolve_alert(alert=Alert.objects.get(pipe=orders), now=NOW)
    pause_pipe(pipe=others)
    pause_pipe(pipe=mine)  # not about another pipe
    assert publish_due(plane.cluster.kafka).endswith(" events")
    assert not OperationalEvent.objects.exists()

    until(lambda: len(received(plane, "/alice")) >= 2, "alert opened and resolved", 90)
    until(lambda: len(received(plane, "/charlie")) >= 1, "pipe paused", 90)
    opened, resolved = received(plane, "/alice")
    assert [opened["type"], resolved["type"]] == ["penstock.alert.opened", "penstock.alert.resolved"]
    assert opened["pipe"] == {"id": orders.id, "name": "orders"}
    assert opened["data"].items() >= {"destination": "siem", "status": 401, "count": 3}.items()
    (paused,) = received(plane, "/charlie")
    assert (paused["type"], paused["tenant"]) == ("penstock.pipe.paused", others.tenant_id)

    whole = plane.settled(mine.id, set(), 120)
    assert len(whole.acked) == 2
    assert whole.at("siem", Bin.DELIVERED) == whole.acked
    assert whole.lost() == 0
