"""Decides the Deployer's next action for the open rollout, from a snapshot alone.

Each cell of a rollout has a step. Ingest has two after those of the cells: one for its first replica, one for all
replicas. The states of a step, of ingest with replicas instead of lanes:

    waiting    --the cell is stable, deploying is not paused, no controller changes it-->  starting
    starting   --every lane reports from the new application-->  watching            --not in time-->  FAULT
    watching   --for a while no worse than before-->  done                          --worse-->  FAULT

Steps run one after another; the first cell is the canary. A FAULT, or a person, turns the rollout to rolling back:
every touched cell gets its earlier release, the last one first:

    starting | watching | done  --no other controller changes it-->  returning  --every lane reports again-->  returned

A rollback ignores instability and pauses, a repair (a rollout for which a person said so) instability alone. Each
transition is derived from the rows, so a tick that is killed anywhere, or runs twice, continues where it was.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from controlplane.deployer.snapshot import (
    CellErrorRate,
    CellStatus,
    DeployerSnapshot,
    RolloutPolicy,
    RolloutStepView,
    RolloutView,
)
from controlplane.interlocks import RefusalKind
from dataplane.names import INGEST_GROUP

TOUCHED: Final = ("starting", "watching", "done", "returning")


class StartStep(Struct, frozen=True):
    """Give the step's cell the new release."""

    step: int


class ObserveStep(Struct, frozen=True):
    """Watch the step's cell from now on: its lanes have come up."""

    step: int


class FinishStep(Struct, frozen=True):
    """End the step as done: the cell is healthy, and others may change it again."""

    step: int


class ReverseRollout(Struct, frozen=True):
    """Turn the rollout back, because of this step."""

    rollout: int
    step: int
    why: str


class RevertStep(Struct, frozen=True):
    """Give the step's cell its earlier release."""

    step: int


class FinishRevert(Struct, frozen=True):
    """End the step as returned: the cell runs its earlier release, and others may change it again."""

    step: int


class FinishRollout(Struct, frozen=True):
    """End the rollout, as `done` or `rolled back`."""

    rollout: int
    state: str


class AnnotateStep(Struct, frozen=True):
    """Store on the step what it waits for. `refusal`: why the cell may not get a release now, if it waits for that."""

    step: int
    why: str
    refusal: RefusalKind | None = None


DeployerAction = (
    StartStep | ObserveStep | FinishStep | ReverseRollout | RevertStep | FinishRevert | FinishRollout | AnnotateStep
)


def decide(snapshot: DeployerSnapshot) -> list[DeployerAction]:
    """Return the next action; after some rounds only AnnotateStep or FinishRollout, or nothing, is left."""
    rollout = snapshot.rollout
    is_reverting = rollout.state == "rolling back"
    step = step_to_take(rollout)
    if step is None:
        return [FinishRollout(rollout.id, "rolled back" if is_reverting else "done")]
    if snapshot.blind:
        why = "no heartbeats arrive: nothing is changed until one does"
        return _annotate(step, why, "cell-unknown" if step.state == "waiting" else None)
    return list((_revert if is_reverting else _advance)(snapshot, step, snapshot.cells[step.cell]))


def step_to_take(rollout: RolloutView) -> RolloutStepView | None:
    """Return the next step: the first that is not done or, when rolling back, the last that was touched."""
    return _last_touched(rollout.steps) if rollout.state == "rolling back" else _first_open(rollout.steps)


def _first_open(steps: list[RolloutStepView]) -> RolloutStepView | None:
    return min((step for step in steps if step.state != "done"), key=lambda step: step.number, default=None)


def _last_touched(steps: list[RolloutStepView]) -> RolloutStepView | None:
    return max((step for step in steps if step.state in TOUCHED), key=lambda step: step.number, default=None)


