"""The Deployer decides from a snapshot alone: each row of a table is one situation and what it does about it."""

from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest

from controlplane.deployer.decide import Begin, End, Finish, Return, Returned, Say, Turn, Watch, decide
from controlplane.deployer.snapshot import CellSight, Health, Policy, RolloutView, Snapshot, StepView

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POLICY = Policy(up_s=75, watch_s=90)
WELL = CellSight()
BEFORE = Health(accepted=6_000, ended=6_000, failed=6, p95_us=20_000)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def step(number: int, state: str, **changes: Any) -> StepView:
    fields: dict[str, Any] = {"id": number, "number": number, "cell": f"c{number}", "state": state, "before": BEFORE}
    if state != "waiting":
        fields["touched_at"] = ago(30)
    if state in ("watching", "done"):
        fields["up_at"] = ago(15)
    return StepView(**fields | changes)


def decided(*steps: StepView, state: str = "running", blind: bool = False, **cells: CellSight) -> list[Any]:
    known = {one.cell: cells.get(one.cell, WELL) for one in steps}
    rollout = RolloutView(7, "new", state, list(steps))
    return decide(Snapshot(rollout, known, NOW, POLICY, blind=blind))


def test_the_canary_goes_first_and_alone():
    assert decided(step(2, "waiting"), step(1, "waiting")) == [Begin(1)]


@pytest.mark.parametrize("state", ["starting", "watching"])
def test_no_cell_is_touched_while_the_one_before_is_not_done(state: str):
    assert not [a for a in decided(step(1, state), step(2, "waiting")) if isinstance(a, Begin)]


def test_the_next_cell_follows_when_the_one_before_is_done():
    assert decided(step(1, "done"), step(2, "waiting")) == [Begin(2)]


def test_a_cell_that_may_not_be_changed_is_waited_for_and_says_why_once():
    unstable = CellSight(refusal="cell c1 is unstable since 11:58:00 UTC: lag")
    assert decided(step(1, "waiting"), c1=unstable) == [Say(1, unstable.refusal)]
    assert decided(step(1, "waiting", why=unstable.refusal), c1=unstable) == []


def test_a_cell_under_way_is_watched_whatever_the_interlocks_say_of_it_since():
    paused = CellSight(refusal="deploying is paused by admin: audit")
    assert decided(step(1, "starting"), c1=paused) == [Watch(1)]


def test_it_is_watched_only_when_every_lane_has_reported():
    missing = CellSight(missing="process-0", silent_s=inf)
    assert decided(step(1, "starting"), c1=missing) == [Say(1, "waiting for process-0 of the new release")]
    assert decided(step(1, "starting")) == [Watch(1)]


def test_it_is_done_when_it_was_watched_long_enough():
    assert decided(step(1, "watching", up_at=ago(89))) == [Say(1, "up, and watched for 90 s")]
    assert decided(step(1, "watching", up_at=ago(90))) == [Finish(1)]


def test_when_all_are_done_the_rollout_is():
    assert decided(step(1, "done"), step(2, "done")) == [End(7, "done")]


BAD = [
    pytest.param(
        step(1, "starting", touched_at=ago(76)),
        CellSight(missing="driver", silent_s=inf),
        "driver did not come up within 75 s",
        id="it never comes up",
    ),
    pytest.param(
        step(1, "watching"),
        CellSight(missing="process-0", silent_s=21),
        "process-0 has not reported for more than 20 s",
        id="a lane falls silent",
    ),
    pytest.param(step(1, "watching"), CellSight(deaths=2), "a lane died 2 times", id="a crash loop"),
    pytest.param(
        step(1, "watching"),
        CellSight(found=Health(1_000, 1_000, 60, 20_000)),
        "6.0% of its messages failed, 0.1% before",
        id="errors",
    ),
    pytest.param(
        step(1, "watching"),
        CellSight(found=Health(1_000, 1_000, 0, 1_020_001)),
        "the 95th percentile of its lag is 1.02 s, 0.02 s before",
        id="slow",
    ),
    pytest.param(
        step(1, "watching"),
        CellSight(found=Health(1_000, 499, 0, 20_000)),
        "only 499 of 1000 accepted messages came through",
        id="it takes and does not give",
    ),
]


