"""Cells short of lanes, on rows: a migration is requested or a cell added, with a reason that all can read."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from controlplane.autoscaler.cell_relief import PATIENCE_S, SETTLES_S
from controlplane.autoscaler.fleet import relieve
from controlplane.autoscaler.samples import ensure_groups
from mgmt.cells.placement import PlacementPolicy
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Cell, CellVerdict, ControlAction, Pipe, PipeMigration, ScaleGroup, Tenant, Topic, User
from mgmt.services import create_pipe, pause_controller
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
PLACING = PlacementPolicy(shard=9)
FULL = "no other cell has room, and the maximum of cells is 1 (PENSTOCK_CELLS_MAX)"
MakePipe = Callable[[str, int], Pipe]


@pytest.fixture
def make_pipe(tenant: Tenant, alice: User, a_spec: Callable[[], dict[str, object]]) -> MakePipe:
    def make(name: str, per_min: int) -> Pipe:
        """Create a live pipe on c1 with `per_min` messages in the last minute."""
        pipe = create_pipe(tenant=tenant, name=name, spec=a_spec(), author=alice)
        go_live(pipe)
        for minute in (bucket_at(NOW) - 1, bucket_at(NOW)):
            Truth(pipe).fact(minute, "ingest", "sent", list(range(per_min)), "acked")
        return pipe

    return make


@pytest.fixture
def cell(db: None) -> Cell:
    cell = Cell.objects.create(id="c1")
    CellVerdict.objects.create(cell=cell, state="unstable", reasons=["behind"], since=NOW, at=NOW)
    ensure_groups(2)
    is_short(PATIENCE_S + 1)
    return cell


def is_short(for_s: float) -> None:
    since = {"short_since_s": (NOW - timedelta(seconds=for_s)).timestamp()}
    ScaleGroup.objects.filter(cell="c1", kind="process").update(memory=since)


def another(name: str = "c2") -> Cell:
    cell = Cell.objects.create(id=name)
    CellVerdict.objects.create(cell=cell, state="stable", reasons=[], since=NOW, at=NOW)
    return cell


def test_pipe_leaves_a_cell_short_of_lanes_for_one_with_capacity(cell: Cell, make_pipe: MakePipe):
    another()
    make_pipe("small", 60)
    large = make_pipe("large", 600)
    make_pipe("middle", 300)
    assert relieve(PLACING, 1, NOW) == {"c1": "a migration of pipe large to cell c2 was requested"}
    row = PipeMigration.objects.get()
    assert (row.pipe, row.target_id, row.by) == (large, "c2", None)
    assert row.reason == "cell c1 has its maximum of lanes and needs more"
    assert relieve(PLACING, 1, NOW) == {"c1": "a pipe was migrated recently, and the effect is not measurable yet"}
    done = NOW - timedelta(seconds=SETTLES_S + 1)
    PipeMigration.objects.update(state="done", switched_at=done, finished_at=done)
    Pipe.objects.filter(id=large.id).update(cell="c2")
    assert relieve(PLACING, 1, NOW) == {"c1": FULL}, "the other cell has more load by now"


def test_cell_is_added_if_none_has_capacity_and_the_limit_allows_it(cell: Cell, make_pipe: MakePipe):
    make_pipe("a", 600)
    make_pipe("b", 300)
    assert relieve(PLACING, 1, NOW) == {"c1": FULL}
    assert not ControlAction.objects.exists()
    assert relieve(PLACING, 2, NOW) == {"c1": "cell c2 is being created"}
    told = ControlAction.objects.get()
    assert (told.controller, told.action, told.cell_id) == ("scale", "add-cell", "c2")
    assert relieve(PLACING, 3, NOW) == {"c1": "cell c2 is not ready yet, or not in the shard of any of its tenants"}


def test_paused_scaling_migrates_nothing(cell: Cell, make_pipe: MakePipe, alice: User):
    another()
    make_pipe("a", 600)
    make_pipe("b", 300)
    pause_controller(controller="scale", cell=cell, reason="we look at it", until=None, by=alice, now=NOW)
    assert "we look at it" in relieve(PLACING, 1, NOW)["c1"]
    assert not PipeMigration.objects.exists()


def test_cells_of_one_generation_report_that_nothing_can_be_migrated(cell: Cell, make_pipe: MakePipe):
    Topic.objects.create(cell=another(), purpose="ingest", name="penstock.c2.ingest.g1", topic_id="x", partitions=1)
    make_pipe("a", 600)
    make_pipe("b", 300)
    assert "share generation 1" in relieve(PLACING, 1, NOW)["c1"]


def test_nothing_is_requested_while_no_cell_is_short(cell: Cell, django_assert_num_queries: DjangoAssertNumQueries):
    ScaleGroup.objects.update(memory={})
    with django_assert_num_queries(1):
        assert relieve(PLACING, 1, NOW) == {}
