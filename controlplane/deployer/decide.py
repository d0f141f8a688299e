"""What the Deployer does next with the open rollout, from a snapshot alone.

A cell's part, a step:

    waiting    --the cell is stable, nobody has paused deploying, nobody else changes it-->  starting
    starting   --every lane reports from the new application-->  watching            --not in time-->  FAULT
    watching   --for a while no worse than before-->  done                          --worse-->  FAULT

Steps go one after another, the first cell being the canary. A FAULT, or a person, turns the rollout into rolling back:
every cell that was touched gets back the release that it had, the last one first:

    starting | watching | done  --nobody else changes it-->  returning  --every lane reports again-->  returned

Going back heeds neither instability nor a pause. Each step is read off the rows, so a tick that is killed anywhere, or
runs twice, finds what it had done and goes on.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from controlplane.deployer.snapshot import CellSight, Health, Policy, RolloutView, Snapshot, StepView

TOUCHED: Final = ("starting", "watching", "done", "returning")


class Begin(Struct, frozen=True):
    """Give the step's cell the new release."""

    step: int


class Watch(Struct, frozen=True):
    """Its lanes have come up: from now on they are watched."""

    step: int


class Finish(Struct, frozen=True):
    """It is well; others may change the cell again."""

    step: int


class Turn(Struct, frozen=True):
    """Turn the rollout back, because of this step."""

    rollout: int
    step: int
    why: str


class Return(Struct, frozen=True):
    """Give the step's cell back what it had."""

    step: int


class Returned(Struct, frozen=True):
    """It runs again as before; others may change the cell again."""

    step: int


class End(Struct, frozen=True):
    """Nothing is left to do: the rollout is `done` or `rolled back`."""

    rollout: int
    state: str


class Say(Struct, frozen=True):
    """Say on the step what it waits for."""

    step: int
    why: str


Action = Begin | Watch | Finish | Turn | Return | Returned | End | Say


def decide(snapshot: Snapshot) -> list[Action]:
    """The next thing to do; acting on it and deciding again ends in a list of nothing but Say, or in End."""
    rollout = snapshot.rollout
    back = rollout.state == "rolling back"
    step = step_to_take(rollout)
    if step is None:
        return [End(rollout.id, "rolled back" if back else "done")]
    if snapshot.blind:
        return list(_say(step, "no heartbeat comes from anywhere: nothing is changed until one does"))
    return list((_back if back else _forth)(snapshot, step, snapshot.cells[step.cell]))


def step_to_take(rollout: RolloutView) -> StepView | None:
    """The step whose turn it is: the first that is not done; going back, the last that was touched."""
    return _last_touched(rollout.steps) if rollout.state == "rolling back" else _first_open(rollout.steps)


def _first_open(steps: list[StepView]) -> StepView | None:
    return min((step for step in steps if step.state != "done"), key=lambda step: step.number, default=None)


def _last_touched(steps: list[StepView]) -> StepView | None:
    return max((step for step in steps if step.state in TOUCHED), key=lambda step: step.number, default=None)


def _forth(snapshot: Snapshot, step: StepView, cell: CellSight) -> Iterator[Action]:
    if step.state == "waiting":
        yield from _say(step, cell.refusal) if cell.refusal else [Begin(step.id)]
    elif fault := why_bad(snapshot, step, cell):
        yield Turn(snapshot.rollout.id, step.id, fault)
    elif step.state == "starting":
        yield from _say(step, f"waiting for {cell.missing} of the new release") if cell.missing else [Watch(step.id)]
    elif _seconds_since(step.up_at, snapshot) >= snapshot.policy.watch_s:
        yield Finish(step.id)
    else:
        yield from _say(step, f"up, and watched for {snapshot.policy.watch_s:g} s")


def _back(_snapshot: Snapshot, step: StepView, cell: CellSight) -> Iterator[Action]:
    if step.state != "returning":
        yield from _say(step, cell.occupied) if cell.occupied else [Return(step.id)]
    else:
        yield from _say(step, f"waiting for {cell.missing} to be back") if cell.missing else [Returned(step.id)]


def why_bad(snapshot: Snapshot, step: StepView, cell: CellSight) -> str:
    """What is wrong with the new release on this step's cell, in words; "" if nothing is."""
    policy = snapshot.policy
    if step.state == "starting":
        late = cell.missing and _seconds_since(step.touched_at, snapshot) > policy.up_s
        return f"{cell.missing} did not come up within {policy.up_s:g} s" if late else ""
    if cell.silent_s > policy.silent_s:
        return f"{cell.missing} has not reported for more than {policy.silent_s:g} s"
    if cell.deaths > policy.deaths:
        return f"a lane died {cell.deaths} times"
    return _why_worse(step.before, cell.found, policy)


def _why_worse(before: Health, found: Health, policy: Policy) -> str:
    if found.accepted >= policy.enough and found.ended < found.accepted / 2:
        return f"only {found.ended} of {found.accepted} accepted messages came through"
    if found.ended < policy.enough:
        return ""
    if found.failed_share > before.failed_share + policy.failed_more:
        return f"{found.failed_share:.1%} of its messages failed, {before.failed_share:.1%} before"
    return _why_slow(before.p95_us, found.p95_us, policy)


def _why_slow(before_us: int | None, found_us: int | None, policy: Policy) -> str:
    """Without a measure from before there is none: a source's own delay is part of every lag."""
    if before_us is None or found_us is None or found_us <= max(2 * before_us, before_us + policy.slower_us):
        return ""
    return f"the 95th percentile of its lag is {found_us / 1e6:.2f} s, {before_us / 1e6:.2f} s before"


def _seconds_since(moment: datetime | None, snapshot: Snapshot) -> float:
    return (snapshot.now - moment).total_seconds() if moment else 0.0


def _say(step: StepView, why: str) -> list[Action]:
    return [] if step.why == why else [Say(step.id, why)]
