"""Observer metrics: its own, heartbeats and sums; those from rows are missing while Postgres is away."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest
from django.db import OperationalError

from controlplane.observer import metrics
from controlplane.observer.metrics import ObserverMetrics, changes, counts, heartbeats, stored
from controlplane.observer.sealing import Sealer
from dataplane.ledger.heartbeat import HeartbeatRecord as Beat
from dataplane.metrics import METRICS
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.telemetry.metrics_registry import process_readings
from mgmt.models import Cell, Heartbeat, Lease, OffsetSet, Pipe

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def beat(writer: str, at: datetime, state: str = "running") -> None:
    said = Beat("c1", writer, "process", 1, "i", 0, state, 0, 1, "h", 2.5, 4_096, ["ingest/0"], 7)
    Heartbeat.objects.create(
        cell="c1", writer=writer, kind="process", epoch=1, incarnation="i", state=state, table_offset=0, at=at,
        body=msgspec.to_builtins(said),
    )  # fmt: skip


def change(until: datetime) -> None:
    cell, _ = Cell.objects.get_or_create(id="c1")
    Lease.objects.create(cell=cell, holder="deploy", what="a rollout", taken_at=NOW, until=until)


def record(at_ms: int) -> SimpleNamespace:
    return SimpleNamespace(topic=lambda: AUDIT_TOPIC, timestamp=lambda: (1, at_ms))


def test_lane_heartbeat_is_served_with_its_age_until_it_expires():
    beat("process-0", NOW - timedelta(seconds=3))
    beat("process-1", NOW - timedelta(hours=1))
    found = {reading.name.removeprefix("penstock_writer_"): reading for reading in heartbeats(NOW)}
    assert {reading.labels for reading in found.values()} == {("c1", "process-0", "process")}
    assert {name: reading.value for name, reading in found.items()} == {
        "heartbeat_age_seconds": 3, "running": True, "cpu_seconds_total": 2.5, "resident_bytes": 4_096,
        "unsettled_messages": 7, "partitions": 1, "dropped_spans_total": 0, "failing_files": 0, "held_pipes": 0,
    }  # fmt: skip


def test_messages_that_need_attention_are_summed_over_all_pipes(pipe: Pipe):
    for count in (2, 5):
        OffsetSet.objects.create(
            pipe_id=pipe.id, destination="crm", kind="dead", cause="rejected", topic="t", partition=count, hour=1,
            offsets=b"", count=count, seen=count, marks=[],
        )  # fmt: skip
    found = {(reading.name, reading.labels): reading.value for reading in counts()}
    assert found["penstock_waiting_messages", ("dead",)] == 7
    assert found["penstock_waiting_messages", ("held",)] == 0
    assert found["penstock_open_alerts", ("opened",)] == 0
    assert found["penstock_pipes", ("active",)] == 1


def test_every_metric_of_the_observer_is_served():
    beat("process-0", datetime.now(UTC))
    Cell.objects.create(id="c1")
    told, sealer = ObserverMetrics(), Sealer(60)
    sealer.load(0)
    told.begin(sealer)
    told.read([record(10_000)], now_s=12.5)
    families = {family.name for family in told.registry.collect()}
    families |= {reading.name.removesuffix("_total") for reading in (*told.own(), *stored())}
    own = {reading.name.removesuffix("_total") for reading in process_readings()}
    assert families - own == {metric.name.removesuffix("_total") for metric in METRICS if metric.part == "observer"}


def test_cell_changes_while_a_controller_holds_its_lease():
    change(until=NOW + timedelta(seconds=1))
    Cell.objects.create(id="c2")
    assert {one.labels: one.value for one in changes(NOW)} == {("c1",): True, ("c2",): False}
    assert not any(one.value for one in changes(NOW + timedelta(seconds=1)))
    Lease.objects.update(holder="")
    assert not any(one.value for one in changes(NOW))


def test_losses_are_counted_by_cell_from_zero():
    told, sealer = ObserverMetrics(), Sealer(60)
    told.begin(sealer)
    sealer.remember({("pipe_1", 1): "c1", ("pipe_1", 2): "c2"})
    sealer.sums.lost["c2"] += 3
    assert {one.labels: one.value for one in told.own() if one.name == "penstock_lost_units_total"} == {
        ("c1",): 0, ("c2",): 3,
    }  # fmt: skip


def test_observer_is_behind_by_the_newest_records_age_and_not_at_all_without_records():
    told = ObserverMetrics()
    told.read([record(9_000), record(10_000)], 12.5)
    assert {reading.name: reading.value for reading in told.own()}["penstock_observer_behind_seconds"] == 2.5
    told.read([], 99.0)
    assert {reading.name: reading.value for reading in told.own()}["penstock_observer_behind_seconds"] == 0


def test_remaining_metrics_are_served_without_postgres(monkeypatch: pytest.MonkeyPatch):
    def away(_: datetime) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(metrics, "heartbeats", away)
    assert stored() == []