def _advance(snapshot: DeployerSnapshot, step: RolloutStepView, cell: CellStatus) -> Iterator[DeployerAction]:
    if step.state == "waiting":
        yield from _annotate(step, cell.refusal, cell.refusal_kind) if cell.refusal else [StartStep(step.id)]
    elif fault := fault_of(snapshot, step, cell):
        yield ReverseRollout(snapshot.rollout.id, step.id, fault)
    elif step.state == "starting":
        yield from (
            _annotate(step, f"waiting for {cell.missing} of the new release")
            if cell.missing
            else [ObserveStep(step.id)]
        )
    elif cell.missing:
        yield from _annotate(step, f"waiting for {cell.missing}")
    elif _seconds_since(step.up_at, snapshot) >= snapshot.policy.watch_s:
        yield FinishStep(step.id)
    else:
        yield from _annotate(step, f"running; observed for {snapshot.policy.watch_s:g} s")


def _revert(_snapshot: DeployerSnapshot, step: RolloutStepView, cell: CellStatus) -> Iterator[DeployerAction]:
    if step.state != "returning":
        yield from _annotate(step, cell.occupied) if cell.occupied else [RevertStep(step.id)]
    else:
        yield from (
            _annotate(step, f"waiting for {cell.missing} to return") if cell.missing else [FinishRevert(step.id)]
        )


def fault_of(snapshot: DeployerSnapshot, step: RolloutStepView, cell: CellStatus) -> str:
    """Return the fault of the new release on this step's cell, in words; "" if there is none."""
    policy = snapshot.policy
    if step.state == "starting":
        up_s = policy.up_s * cell.in_series
        late = cell.missing and _seconds_since(step.touched_at, snapshot) > up_s
        return f"{cell.missing} did not start within {up_s:g} s" if late else ""
    if cell.silent_s > policy.silent_s and _seconds_since(snapshot.since, snapshot) > policy.up_s:
        return f"{cell.missing} has not reported for more than {policy.silent_s:g} s"
    if cell.lane_restarts > policy.lane_restarts:
        return f"a {'replica' if step.cell == INGEST_GROUP else 'lane'} crashed {cell.lane_restarts} times"
    return _why_refusing(step.before, cell.found, policy) or _why_worse(step.before, cell.found, policy)


def _why_refusing(before: CellErrorRate, found: CellErrorRate, policy: RolloutPolicy) -> str:
    """Return why ingest's responses are worse than before, or "". Senders of bad requests existed before, too."""
    if found.errors > policy.errors and found.error_share > 2 * before.error_share:
        share = f"{before.error_share:.1%} before"
        return f"{found.errors} of its {found.responses} responses were internal errors, {share}"
    if found.responses == 0 and found.of_others - before.of_others >= policy.enough_of_others:
        return f"its replica answered none of its requests, others answered {found.of_others - before.of_others}"
    if min(before.responses, found.responses) < policy.enough or before.refused_share > policy.refused_before:
        return ""
    if found.refused_share > policy.refused_after:
        return f"{found.refused_share:.1%} of its requests were refused, {before.refused_share:.1%} before"
    return ""


def _why_worse(before: CellErrorRate, found: CellErrorRate, policy: RolloutPolicy) -> str:
    if found.accepted >= policy.enough and found.ended < found.accepted / 2:
        return f"only {found.ended} of {found.accepted} accepted messages were settled"
    if found.ended < policy.enough:
        return ""
    if found.failed_share > before.failed_share + policy.failed_more:
        return f"{found.failed_share:.1%} of its messages failed, {before.failed_share:.1%} before"
    return _why_slow(before.p95_us, found.p95_us, policy)


def _why_slow(before_us: int | None, found_us: int | None, policy: RolloutPolicy) -> str:
    """Return why the lag is too high, or "". Without an earlier lag none is judged: lags include the source's delay."""
    if before_us is None or found_us is None or found_us <= max(2 * before_us, before_us + policy.slower_us):
        return ""
    return f"the 95th percentile of its lag is {found_us / 1e6:.2f} s, {before_us / 1e6:.2f} s before"


def _seconds_since(moment: datetime | None, snapshot: DeployerSnapshot) -> float:
    """Return seconds since the moment, or since the start of the control plane if that was later; 0 for None."""
    return (snapshot.now - max(moment, snapshot.since)).total_seconds() if moment else 0.0


def _annotate(step: RolloutStepView, why: str, refusal: RefusalKind | None = None) -> list[DeployerAction]:
    return [] if step.why == why else [AnnotateStep(step.id, why, refusal)]
