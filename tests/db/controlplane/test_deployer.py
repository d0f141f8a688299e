"""Rollouts on Postgres: the Deployer's changes to cells, leases and audit, from request to end."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pyroaring import BitMap64

from controlplane.compute.releases import ReleaseStore
from controlplane.deployer import act
from controlplane.deployer.builds import publish_build, register_build
from controlplane.deployer.health import health_before, health_since
from controlplane.deployer.snapshot import CellErrorRate
from controlplane.deployer.snapshot_queries import wanted
from controlplane.deployer.tasks import rounds, tick
from controlplane.leases import LASTS, acquire, release
from dataplane.ledger.sketch import LagSketch
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import (
    Cell,
    CellVerdict,
    ControlAction,
    FactRow,
    LagRow,
    Lease,
    Pipe,
    Release,
    Rollout,
    RolloutStep,
    User,
)
from mgmt.services import (
    InvalidValue,
    NothingToRollOutError,
    RolloutOpenError,
    WireIncompatibleError,
    pause_controller,
    register_release,
    request_rollout,
    roll_back,
)
from tests.db.controlplane.rollouts import NEW, NOW, OLD, POLICY, beat, holder, later, registered, requested


@pytest.fixture
def cells(db: None) -> list[Cell]:
    """Two stable cells that run the old release."""
    registered(OLD)
    for name in ("c1", "c2"):
        Cell.objects.create(id=name, release_id=OLD)
        judge(name)
    beat("", "ingest-1", NOW)
    return list(Cell.objects.order_by("id"))


def judge(cell: str, state: str = "stable", now: datetime = NOW) -> None:
    CellVerdict.objects.update_or_create(
        cell_id=cell, defaults={"state": state, "reasons": ["lag"], "since": now, "at": now}
    )


def all_report(cell: str, now: datetime, *, pid: int = 1) -> None:
    row = Cell.objects.get(id=cell)
    for writer in wanted(row):
        beat(cell, writer, now, epoch=row.epoch, pid=pid)


def step(cell: str) -> RolloutStep:
    return RolloutStep.objects.get(cell=cell)


def at(seconds: float, *reporting: str) -> str:
    """Run the Deployer at this time with fresh heartbeats of these cells' lanes; return its actions."""
    beat("", "ingest-1", later(seconds))
    for cell in Cell.objects.all():
        judge(cell.id, now=later(seconds))
    for name in reporting:
        all_report(name, later(seconds))
    return ", ".join(rounds(POLICY, later(seconds)))


def runs(cell: str) -> tuple[str | None, int]:
    row = Cell.objects.get(id=cell)
    return row.release_id, row.epoch


def test_good_release_reaches_the_canary_and_then_the_next_cell(cells: list[Cell]):
    requested()
    assert at(0) == "StartStep, AnnotateStep"
    before = cells[0]
    row = Cell.objects.get(id="c1")
    assert (row.release_id, row.epoch, row.version) == (NEW, before.epoch + 1, before.version + 1)
    assert (row.fence, holder("c1")) == (step("c1").token, "deploy")
    assert runs("c2") == (OLD, 1)
    assert at(12, "c1") == "ObserveStep, AnnotateStep"
    assert at(50, "c1") == at(80, "c1") == ""
    assert at(102, "c1") == "FinishStep, StartStep, AnnotateStep"
    assert (holder("c1"), holder("c2"), runs("c2")) == ("", "deploy", (NEW, 2))
    at(110, "c1", "c2")
    assert at(140, "c2") == at(170, "c2") == ""
    assert at(200, "c2") == "FinishStep, FinishRollout"
    rollout = Rollout.objects.get()
    assert (rollout.state, rollout.ended_at, holder("c2")) == ("done", later(200), "")
    told = ControlAction.objects.order_by("id").values_list("controller", "action", "outcome", "cell_id")
    assert list(told) == [
        ("deploy", "roll-out", "done", None),
        ("deploy", "give-release", "done", "c1"),
        ("deploy", "give-release", "done", "c2"),
        ("deploy", "rollout", "done", None),
    ]
    assert at(300, "c1", "c2") == ""


def test_release_that_never_starts_is_rolled_back_and_reaches_no_other_cell(cells: list[Cell]):
    requested()
    at(0)
    at(40)
    assert at(76) == "ReverseRollout, RevertStep, AnnotateStep"
    assert runs("c1") == (OLD, 3)
    assert holder("c1") == "deploy", "no other controller may intervene"
    assert at(90, "c1") == "FinishRevert, FinishRollout"
    rollout = Rollout.objects.get()
    assert rollout.state == "rolled back"
    assert rollout.why == "cell c1: driver did not start within 75 s"
    assert (runs("c2"), holder("c1")) == ((OLD, 1), "")
    assert ControlAction.objects.filter(outcome="rolled back", reason=rollout.why).count() == 1


