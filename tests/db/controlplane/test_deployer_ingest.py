"""Rollouts to two replicas of ingest, on Postgres; every cell has the new release already."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.autoscaler.samples import forget_ingest_release
from controlplane.compute.files import ComputeFiles, DesiredReplicas
from controlplane.deployer.builds import publish_build
from controlplane.deployer.tasks import rounds
from controlplane.ingest_replicas import desired_replicas
from controlplane.interlocks import Refusal
from controlplane.leases import acquire
from mgmt.models import Cell, ControlAction, Destination, Pipe, Rollout, RolloutStep
from mgmt.services import register_release, request_rollout, roll_back
from tests.db.controlplane.rollouts import NEW, NOW, OLD, POLICY, beat, holder, later, registered, requested


@pytest.fixture(autouse=True)
def replicas(db: None) -> None:
    registered(OLD)
    Cell.with_ingest.create(id="ingest", release_id=OLD, lanes={"ingest": 2})
    replicas_beat(0, OLD, OLD)


def replicas_beat(seconds: float, *releases: str, **body: Any) -> None:
    """Send a heartbeat of each replica with its release; `body`: further fields, of the first one."""
    for number, release_id in enumerate(releases, start=1):
        more = body if number == 1 else {}
        beat("", f"ingest-{number}", later(seconds), epoch=0, release=release_id, **more)


def at(seconds: float, *releases: str, **body: Any) -> str:
    """Run the Deployer at this time with fresh heartbeats of the replicas; return its actions."""
    replicas_beat(seconds, *releases, **body)
    return ", ".join(rounds(POLICY, later(seconds)))


def desired() -> DesiredReplicas:
    return desired_replicas(Cell.with_ingest.get(id="ingest"))


def test_release_reaches_one_replica_and_then_the_others():
    requested()
    assert [step.place for step in RolloutStep.objects.all()] == ["ingest (first replica)", "ingest"]
    assert at(1, OLD, OLD) == "StartStep, AnnotateStep"
    assert (desired(), holder("ingest")) == (DesiredReplicas(2, OLD, canary=NEW), "deploy")
    assert at(5, OLD, OLD) == "", "the first replica still has the earlier release"
    assert at(8, NEW, OLD) == "ObserveStep, AnnotateStep"
    assert at(60, NEW, OLD) == ""
    assert at(99, NEW, OLD) == "FinishStep, StartStep, AnnotateStep"
    assert desired() == DesiredReplicas(2, NEW)
    assert at(105, NEW, OLD) == "", "the second replica still has the earlier release"
    assert at(110, NEW, NEW) == "ObserveStep, AnnotateStep"
    assert at(160, NEW, NEW) == ""
    assert at(201, NEW, NEW) == "FinishStep, FinishRollout"
    assert (desired(), holder("ingest")) == (DesiredReplicas(2, NEW), "")


def test_replica_that_does_not_start_is_rolled_back_alone():
    requested()
    at(1, OLD, OLD)
    for seconds in range(10, 77, 10):
        beat("", "ingest-2", later(seconds), epoch=0, release=OLD)
        assert ", ".join(rounds(POLICY, later(seconds))) in ("", "AnnotateStep")
    beat("", "ingest-2", later(77), epoch=0, release=OLD)
    assert ", ".join(rounds(POLICY, later(77))) == "ReverseRollout, RevertStep, AnnotateStep"
    assert desired() == DesiredReplicas(2, OLD)
    assert at(80, OLD, OLD) == "FinishRevert, FinishRollout"
    rollout = Rollout.objects.get()
    assert (rollout.state, rollout.why) == ("rolled back", "ingest: ingest-1 did not start within 75 s")


@pytest.mark.parametrize(
    ("before", "found", "why"),
    [
        ({"202": 10}, {"202": 4, "500": 5}, ""),
        ({"202": 10}, {"202": 3, "500": 6}, "6 of its 9 responses were internal errors, 0.0% before"),
        ({"202": 90, "500": 10}, {"202": 80, "500": 20}, ""),
        (
            {"202": 90, "500": 10},
            {"202": 79, "500": 21},
            "21 of its 100 responses were internal errors, 10.0% before",
        ),
        ({"202": 95, "400": 5}, {"202": 50, "400": 50}, ""),
        ({"202": 95, "400": 5}, {"202": 49, "401": 51}, "51.0% of its requests were refused, 5.0% before"),
        ({"202": 95, "400": 5}, {"404": 51, "429": 51, "503": 51}, ""),
        ({"202": 70, "400": 30}, {"401": 100}, ""),
        ({"202": 95, "400": 5}, {"401": 49}, ""),
        ({}, {"401": 60}, ""),
    ],
)
def test_replica_that_refuses_or_fails_more_requests_than_before_is_rolled_back(
    before: dict[str, int], found: dict[str, int], why: str
):
    requested()
    at(1, OLD, OLD, responses=before)
    at(8, NEW, OLD)
    assert ("ReverseRollout" in at(20, NEW, OLD, responses=found)) is bool(why)
    assert Rollout.objects.get().why == (f"ingest: {why}" if why else "")


def test_step_does_not_start_while_a_replica_is_missing_except_in_a_repair():
    requested()
    beat("", "ingest-1", later(10), epoch=0, release=OLD)
    assert list(rounds(POLICY, later(10))) == ["AnnotateStep"]
    assert RolloutStep.objects.get(number=1).why == "ingest-2 does not run"
    roll_back(rollout=Rollout.objects.get(), why="another one", author=None, now=later(11))
    assert list(rounds(POLICY, later(11))) == ["FinishRollout"]
    request_rollout(release=registered(NEW), author=None, now=later(12), is_repair=True)
    assert [step.place for step in RolloutStep.objects.filter(rollout__state="running")] == ["ingest"]
    beat("", "ingest-1", later(12), epoch=0, release=OLD)
    assert next(rounds(POLICY, later(12))) == "StartStep"


def test_silence_during_a_restart_of_the_whole_box_is_not_blamed_on_the_release():
    requested()
    at(1, OLD, OLD)
    at(8, NEW, OLD)
    beat("", "ingest-2", later(60), epoch=0, release=OLD)
    restarted = later(58)
    assert "ReverseRollout" not in ", ".join(rounds(POLICY, later(60), restarted))
    beat("", "ingest-2", later(132), epoch=0, release=OLD)
    assert "ReverseRollout" not in ", ".join(rounds(POLICY, later(132), restarted))
    beat("", "ingest-2", later(134), epoch=0, release=OLD)
    assert "ReverseRollout" in ", ".join(rounds(POLICY, later(134), restarted))


def test_time_to_start_grows_with_the_number_of_replicas():
    Cell.with_ingest.update(lanes={"ingest": 3})
    replicas_beat(0, OLD, OLD, OLD)
    requested()
    for seconds, releases in ((1, (OLD, OLD, OLD)), (8, (NEW, OLD, OLD)), (99, (NEW, OLD, OLD))):
        at(seconds, *releases)
    assert desired() == DesiredReplicas(3, NEW)
    assert "ReverseRollout" not in at(99 + 224, NEW, NEW, OLD)
    assert "ReverseRollout" in at(99 + 226, NEW, NEW, OLD)
    assert Rollout.objects.get().why == "ingest: ingest-3 did not start within 225 s"


def test_earlier_release_whose_replicas_do_not_report_it_is_rolled_out_without_ingest():
    Cell.objects.create(id="c1", release_id=OLD)
    earlier = register_release(release="2" * 16, wire=1, about="", now=NOW)
    request_rollout(release=earlier, author=None, now=NOW)
    assert [step.place for step in RolloutStep.objects.all()] == ["c1"]


def test_replica_that_crashes_is_rolled_back():
    requested()
    at(1, OLD, OLD)
    at(8, NEW, OLD)
    at(20, NEW, OLD, pid=2)
    assert at(30, NEW, OLD, pid=3).startswith("ReverseRollout, RevertStep")
    assert Rollout.objects.get().why == "ingest: a replica crashed 2 times"


def test_all_replicas_return_at_once_when_the_second_step_fails():
    requested()
    for seconds, releases in ((1, (OLD, OLD)), (8, (NEW, OLD)), (99, (NEW, OLD)), (110, (NEW, NEW))):
        at(seconds, *releases)
    roll_back(rollout=Rollout.objects.get(), why="bad", author=None, now=later(111))
    at(112, NEW, NEW)
    assert desired() == DesiredReplicas(2, OLD)
    assert at(115, OLD, NEW) == "AnnotateStep", "it waits for the second one"
    assert at(120, OLD, OLD) == "FinishRevert, RevertStep, FinishRevert, FinishRollout"
    assert (Rollout.objects.get().state, desired()) == ("rolled back", DesiredReplicas(2, OLD))


def test_autoscaler_does_not_change_the_replicas_during_a_step():
    requested()
    at(1, OLD, OLD)
    refusal = acquire("ingest", "scale", "3 replicas", later(2), protective=True)
    assert isinstance(refusal, Refusal)
    assert refusal.kind == "cell-busy"


def test_start_of_a_box_gives_ingest_newly_installed_code_at_once(var: Path):
    requested()
    built = publish_build(box_starts=True)
    assert desired() == DesiredReplicas(2, built)
    assert not RolloutStep.objects.exists(), "the open rollout leaves ingest alone"
    assert ControlAction.objects.latest("id").action == "give-release"
    Cell.with_ingest.update(release=OLD)
    ComputeFiles(var).request_replicas(DesiredReplicas(2, OLD, installed=built))
    publish_build(box_starts=True)
    assert desired() == DesiredReplicas(2, OLD), "it was rolled back, and the code has not changed since"


@pytest.mark.usefixtures("var")
def test_running_box_needs_a_rollout_for_newly_installed_code():
    publish_build()
    assert desired() == DesiredReplicas(2, OLD)
    assert [step.place for step in RolloutStep.objects.all()] == ["ingest (first replica)", "ingest"]


def test_replica_that_answers_nothing_while_the_other_does_is_rolled_back():
    requested()
    at(1, OLD, OLD)
    at(8, NEW, OLD)
    for seconds, count, is_bad in ((20, 499, False), (30, 500, True)):
        beat("", "ingest-1", later(seconds), epoch=0, release=NEW)
        beat("", "ingest-2", later(seconds), epoch=0, release=OLD, responses={"202": count})
        assert ("ReverseRollout" in ", ".join(rounds(POLICY, later(seconds)))) is is_bad
    why = "ingest: its replica answered none of its requests, others answered 500"
    assert Rollout.objects.get().why == why


def test_step_is_not_finished_while_a_replica_is_silent():
    requested()
    for seconds, releases in ((1, (OLD, OLD)), (8, (NEW, OLD)), (99, (NEW, OLD)), (110, (NEW, NEW))):
        at(seconds, *releases)
    restarted = later(130)
    beat("", "ingest-1", later(204), epoch=0, release=NEW)
    assert list(rounds(POLICY, later(204), restarted)) == ["AnnotateStep"], "it may still come back"
    beat("", "ingest-1", later(206), epoch=0, release=NEW)
    assert "ReverseRollout" in list(rounds(POLICY, later(206), restarted))


def test_restart_of_the_box_in_a_step_is_no_crash_of_the_release():
    requested()
    at(1, OLD, OLD)
    at(8, NEW, OLD)
    for pid, is_bad in ((2, False), (3, False), (4, True)):
        replicas_beat(20 + pid, NEW, OLD, pid=pid)
        assert ("ReverseRollout" in list(rounds(POLICY, later(20 + pid), later(15)))) is is_bad


def test_destinations_that_a_bad_release_of_ingest_suspended_are_resumed(pipe: Pipe):
    requested()
    at(1, OLD, OLD)
    row = pipe.destinations.get()
    Destination.objects.filter(id=row.id).update(state="suspended", state_since=later(5))
    at(8, NEW, OLD)
    roll_back(rollout=Rollout.objects.get(), why="bad", author=None, now=later(9))
    at(10, NEW, OLD)
    at(15, OLD, OLD)
    row.refresh_from_db()
    assert row.state == "active"


def test_ingest_follows_the_cells_and_has_no_step_if_others_run_it():
    Cell.objects.create(id="c1", release_id=OLD)
    requested()
    assert [step.place for step in RolloutStep.objects.all()] == ["c1", "ingest (first replica)", "ingest"]
    Rollout.objects.all().delete()
    requested()
    forget_ingest_release()
    assert [step.place for step in RolloutStep.objects.all()] == ["c1"], "the open rollout leaves ingest alone, too"
    Rollout.objects.all().delete()
    requested()
    assert [step.place for step in RolloutStep.objects.all()] == ["c1"]
