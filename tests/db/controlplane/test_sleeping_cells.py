"""Sleeping cells, on rows: when the Autoscaler puts them to sleep and wakes them; effects on controllers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.autoscaler.act import act, finish
from controlplane.autoscaler.decide import decide
from controlplane.autoscaler.samples import ensure_groups, groups_of
from controlplane.autoscaler.sleep_inputs import idle_state
from controlplane.autoscaler.sleeping import next_sleep_change
from controlplane.deployer.snapshot import RolloutPolicy
from controlplane.deployer.tasks import rounds
from dataplane.names import LANE_KINDS
from mgmt.models import (
    Cell,
    CellVerdict,
    ControlAction,
    Destination,
    Heartbeat,
    OffsetSet,
    Pipe,
    PipeRevision,
    Redrive,
    RolloutStep,
    ScaleGroup,
    ScaleSample,
    Tenant,
    User,
)
from mgmt.services import InvalidValue, add_cell, keep_cell_for, register_release, request_rollout

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
AFTER_S = 300
POLICY = RolloutPolicy(up_s=75, watch_s=90)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def cell(tenant: Tenant, alice: User) -> Cell:
    cell = Cell.objects.create(id="own")
    CellVerdict.objects.create(cell=cell, state="stable", reasons=[], since=NOW, at=NOW)
    ensure_groups(4)
    return keep_cell_for(cell=cell, tenant=tenant, sleeps_after_s=AFTER_S, by=alice, now=NOW)


def quiet(until: datetime, *, for_s: int = AFTER_S + 10, came: int = 7, settled: int = 7) -> None:
    """Store samples of every group without traffic."""
    ScaleSample.objects.bulk_create(
        ScaleSample(cell="own", kind=kind, at=until - timedelta(seconds=ago), lanes={}, came=came, settled=settled)
        for kind in LANE_KINDS
        for ago in range(0, for_s, 5)
    )


def something_comes(at: datetime, came: int = 8, settled: int = 7, kind: str = "process") -> None:
    ScaleSample.objects.create(cell="own", kind=kind, at=at, lanes={}, came=came, settled=settled)


def look(now: datetime) -> str:
    """Run one Autoscaler tick on the cell, without Kafka."""
    cell = Cell.objects.get(id="own")
    finish(cell.id, cell.lanes, cell.lanes, now)
    CellVerdict.objects.filter(cell=cell).update(at=now)
    groups, rest = groups_of(list(ScaleGroup.objects.filter(cell=cell)), cell.lanes, now), idle_state(cell, now)
    turn = next_sleep_change(rest) if rest else None
    return act(cell.id, groups, {kind: decide(group, turn) for kind, group in groups.items()}, now)


def lanes() -> set[int]:
    return set(Cell.objects.get(id="own").lanes.values())


def asleep(at: datetime = NOW) -> None:
    quiet(at)
    look(at)
    assert lanes() == {0}


def test_idle_cell_sleeps_and_the_next_message_wakes_it_with_a_new_application(cell: Cell):
    asleep()
    before = Cell.objects.get(id="own")
    assert (before.is_asleep, before.epoch) == (True, cell.epoch)
    assert ScaleGroup.objects.get(cell=cell, kind="process").why.startswith("no message arrived for 300 s")
    assert look(later(5)) == ""
    assert "it sleeps until the next one" in ScaleGroup.objects.get(cell=cell, kind="process").why
    something_comes(later(9))
    look(later(10))
    after = Cell.objects.get(id="own")
    assert (lanes(), after.epoch) == ({1}, before.epoch + 1)
    assert after.version > before.version, "the cell's record notifies the lanes"
    told = ControlAction.objects.filter(controller="scale", cell=cell, detail__kind="process").order_by("id")
    assert [(row.action, row.reason) for row in told] == [
        ("scale-in", "no message arrived for 300 s: it sleeps until the next one"),
        ("scale-out", "1 message has arrived"),
    ]


@pytest.mark.parametrize("kind", LANE_KINDS)
def test_message_that_waits_for_a_lane_of_any_kind_wakes_the_cell(cell: Cell, kind: str):
    asleep()
    something_comes(later(9), kind=kind)
    look(later(10))
    assert lanes() == {1}


def test_sleeping_cell_wakes_once_a_day_for_as_long_as_it_needs_to_fall_asleep(cell: Cell):
    asleep()
    a_day = 24 * 3_600
    quiet(later(a_day))
    look(later(a_day))
    assert lanes() == {1}
    told = ControlAction.objects.filter(controller="scale", action="scale-out").values_list("reason", flat=True)
    assert set(told) == {"it wakes once a day, to check that it can start"}
    quiet(later(a_day + 200), for_s=200)
    look(later(a_day + 200))
    assert lanes() == {1}, "its lanes must join their consumer groups first"
    quiet(later(a_day + 400), for_s=200)
    look(later(a_day + 400))
    assert lanes() == {0}


def test_unstable_cell_is_woken_but_not_put_to_sleep(cell: Cell):
    quiet(NOW)
    CellVerdict.objects.update(state="unstable", reasons=["process-0 is silent"])
    assert look(NOW) == ""
    assert lanes() == {1}
    assert "0 lanes are needed, but" in ScaleGroup.objects.get(cell=cell, kind="process").why
    CellVerdict.objects.update(state="stable", reasons=[])
    look(later(1))
    assert lanes() == {0}
    CellVerdict.objects.update(state="unstable", reasons=["1 message is lost"])
    something_comes(later(69))
    look(later(70))
    assert lanes() == {1}


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param({"for_s": AFTER_S - 60}, id="not known of the whole time"),
        pytest.param({"came": 8}, id="something is left over"),
    ],
)
def test_cell_not_known_to_be_idle_stays_awake(cell: Cell, samples: dict[str, int]):
    quiet(NOW, **samples)
    assert look(NOW) == ""
    assert lanes() == {1}


def test_recent_message_keeps_the_cell_awake_although_it_is_settled(cell: Cell):
    quiet(NOW)
    something_comes(NOW - timedelta(seconds=203), came=8, settled=8)
    assert look(NOW) == ""


def test_shared_cell_never_sleeps(cell: Cell, alice: User):
    keep_cell_for(cell=cell, tenant=None, sleeps_after_s=None, by=alice, now=NOW)
    quiet(NOW)
    assert look(NOW) == ""
    with pytest.raises(InvalidValue, match="only a cell that is dedicated to one tenant"):
        keep_cell_for(cell=cell, tenant=None, sleeps_after_s=AFTER_S, by=alice, now=NOW)


def test_cell_wakes_when_it_is_no_longer_dedicated(cell: Cell, alice: User):
    asleep()
    keep_cell_for(cell=cell, tenant=None, sleeps_after_s=None, by=alice, now=NOW)
    look(later(5))
    assert lanes() == {1}


def open_work_held(pipe: Pipe) -> None:
    counted = {"count": 5, "seen": 5, "marks": [], "offsets": b""}
    OffsetSet.objects.create(pipe_id=pipe.id, destination="crm", kind="held", topic="t", partition=0, hour=1, **counted)


def open_work_move(pipe: Pipe) -> None:
    Redrive.objects.create(
        id="m1", pipe=pipe, destination="crm", what="release", chosen={}, taken=[], total=1, rate_per_s=1
    )


def open_work_revision(pipe: Pipe) -> None:
    pipe.revisions.update(state="ramping")


def open_work_dedup(pipe: Pipe) -> None:
    first = pipe.revisions.get()
    pipe.revisions.update(state="retired")
    spec = first.spec | {"dedup": {"paths": ["/id"]}}
    PipeRevision.objects.create(pipe=pipe, number=2, spec=spec, state="live", author=first.author)


def open_work_lake(pipe: Pipe) -> None:
    pipe.revisions.update(state="live")
    Destination.objects.create(pipe=pipe, name="lake", config={"type": "lake"})


@pytest.mark.parametrize(
    ("open_work", "why"),
    [
        (open_work_held, "5 messages are held and may be released at any time"),
        (open_work_move, "are being released or redriven"),
        (open_work_revision, "revision 1 of pipe"),
        (open_work_dedup, "revision 2 has dedup, which requires a running query"),
        (open_work_lake, "destination lake is a lake, which requires a running query"),
    ],
)
def test_open_work_besides_messages_keeps_the_cell_awake_and_wakes_it(
    cell: Cell, pipe: Pipe, open_work: Callable[[Pipe], None], why: str
):
    Pipe.objects.update(cell=cell)
    pipe.revisions.update(state="live")
    asleep()
    open_work(pipe)
    look(later(5))
    assert lanes() == {1}
    rest = idle_state(Cell.objects.get(id="own"), later(5))
    assert rest is not None
    assert why in rest.open_work
    quiet(later(400))
    look(later(400))
    assert lanes() == {1}


def test_release_waits_until_the_cell_is_woken_for_it_and_is_watched_there(cell: Cell):
    Heartbeat.objects.create(
        cell="", writer="ingest-1", kind="ingest", epoch=1, incarnation="x", state="running", table_offset=1, at=NOW,
        body={},
    )  # fmt: skip
    old, new = (register_release(release=one * 16, wire=1, about="", now=NOW) for one in "01")
    Cell.objects.update(release=old)
    asleep()
    finish("own", Cell.objects.get().lanes, {}, NOW)
    request_rollout(release=new, author=None, now=NOW)
    list(rounds(POLICY, NOW))
    assert RolloutStep.objects.get().why == "cell own is asleep and is woken first"
    look(later(1))
    assert lanes() == {1}
    finish("own", Cell.objects.get().lanes, Cell.objects.get().lanes, later(2))
    CellVerdict.objects.update(at=later(3))
    Heartbeat.objects.update(at=later(3))
    list(rounds(POLICY, later(3)))
    assert Cell.objects.get().release == new


def test_cell_is_dedicated_to_a_tenant_only_without_pipes_of_others(cell: Cell, pipe: Pipe, alice: User):
    stranger = Tenant.objects.create(id="ten_other", name="Other")
    Pipe.objects.update(cell=cell)
    with pytest.raises(InvalidValue, match=r"pipe orders of .* is on this cell: migrate it to another cell first"):
        keep_cell_for(cell=cell, tenant=stranger, sleeps_after_s=None, by=alice, now=NOW)
    with pytest.raises(InvalidValue, match="needs 1 to 60 minutes"):
        keep_cell_for(cell=cell, tenant=pipe.tenant, sleeps_after_s=30, by=alice, now=NOW)


def test_added_cell_gets_the_release_of_most_cells(cell: Cell, alice: User):
    row = register_release(release="2" * 16, wire=1, about="", now=NOW)
    added = add_cell(name="c2", by=alice, now=NOW)
    assert (added.release, added.lanes["process"]) == (row, 1)
    for name in ("c2", "C3", "", "x" * 17, "a b", "c2\n"):
        with pytest.raises(InvalidValue):
            add_cell(name=name, by=alice, now=NOW)