def test_cell_that_fell_asleep_with_the_new_release_wakes_with_the_previous_one(cells: list[Cell]):
    requested()
    at(0)
    at(12, "c1")
    assert at(102, "c1") == "FinishStep, StartStep, AnnotateStep"
    Cell.objects.filter(id="c1").update(lanes=dict.fromkeys(cells[0].lanes, 0))
    at(110, "c2")
    roll_back(rollout=Rollout.objects.get(), why="x", author=None, now=later(112))
    assert at(115, "c2") == "RevertStep, AnnotateStep"
    assert at(120, "c2") == "FinishRevert, RevertStep, FinishRevert, FinishRollout", (
        "lanes of c2 report; c1 sleeps and needs no reports"
    )
    assert (runs("c1")[0], runs("c2")[0], holder("c1"), holder("c2")) == (OLD, OLD, "", "")


def test_crash_looping_lane_is_detected_although_it_reports_each_time(cells: list[Cell]):
    requested()
    at(0)
    at(12, "c1")
    for pid, seconds in ((2, 20), (3, 28)):
        all_report("c1", later(seconds), pid=1)
        beat("c1", "process-0", later(seconds), epoch=2, pid=pid)
        done = list(rounds(POLICY, later(seconds)))
    assert done[0] == "ReverseRollout"
    assert Rollout.objects.get().why == "cell c1: a lane crashed 2 times"


@pytest.mark.parametrize(
    ("cell", "seconds", "state"),
    [
        pytest.param("c1", 60, "active", id="because of the release"),
        pytest.param("c1", -1, "suspended", id="before it"),
        pytest.param("c2", 60, "suspended", id="in another cell"),
    ],
)
def test_destinations_suspended_by_a_release_are_resumed_after_its_rollback(
    cells: list[Cell], pipe: Pipe, cell: str, seconds: int, state: str
):
    requested()
    at(0)
    Pipe.objects.update(cell=cell)
    pipe.destinations.update_or_create(
        name="crm", defaults={"config": {}, "state": "suspended", "state_since": later(seconds)}
    )
    at(76)
    assert pipe.destinations.get().state == "suspended", "the new release may still send requests"
    assert at(90, "c1") == "FinishRevert, FinishRollout"
    assert pipe.destinations.get().state == state
    told = ControlAction.objects.filter(action="resume-destinations", cell=cell).values_list("detail", flat=True)
    assert list(told) == ([{"resumed": [f"{pipe.id} crm"]}] if state == "active" else [])


def test_every_touched_cell_is_rolled_back_last_one_first(cells: list[Cell]):
    rollout = requested()
    at(0)
    at(12, "c1")
    at(60, "c1")
    at(102, "c1")
    alice = User.objects.create_user("alice")
    assert roll_back(rollout=rollout, why="customers complain", author=alice, now=later(110))
    assert not roll_back(rollout=rollout, why="again", author=alice, now=later(110))
    assert at(110) == "RevertStep, AnnotateStep"
    assert (runs("c2"), runs("c1")) == ((OLD, 3), (NEW, 2))
    assert at(120, "c2") == "FinishRevert, RevertStep, AnnotateStep"
    assert at(130, "c1") == "FinishRevert, FinishRollout"
    assert (runs("c2"), runs("c1")) == ((OLD, 3), (OLD, 3))
    by = ControlAction.objects.get(action="roll-back")
    assert (by.controller, by.author, by.reason) == ("person", alice, "customers complain")


def test_unstable_cell_is_awaited_with_the_reason_and_one_audit_row(cells: list[Cell]):
    requested()
    for seconds in (0, 2, 4):
        judge("c1", "unstable", later(seconds))
        beat("", "ingest-1", later(seconds))
        list(rounds(POLICY, later(seconds)))
    assert step("c1").why.startswith("cell c1 is unstable since ")
    assert runs("c1") == (OLD, 1)
    assert ControlAction.objects.filter(action="give-release", outcome="refused", cell="c1").count() == 1
    assert at(6).startswith("StartStep")


def tick_unstable(seconds: float) -> None:
    beat("", "ingest-1", later(seconds))
    for name in ("c1", "c2"):
        judge(name, "unstable", later(seconds))
    list(rounds(POLICY, later(seconds)))


