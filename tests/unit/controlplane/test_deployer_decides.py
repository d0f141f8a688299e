"""The Deployer decides from a snapshot alone: each row of a table is one situation and the actions in it."""

from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest

from controlplane.deployer.decide import (
    AnnotateStep,
    FinishRevert,
    FinishRollout,
    FinishStep,
    ObserveStep,
    ReverseRollout,
    RevertStep,
    StartStep,
    decide,
)
from controlplane.deployer.snapshot import (
    CellErrorRate,
    CellStatus,
    DeployerSnapshot,
    RolloutPolicy,
    RolloutStepView,
    RolloutView,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POLICY = RolloutPolicy(up_s=75, watch_s=90)
WELL = CellStatus()
BEFORE = CellErrorRate(accepted=6_000, ended=6_000, failed=6, p95_us=20_000)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def step(number: int, state: str, **changes: Any) -> RolloutStepView:
    fields: dict[str, Any] = {"id": number, "number": number, "cell": f"c{number}", "state": state, "before": BEFORE}
    if state != "waiting":
        fields["touched_at"] = ago(30)
    if state in ("watching", "done"):
        fields["up_at"] = ago(15)
    return RolloutStepView(**fields | changes)


def decided(*steps: RolloutStepView, state: str = "running", blind: bool = False, **cells: CellStatus) -> list[Any]:
    known = {one.cell: cells.get(one.cell, WELL) for one in steps}
    rollout = RolloutView(7, "new", state, list(steps))
    return decide(DeployerSnapshot(rollout, known, NOW, POLICY, blind=blind))


def test_canary_starts_first_and_alone():
    assert decided(step(2, "waiting"), step(1, "waiting")) == [StartStep(1)]


@pytest.mark.parametrize("state", ["starting", "watching"])
def test_no_cell_starts_while_the_previous_one_is_not_done(state: str):
    assert not [a for a in decided(step(1, state), step(2, "waiting")) if isinstance(a, StartStep)]


def test_next_cell_starts_when_the_previous_one_is_done():
    assert decided(step(1, "done"), step(2, "waiting")) == [StartStep(2)]


def test_refused_cell_waits_and_reports_the_reason_once():
    unstable = CellStatus(refusal="cell c1 is unstable since 11:58:00 UTC: lag")
    assert decided(step(1, "waiting"), c1=unstable) == [AnnotateStep(1, unstable.refusal)]
    assert decided(step(1, "waiting", why=unstable.refusal), c1=unstable) == []


def test_started_cell_is_watched_whatever_the_interlocks_say_later():
    paused = CellStatus(refusal="deploying is paused by admin: audit")
    assert decided(step(1, "starting"), c1=paused) == [ObserveStep(1)]


def test_cell_is_watched_only_when_every_lane_has_reported():
    missing = CellStatus(missing="process-0", silent_s=inf)
    assert decided(step(1, "starting"), c1=missing) == [AnnotateStep(1, "waiting for process-0 of the new release")]
    assert decided(step(1, "starting")) == [ObserveStep(1)]


def test_cell_is_done_after_the_watch_time():
    assert decided(step(1, "watching", up_at=ago(89))) == [AnnotateStep(1, "running; observed for 90 s")]
    assert decided(step(1, "watching", up_at=ago(90))) == [FinishStep(1)]


def test_rollout_is_done_when_all_cells_are_done():
    assert decided(step(1, "done"), step(2, "done")) == [FinishRollout(7, "done")]


BAD = [
    pytest.param(
        step(1, "starting", touched_at=ago(76)),
        CellStatus(missing="driver", silent_s=inf),
        "driver did not start within 75 s",
        id="it never comes up",
    ),
    pytest.param(
        step(1, "watching"),
        CellStatus(missing="process-0", silent_s=21),
        "process-0 has not reported for more than 20 s",
        id="a lane falls silent",
    ),
    pytest.param(step(1, "watching"), CellStatus(lane_restarts=2), "a lane crashed 2 times", id="a crash loop"),
    pytest.param(
        step(1, "watching"),
        CellStatus(found=CellErrorRate(1_000, 1_000, 60, 20_000)),
        "6.0% of its messages failed, 0.1% before",
        id="errors",
    ),
    pytest.param(
        step(1, "watching"),
        CellStatus(found=CellErrorRate(1_000, 1_000, 0, 1_020_001)),
        "the 95th percentile of its lag is 1.02 s, 0.02 s before",
        id="slow",
    ),
    pytest.param(
        step(1, "watching"),
        CellStatus(found=CellErrorRate(1_000, 499, 0, 20_000)),
        "only 499 of 1000 accepted messages were settled",
        id="it takes and does not give",
    ),
]


@pytest.mark.parametrize(("one", "cell", "why"), BAD)
def test_bad_release_reverses_the_rollout_with_the_reason(one: RolloutStepView, cell: CellStatus, why: str):
    assert decided(one, step(2, "waiting"), c1=cell) == [ReverseRollout(7, 1, why)]


@pytest.mark.parametrize(
    ("one", "cell"),
    [
        pytest.param(step(1, "starting", touched_at=ago(74)), CellStatus(missing="driver", silent_s=inf), id="in time"),
        pytest.param(step(1, "watching"), CellStatus(missing="process-0", silent_s=19), id="a short silence"),
        pytest.param(step(1, "watching"), CellStatus(lane_restarts=1), id="one death"),
        pytest.param(
            step(1, "watching"), CellStatus(found=CellErrorRate(1_000, 1_000, 50, 20_000)), id="a few failures more"
        ),
        pytest.param(step(1, "watching"), CellStatus(found=CellErrorRate(49, 49, 49, 20_000)), id="too few to say"),
        pytest.param(
            step(1, "watching"), CellStatus(found=CellErrorRate(1_000, 1_000, 0, 1_000_000)), id="a little slower"
        ),
        pytest.param(
            step(1, "watching", before=CellErrorRate()),
            CellStatus(found=CellErrorRate(1_000, 1_000, 0, 3_600_000_000)),
            id="late sources, and nothing to compare with",
        ),
        pytest.param(
            step(1, "watching", before=CellErrorRate(6_000, 6_000, 3_000, 5_000_000)),
            CellStatus(found=CellErrorRate(1_000, 1_000, 540, 9_000_000)),
            id="as bad as before",
        ),
    ],
)
def test_acceptable_release_reverses_nothing(one: RolloutStepView, cell: CellStatus):
    assert not [a for a in decided(one, c1=cell) if isinstance(a, ReverseRollout)]


def test_rollback_starts_with_the_last_cell_that_was_changed():
    steps = (step(1, "done"), step(2, "watching"), step(3, "waiting"))
    assert decided(*steps, state="rolling back") == [RevertStep(2)]
    steps = (step(1, "done"), step(2, "returning"), step(3, "waiting"))
    assert decided(*steps, state="rolling back") == [FinishRevert(2)]
    steps = (step(1, "done"), step(2, "returned"), step(3, "waiting"))
    assert decided(*steps, state="rolling back") == [RevertStep(1)]


def test_rollback_ignores_instability_and_pauses_but_waits_for_a_lease():
    unstable = CellStatus(refusal="cell c1 is unstable since 11:58:00 UTC: lag")
    assert decided(step(1, "starting"), state="rolling back", c1=unstable) == [RevertStep(1)]
    leased = CellStatus(occupied="scaling is changing cell c1: 2 lanes")
    assert decided(step(1, "done"), state="rolling back", c1=leased) == [AnnotateStep(1, leased.occupied)]


def test_cell_is_rolled_back_when_every_lane_reports_again_without_a_time_limit():
    late = CellStatus(missing="process-0", silent_s=inf)
    returning = step(1, "returning", touched_at=ago(3_600))
    assert decided(returning, state="rolling back", c1=late) == [AnnotateStep(1, "waiting for process-0 to return")]


def test_rollout_without_changed_cells_is_rolled_back_at_once():
    assert decided(step(1, "waiting"), state="rolling back") == [FinishRollout(7, "rolled back")]


@pytest.mark.parametrize("state", ["running", "rolling back"])
def test_silence_of_all_processes_does_not_blame_the_release(state: str):
    gone = CellStatus(missing="driver", silent_s=inf)
    found = decided(step(1, "starting", touched_at=ago(500)), state=state, blind=True, c1=gone)
    assert found == [AnnotateStep(1, "no heartbeats arrive: nothing is changed until one does")]
