"""Autoscaler on rows: heartbeats and offsets become lane counts, under the cell's lease, with a reason."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from controlplane.autoscaler.act import act, finish
from controlplane.autoscaler.decide import DecisionMemory, LaneGroup, ScaleDecision, decide
from controlplane.autoscaler.samples import ensure_groups, ensure_ingest, figures, groups_of, reporting
from controlplane.compute.files import DesiredReplicas
from controlplane.ingest_replicas import desired_replicas, ingest_row
from controlplane.leases import acquire
from dataplane.names import LANE_KINDS, GroupKind
from mgmt.models import Cell, CellVerdict, ControlAction, Heartbeat, Lease, ScaleGroup, ScaleSample, User
from mgmt.services import pause_controller, register_release

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MOST = 4


@pytest.fixture
def cell() -> Cell:
    cell = Cell.objects.create(id="c1")
    ensure_groups(MOST)
    return cell


def sample(cell: Cell, at: datetime, cpu_s: float, came: int, settled: int, lanes: int = 1) -> None:
    clocks = {f"process-{n}": {"pid": n + 1, "at_s": at.timestamp(), "cpu_s": cpu_s} for n in range(lanes)}
    ScaleSample.objects.create(cell=cell.id, kind="process", at=at, lanes=clocks, came=came, settled=settled)


def busy(cell: Cell, now: datetime = NOW) -> None:
    """Store a minute with one saturated process lane: 2 000 messages/s arrive, half of them are settled."""
    for ago_s in range(60, -1, -5):
        done_s = 60 - ago_s
        sample(cell, now - timedelta(seconds=ago_s), 0.98 * done_s, 2_000 * done_s, 1_000 * done_s)


def turn(cell: Cell, now: datetime = NOW) -> str:
    """Run one tick without Kafka."""
    cell.refresh_from_db()
    rows = list(ScaleGroup.objects.filter(cell=cell))
    groups = groups_of(rows, cell.lanes, now)
    return act(cell.id, groups, {kind: decide(group) for kind, group in groups.items()}, now)


def group(cell: Cell, kind: str = "process") -> ScaleGroup:
    return ScaleGroup.objects.get(cell=cell, kind=kind)


def beat(cell: Cell, writer: str, kind: str, at: datetime = NOW, **body: Any) -> None:
    fields = {"kind": kind, "epoch": 1, "incarnation": "x", "state": "running", "table_offset": 1, "at": at}
    Heartbeat.objects.update_or_create(cell=cell.id, writer=writer, defaults=fields | {"body": body})


def test_every_group_of_a_cell_has_a_policy_and_only_two_kinds_scale_automatically(cell: Cell):
    assert dict(ScaleGroup.objects.values_list("kind", "maximum")) == dict.fromkeys(LANE_KINDS, 1) | {
        "process": MOST,
        "transmit": MOST,
    }
    ensure_groups(MOST)
    assert ScaleGroup.objects.count() == len(LANE_KINDS)


def test_lanes_that_a_person_set_earlier_stay():
    Cell.objects.create(id="c2", lanes={"process": 7, "transmit": 1, "retrier": 2})
    ensure_groups(MOST)
    assert dict(ScaleGroup.objects.values_list("kind", "maximum"))["process"] == 7
    assert dict(ScaleGroup.objects.values_list("kind", "maximum"))["retrier"] == 2


def test_saturated_lane_gets_more_lanes_and_the_audit_says_why(cell: Cell):
    busy(cell)
    assert turn(cell) == "process 1 -> 4"
    cell.refresh_from_db()
    assert cell.lanes["process"] == 4
    assert cell.lanes["transmit"] == 1
    assert cell.version == 2, "drivers follow the cell's record"
    row = ControlAction.objects.get()
    assert (row.controller, row.action, row.outcome, row.cell_id) == ("scale", "scale-out", "done", "c1")
    assert "CPU 98% of a core in each lane" in row.reason
    seen = group(cell).seen
    assert (seen["lanes"], seen["came"], seen["settled"]) == (1, 2_000, 1_000)
    assert row.detail == {"kind": "process", "before": 1, "lanes": 4}
    assert msgspec.convert(group(cell).memory, DecisionMemory).full_s == NOW.timestamp()


def test_lease_is_held_until_all_lanes_report(cell: Cell):
    busy(cell)
    turn(cell)
    cell.refresh_from_db()
    finish(cell.id, cell.lanes, {"process": 2}, NOW + timedelta(seconds=5))
    assert Lease.objects.get().holder == "scale"
    finish(cell.id, cell.lanes, cell.lanes, NOW + timedelta(seconds=10))
    assert Lease.objects.get().holder == ""
    assert ControlAction.objects.count() == 1


def test_missing_lanes_are_reported_after_the_time_limit(cell: Cell):
    busy(cell)
    turn(cell)
    cell.refresh_from_db()
    finish(cell.id, cell.lanes, cell.lanes | {"process": 3}, NOW + timedelta(seconds=61))
    assert Lease.objects.get().holder == ""
    last = ControlAction.objects.latest("id")
    assert last.outcome == "unfinished"
    assert "3 of 4 process lanes report" in last.reason


def test_lease_of_another_controller_is_left_alone(cell: Cell):
    acquire(cell.id, "deploy", "release 7", NOW)
    finish(cell.id, cell.lanes, cell.lanes, NOW + timedelta(seconds=5))
    assert Lease.objects.get().holder == "deploy"


def test_paused_scaling_changes_nothing_and_names_the_person_once(cell: Cell, alice: User):
    pause_controller(controller="scale", cell=None, reason="a rehearsal", until=None, by=alice, now=NOW)
    busy(cell)
    assert turn(cell) == ""
    assert turn(cell) == ""
    cell.refresh_from_db()
    assert cell.lanes["process"] == 1
    assert group(cell).why == "4 lanes are needed, but scaling is paused by alice: a rehearsal"
    assert ControlAction.objects.filter(outcome="refused").count() == 1
    assert group(cell).memory == {}, "a refused change is not remembered as done"


def test_scaling_waits_while_another_controller_changes_the_cell(cell: Cell):
    acquire(cell.id, "deploy", "release 7", NOW)
    busy(cell)
    assert turn(cell) == ""
    assert "deploying is changing cell c1: release 7" in group(cell).why


class TestOfAnUnstableCell:
    @pytest.fixture(autouse=True)
    def _unstable(self, cell: Cell) -> None:
        CellVerdict.objects.create(cell=cell, state="unstable", reasons=["lag rises"], since=NOW, at=NOW)

    def test_lanes_are_added_to_an_unstable_cell(self, cell: Cell):
        busy(cell)
        assert turn(cell) == "process 1 -> 4"

    def test_lanes_of_an_unstable_cell_are_not_removed(self, cell: Cell):
        Cell.objects.filter(id=cell.id).update(lanes=cell.lanes | {"process": 3})
        assert decided(cell, {"process": 2}) == ""
        assert "2 lanes are needed, but cell c1 is unstable" in group(cell).why

    def test_adding_one_kind_precedes_removing_another(self, cell: Cell):
        Cell.objects.filter(id=cell.id).update(lanes=cell.lanes | {"process": 3})
        assert decided(cell, {"process": 2, "transmit": 2}) == "transmit 1 -> 2"
        assert group(cell).why == "2 lanes are needed, but lanes of another kind are added or removed first"


def decided(cell: Cell, wanted: Mapping[GroupKind, int]) -> str:
    cell.refresh_from_db()
    rows = ScaleGroup.objects.filter(cell=cell, kind__in=wanted)
    groups: dict[GroupKind, LaneGroup] = groups_of(rows, cell.lanes, NOW)
    decisions = {kind: ScaleDecision(lanes, "because", DecisionMemory()) for kind, lanes in wanted.items()}
    return act(cell.id, groups, decisions, NOW)


def test_two_changes_in_the_same_direction_are_one_transaction(cell: Cell):
    Cell.objects.filter(id=cell.id).update(lanes=cell.lanes | {"process": 3, "transmit": 3})
    assert decided(cell, {"process": 2, "transmit": 1}) == "process 3 -> 2, transmit 3 -> 1"
    cell.refresh_from_db()
    assert (cell.lanes["process"], cell.lanes["transmit"], cell.version) == (2, 1, 2)


def test_cell_without_lanes_stays_without_lanes(cell: Cell):
    Cell.objects.filter(id=cell.id).update(lanes=dict.fromkeys(LANE_KINDS, 0))
    assert turn(cell) == ""
    assert group(cell).why == "no lanes are needed"


def test_figures_are_differences_and_a_new_process_counts_from_its_second_heartbeat(cell: Cell):
    sample(cell, NOW, 100.0, 0, 0)
    sample(cell, NOW + timedelta(seconds=5), 102.5, 5_000, 4_000)
    sample(cell, NOW + timedelta(seconds=10), 104.0, 10_000, 10_000, lanes=2)
    first, second = figures(cell.id, "process", NOW)
    assert (first.cpu, first.came, first.settled, first.backlog) == (0.5, 1_000, 800, 1_000)
    assert (second.lanes, second.cpu, second.backlog) == (2, 0.3, 0)


def test_intentionally_waiting_messages_are_no_backlog(cell: Cell):
    for ago_s in (10, 5, 0):
        row = {"at": NOW - timedelta(seconds=ago_s), "lanes": {}, "came": 9_000_000, "settled": 0}
        ScaleSample.objects.create(cell=cell.id, kind="retrier", **row)
        ScaleSample.objects.create(cell=cell.id, kind="transmit", **row)
    assert {figure.backlog for figure in figures(cell.id, "retrier", NOW - timedelta(minutes=1))} == {0}
    assert {figure.backlog for figure in figures(cell.id, "transmit", NOW - timedelta(minutes=1))} == {9_000_000}


def test_reporting_lanes_are_counted_by_kind_and_silent_ones_are_not(cell: Cell):
    beat(cell, "process-0", "process")
    beat(cell, "process-1", "process")
    beat(cell, "transmit-0", "transmit", NOW - timedelta(seconds=6))
    assert reporting(cell.id, NOW) == {"process": 2}


def busy_ingest() -> None:
    """Store a minute in which two replicas use nearly all of their cores."""
    for done_s in range(0, 61, 5):
        at = NOW - timedelta(seconds=60 - done_s)
        clock = {"at_s": at.timestamp(), "cpu_s": 0.95 * done_s}
        lanes = {f"ingest-{n}": clock | {"pid": n} for n in (1, 2)}
        counts = {"came": 9_000 * done_s, "settled": 9_000 * done_s}
        ScaleSample.objects.create(cell="ingest", kind="ingest", at=at, lanes=lanes, **counts)


def test_new_policy_allows_no_more_lanes_than_the_cell_has_partitions(db: None):
    for name, partitions in (("small", 2), ("default", None), ("large", 64)):
        Cell.objects.create(id=name, partitions=partitions)
    ensure_groups(16, 4)
    allowed = ScaleGroup.objects.filter(kind="process").values_list("cell", "maximum")
    assert dict(allowed) == {"small": 2, "default": 4, "large": 16}


class TestOfIngest:
    @pytest.fixture
    def ingest(self) -> Cell:
        ensure_ingest(6)
        return Cell.with_ingest.get(id="ingest")

    def test_ingest_row_is_no_cell_and_has_at_least_two_replicas(self, ingest: Cell):
        assert not Cell.objects.exists()
        row = ScaleGroup.objects.get()
        assert (row.minimum, row.maximum, ingest.lanes) == (2, 6, {"ingest": 2})

    def test_first_release_of_ingest_is_that_of_the_installed_code(self, ingest: Cell):
        assert ingest.release_id is None
        for release in ("0" * 16, "1" * 16, "2" * 16):
            register_release(release=release, wire=1, about="", now=NOW)
        for installed in ("1" * 16, "2" * 16):
            ensure_ingest(6, installed)
            assert desired_replicas(ingest_row()) == DesiredReplicas(2, "1" * 16), "later ones are rolled out"

    def test_busy_ingest_gets_more_replicas_under_a_lease(self, ingest: Cell):
        busy_ingest()
        assert turn(ingest) == "ingest 2 -> 4"
        assert Cell.with_ingest.get().lanes == {"ingest": 4}
        assert Lease.objects.get().holder == "scale"
        assert "of a core in each replica" in ControlAction.objects.get().reason

    def test_pause_of_scaling_applies_to_ingest(self, ingest: Cell, alice: User):
        pause_controller(controller="scale", cell=ingest, reason="a rehearsal", until=None, by=alice, now=NOW)
        busy_ingest()
        assert turn(ingest) == ""
        said = "4 replicas are needed, but scaling is paused on ingest by alice: a rehearsal"
        assert ScaleGroup.objects.get().why == said


def test_group_at_its_maximum_records_since_when_it_is_short_and_clears_it_later(cell: Cell):
    ScaleGroup.objects.filter(cell=cell, kind="process").update(maximum=1)
    busy(cell)
    assert turn(cell) == ""
    assert group(cell).memory["short_since_s"] == NOW.timestamp()
    assert "the maximum is 1: the next step is another cell" in group(cell).why
    busy(cell, later := NOW + timedelta(seconds=90))
    turn(cell, later)
    assert group(cell).memory["short_since_s"] == NOW.timestamp()
    for ago_s in range(20, -1, -5):
        sample(cell, NOW + timedelta(seconds=200 - ago_s), 100.0, 120_000, 120_000)
    turn(cell, NOW + timedelta(seconds=200))
    assert group(cell).memory["short_since_s"] == 0.0