def test_repair_replaces_the_release_of_an_unstable_cell(cells: list[Cell]):
    request_rollout(release=registered(NEW), author=None, now=NOW, is_repair=True)
    tick_unstable(1)
    assert (step("c1").state, runs("c1")) == ("starting", (NEW, 2))
    assert runs("c2") == (OLD, 1), "cell by cell, as any rollout"
    all_report("c1", later(20))
    tick_unstable(20)
    all_report("c1", later(111))
    tick_unstable(111)
    assert (step("c1").state, runs("c2")) == ("done", (NEW, 2))


def test_repair_waits_for_a_pause_and_for_other_controllers(cells: list[Cell], alice: User):
    request_rollout(release=registered(NEW), author=None, now=NOW, is_repair=True)
    pause = pause_controller(controller="deploy", cell=None, reason="look first", until=None, by=alice, now=NOW)
    tick_unstable(1)
    assert (step("c1").state, "paused" in step("c1").why) == ("waiting", True)
    pause.delete()
    held = acquire("c1", "scale", "more lanes", later(2), protective=True)
    tick_unstable(2)
    assert (step("c1").state, step("c1").why.startswith("scaling is changing cell c1")) == ("waiting", True)
    assert isinstance(held, Lease)
    release(held)
    tick_unstable(3)
    assert step("c1").state == "starting"


def test_command_refuses_a_repair_that_is_not_rolled_out(db: None):
    with pytest.raises(CommandError, match="--repair needs --roll-out"):
        call_command("release", "--repair")
    assert not Release.objects.exists()


def test_refusal_for_another_type_of_reason_is_recorded_as_well(cells: list[Cell]):
    requested()
    alice = User.objects.create_user("alice")
    for seconds in (0, 2, 4, 6):
        if seconds == 4:
            pause_controller(controller="deploy", cell=None, reason="a fair", until=None, by=alice, now=later(seconds))
        judge("c1", "unstable", later(seconds))
        beat("", "ingest-1", later(seconds))
        list(rounds(POLICY, later(seconds)))
    refused = ControlAction.objects.filter(action="give-release", outcome="refused", cell="c1").order_by("id")
    assert list(refused.values_list("refusal", flat=True)) == ["cell-unstable", "paused"]
    assert refused[1].reason == "deploying is paused by alice: a fair"


def test_pause_blocks_the_next_cell_but_not_the_rollback_of_a_bad_one(cells: list[Cell]):
    requested()
    at(0)
    alice = User.objects.create_user("alice")
    pause_controller(controller="deploy", cell=None, reason="a fair", until=None, by=alice, now=later(5))
    assert at(76).startswith("ReverseRollout, RevertStep")
    at(90, "c1")
    assert Rollout.objects.get().state == "rolled back"
    request_rollout(release=registered("2" * 16), author=alice, now=later(100))
    at(100)
    assert RolloutStep.objects.get(rollout__state="running", number=1).why == ("deploying is paused by alice: a fair")


def test_lease_of_another_controller_is_awaited_and_never_overwritten(cells: list[Cell]):
    rollout = requested()
    at(0)
    over = later(1) + LASTS
    judge("c1", now=over)
    taken = acquire("c1", "scale", "2 lanes", over)
    assert isinstance(taken, Lease)
    roll_back(rollout=rollout, why="bad", author=None, now=later(70))
    assert at(70) == "AnnotateStep"
    assert (runs("c1"), step("c1").why) == ((NEW, 2), "scaling is changing cell c1: 2 lanes")
    release(taken)
    assert at(72) == "RevertStep, AnnotateStep"
    assert runs("c1") == (OLD, 3)


def test_rollback_of_a_finished_cell_waits_for_neither_a_pause_nor_its_stability(cells: list[Cell]):
    rollout = requested()
    at(0)
    at(12, "c1")
    assert at(102, "c1") == "FinishStep, StartStep, AnnotateStep"
    alice = User.objects.create_user("alice")
    pause_controller(controller="deploy", cell=None, reason="a fair", until=None, by=alice, now=later(104))
    roll_back(rollout=rollout, why="bad", author=alice, now=later(105))
    assert at(110) == "RevertStep, AnnotateStep"
    all_report("c2", later(120))
    judge("c1", "unstable", later(120))
    assert list(rounds(POLICY, later(120))) == ["FinishRevert", "RevertStep", "AnnotateStep"]
    assert (runs("c1"), holder("c1")) == ((OLD, 3), "deploy")