@pytest.mark.parametrize(("one", "cell", "why"), BAD)
def test_a_bad_release_turns_the_rollout_with_the_reason(one: StepView, cell: CellSight, why: str):
    assert decided(one, step(2, "waiting"), c1=cell) == [Turn(7, 1, why)]


@pytest.mark.parametrize(
    ("one", "cell"),
    [
        pytest.param(step(1, "starting", touched_at=ago(74)), CellSight(missing="driver", silent_s=inf), id="in time"),
        pytest.param(step(1, "watching"), CellSight(missing="process-0", silent_s=19), id="a short silence"),
        pytest.param(step(1, "watching"), CellSight(deaths=1), id="one death"),
        pytest.param(step(1, "watching"), CellSight(found=Health(1_000, 1_000, 50, 20_000)), id="a few failures more"),
        pytest.param(step(1, "watching"), CellSight(found=Health(49, 49, 49, 20_000)), id="too few to say"),
        pytest.param(step(1, "watching"), CellSight(found=Health(1_000, 1_000, 0, 1_000_000)), id="a little slower"),
        pytest.param(
            step(1, "watching", before=Health()),
            CellSight(found=Health(1_000, 1_000, 0, 3_600_000_000)),
            id="late sources, and nothing to compare with",
        ),
        pytest.param(
            step(1, "watching", before=Health(6_000, 6_000, 3_000, 5_000_000)),
            CellSight(found=Health(1_000, 1_000, 540, 9_000_000)),
            id="as bad as before",
        ),
    ],
)
def test_what_is_not_bad_turns_nothing(one: StepView, cell: CellSight):
    assert not [a for a in decided(one, c1=cell) if isinstance(a, Turn)]


def test_going_back_begins_with_the_last_cell_that_was_touched():
    steps = (step(1, "done"), step(2, "watching"), step(3, "waiting"))
    assert decided(*steps, state="rolling back") == [Return(2)]
    steps = (step(1, "done"), step(2, "returning"), step(3, "waiting"))
    assert decided(*steps, state="rolling back") == [Returned(2)]
    steps = (step(1, "done"), step(2, "returned"), step(3, "waiting"))
    assert decided(*steps, state="rolling back") == [Return(1)]


def test_going_back_heeds_neither_instability_nor_a_pause_but_whoever_changes_the_cell():
    unstable = CellSight(refusal="cell c1 is unstable since 11:58:00 UTC: lag")
    assert decided(step(1, "starting"), state="rolling back", c1=unstable) == [Return(1)]
    leased = CellSight(occupied="scaling is changing cell c1: 2 lanes")
    assert decided(step(1, "done"), state="rolling back", c1=leased) == [Say(1, leased.occupied)]


def test_it_is_back_when_every_lane_reports_again_however_long_that_takes():
    late = CellSight(missing="process-0", silent_s=inf)
    returning = step(1, "returning", touched_at=ago(3_600))
    assert decided(returning, state="rolling back", c1=late) == [Say(1, "waiting for process-0 to be back")]


def test_a_rollout_that_had_touched_nothing_is_rolled_back_at_once():
    assert decided(step(1, "waiting"), state="rolling back") == [End(7, "rolled back")]


@pytest.mark.parametrize("state", ["running", "rolling back"])
def test_silence_from_everywhere_says_nothing_of_the_release(state: str):
    gone = CellSight(missing="driver", silent_s=inf)
    found = decided(step(1, "starting", touched_at=ago(500)), state=state, blind=True, c1=gone)
    assert found == [Say(1, "no heartbeat comes from anywhere: nothing is changed until one does")]