def test_interrupted_tick_changes_nothing(cells: list[Cell], monkeypatch: pytest.MonkeyPatch):
    requested()

    def cut(*_args: object, **_named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(act, "note", cut)
    with pytest.raises(KeyboardInterrupt):
        at(0)
    monkeypatch.undo()
    assert (runs("c1"), step("c1").state, holder("c1")) == ((OLD, 1), "waiting", "")
    assert at(2) == "StartStep, AnnotateStep"


@pytest.mark.django_db(transaction=True)
def test_concurrent_ticks_do_the_work_of_one():
    registered(OLD)
    Cell.objects.create(id="c1", release_id=OLD)
    beat("", "ingest-1", datetime.now(UTC))
    requested()

    def once(_: int) -> str:
        try:
            return tick()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(once, range(4)))
    assert sum("StartStep" in words for words in said) == 1
    assert runs("c1") == (NEW, 2)


def test_only_one_rollout_runs_at_a_time_and_none_without_a_difference(cells: list[Cell]):
    requested()
    with pytest.raises(RolloutOpenError):
        request_rollout(release=registered("2" * 16), author=None, now=NOW)
    with pytest.raises(NothingToRollOutError):
        request_rollout(release=registered(OLD), author=None, now=NOW)
    assert Rollout.objects.count() == 1


def test_cell_with_the_fewest_pipes_is_the_canary(cells: list[Cell], pipe: Pipe):
    Pipe.objects.update(cell="c1")
    requested()
    assert list(RolloutStep.objects.values_list("cell", flat=True)) == ["c2", "c1"]


def test_wire_incompatible_release_is_refused(cells: list[Cell]):
    with pytest.raises(WireIncompatibleError, match=r"Cell c1 speaks wire version 1, release 3{16} speaks 3"):
        request_rollout(release=registered("3" * 16, wire=3), author=None, now=NOW)
    assert request_rollout(release=registered("4" * 16, wire=2), author=None, now=NOW)


def test_release_is_registered_once_and_assigned_to_cells_without_one(db: None):
    Cell.objects.create(id="c1")
    first = register_release(release=OLD, wire=1, about="the first", now=NOW)
    again = register_release(release=OLD, wire=1, about="built again", now=later(5))
    assert (again.note, again.registered_at) == (first.note, NOW)
    registered(NEW)
    assert runs("c1") == (OLD, 1)
    with pytest.raises(InvalidValue):
        register_release(release="5" * 16, wire=1, about="x" * 201, now=NOW)


def test_installed_release_is_built_and_rolled_out_once(cells: list[Cell], var: Path):
    built = publish_build()
    assert ReleaseStore(var).archive(built).exists()
    rollout = Rollout.objects.get()
    assert rollout.release_id == built
    roll_back(rollout=rollout, why="bad", author=None, now=NOW)
    at(0)
    assert publish_build() == built
    assert Rollout.objects.count() == 1, "it was rolled back, and is not rolled out again automatically"


def test_first_release_of_a_cell_needs_no_rollout(db: None, var: Path):
    Cell.objects.create(id="c1")
    assert runs("c1") == (None, 1)
    assert publish_build() == register_build().id
    assert Rollout.objects.count() == 0
    assert runs("c1")[0] == register_build().id


def fact(pipe: Pipe, minute: int, node: str, name: str, count: int, detail: str = "") -> None:
    FactRow.objects.create(
        pipe_id=pipe.id,
        bucket=minute,
        node=node,
        fact=name,
        detail=detail,
        audit_partition=0,
        positions=BitMap64(range(count)).serialize(),
        count=count,
    )


def test_health_is_measured_over_whole_minutes_before_and_after_the_change(cells: list[Cell], pipe: Pipe):
    Pipe.objects.update(cell="c1")
    this = bucket_at(NOW)
    for minute, dead in ((this - 1, 5), (this, 500), (this + 1, 60)):
        fact(pipe, minute, "ingest", "sent", 1_000, "acked")
        fact(pipe, minute, "transmit:crm", "delivered", 1_000 - dead)
        fact(pipe, minute, "transmit:crm", "dead", dead, "rejected")
        sketch = LagSketch()
        sketch.add([20_000])
        LagRow.objects.create(
            pipe_id=pipe.id, bucket=minute, node="transmit:crm", audit_partition=0, lag_out=sketch.encode()
        )
    assert health_before("c1", NOW) == CellErrorRate(1_000, 1_000, 5, sketch.quantile(0.95))
    assert health_since("c1", NOW, later(49)) == CellErrorRate(), "the current minute does not count yet"
    assert health_since("c1", NOW, later(50)) == CellErrorRate(1_000, 1_000, 60, sketch.quantile(0.95))
    assert health_before("c2", NOW) == CellErrorRate()
