"""Rollouts under random events: unstable cells, pauses and rollbacks by people, foreign leases, silence."""

from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from controlplane.deployer.decide import (
    AnnotateStep,
    DeployerAction,
    FinishRevert,
    FinishRollout,
    FinishStep,
    ObserveStep,
    ReverseRollout,
    RevertStep,
    StartStep,
    decide,
    step_to_take,
)
from controlplane.deployer.snapshot import (
    CellErrorRate,
    CellStatus,
    DeployerSnapshot,
    RolloutPolicy,
    RolloutStepView,
    RolloutView,
)

POLICY = RolloutPolicy(up_s=75, watch_s=90)
BEFORE = CellErrorRate(6_000, 6_000, 6, 20_000)
UNDER_WAY = ("starting", "watching", "returning")
UP_AFTER_S = 12.0  # start time of Spark
CELLS = st.sampled_from(["c1", "c2", "c3"])
FAULTS = st.sampled_from(["", "never up", "dies", "errors", "slow"])


class World(RuleBasedStateMachine):
    """Three cells and one rollout, as rows and heartbeats would show them; `act` works like the real Deployer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 21, tzinfo=UTC)
        self.release = dict.fromkeys(("c1", "c2", "c3"), "old")
        self.refused: set[str] = set()  # unstable, or deploying is paused there
        self.others: set[str] = set()  # leased to another controller
        self.ours: set[str] = set()
        self.blind = False
        self.turned_at: datetime | None = None
        self.done: list[DeployerAction] = []
        steps = [RolloutStepView(number, number, f"c{number}", "waiting", before=BEFORE) for number in (1, 2, 3)]
        self.rollout = RolloutView(1, "new", "running", steps)

    @initialize(fault=FAULTS, cell=CELLS)
    def build(self, fault: str, cell: str) -> None:
        """Build a release with one fault, which shows on one of the cells."""
        self.fault, self.bad = fault, cell

    @rule(cell=CELLS)
    def a_cell_may_not_be_changed(self, cell: str) -> None:
        self.refused ^= {cell}

    @rule(cell=CELLS)
    def somebody_else_takes_a_cell_or_gives_it_back(self, cell: str) -> None:
        if cell not in self.ours:
            self.others ^= {cell}

    @rule()
    def everybody_falls_silent_or_is_heard_again(self) -> None:
        self.blind = not self.blind

    @rule()
    def a_person_turns_it_back(self) -> None:
        self._turn()

    @rule(seconds=st.sampled_from([1.0, 10.0, 30.0, 100.0]))
    def time_passes_and_it_ticks(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.tick()

    def all_is_free(self) -> None:
        self.refused, self.others, self.blind = set(), set(), False

    def tick(self) -> None:
        for _ in range(8):
            actions = decide(self.snapshot()) if self.rollout.state in ("running", "rolling back") else []
            for action in actions:
                self.check(action)
                self.act(action)
            if all(isinstance(action, AnnotateStep) for action in actions):
                return
        raise AssertionError(f"it never comes to rest: {self.done[-8:]}")

    def snapshot(self) -> DeployerSnapshot:
        step = step_to_take(self.rollout)
        return DeployerSnapshot(
            self.rollout, {step.cell: self.sight(step)} if step else {}, self.now, POLICY, blind=self.blind
        )

    def sight(self, step: RolloutStepView) -> CellStatus:
        cell = step.cell
        free = cell in self.ours
        since = (self.now - step.touched_at).total_seconds() if step.touched_at else inf
        fault = self.fault if self.release[cell] == "new" and cell == self.bad else ""
        missing = "driver" if since < UP_AFTER_S or fault == "never up" else ""
        return CellStatus(
            refusal="" if free or cell not in self.refused | self.others else "not now",
            occupied="" if free or cell not in self.others else "scaling is changing it",
            missing=missing,
            silent_s=inf if missing else 0.0,
            lane_restarts=2 if fault == "dies" else 0,
            found=self.health(fault),
        )

    def health(self, fault: str) -> CellErrorRate:
        return CellErrorRate(1_000, 1_000, 500 if fault == "errors" else 1, 9_000_000 if fault == "slow" else 20_000)

    def check(self, action: DeployerAction) -> None:
        """Check that the action is allowed."""
        match action:
            case StartStep():
                step = self.step(action.step)
                assert self.rollout.state == "running"
                assert step.cell not in self.refused | self.others, "the interlocks refused it"
                assert all(other.state == "done" for other in self.rollout.steps if other.number < step.number)
            case RevertStep():
                step = self.step(action.step)
                assert self.rollout.state == "rolling back"
                assert step.cell not in self.others, "another controller is changing it"
            case ReverseRollout():
                assert self.fault, "a good release was rolled back"
        assert not self.blind or isinstance(action, AnnotateStep | FinishRollout), "it acted without any heartbeat"

    def act(self, action: DeployerAction) -> None:
        self.done.append(action)
        match action:
            case StartStep():
                self.give(action.step, "starting", "new")
            case ObserveStep():
                self.move(action.step, state="watching", up_at=self.now)
            case FinishStep():
                self.let_go(action.step, "done")
            case ReverseRollout():
                self._turn()
            case RevertStep():
                self.give(action.step, "returning", "old")
            case FinishRevert():
                self.let_go(action.step, "returned")
            case FinishRollout():
                self.rollout = replace(self.rollout, state=action.state)
            case AnnotateStep():
                self.move(action.step, why=action.why)

    def give(self, step: int, state: str, release: str) -> None:
        cell = self.step(step).cell
        self.release[cell] = release
        self.ours.add(cell)
        self.move(step, state=state, touched_at=self.now, up_at=None)

    def let_go(self, step: int, state: str) -> None:
        self.ours.discard(self.step(step).cell)
        self.move(step, state=state)

    def step(self, id_: int) -> RolloutStepView:
        return next(step for step in self.rollout.steps if step.id == id_)

    def move(self, id_: int, **fields: Any) -> None:
        steps = [replace(step, **fields) if step.id == id_ else step for step in self.rollout.steps]
        self.rollout = replace(self.rollout, steps=steps)

    def _turn(self) -> None:
        if self.rollout.state == "running":
            self.rollout, self.turned_at = replace(self.rollout, state="rolling back"), self.now

    @invariant()
    def one_cell_is_changed_at_a_time(self) -> None:
        assert sum(step.state in UNDER_WAY for step in self.rollout.steps) <= 1
        assert self.ours == {step.cell for step in self.rollout.steps if step.state in UNDER_WAY}

    @invariant()
    def what_a_cell_has_is_what_its_step_says(self) -> None:
        for step in self.rollout.steps:
            assert self.release[step.cell] == ("new" if step.state in ("starting", "watching", "done") else "old")

    @invariant()
    def it_ends_everywhere_or_nowhere(self) -> None:
        if self.rollout.state in ("done", "rolled back"):
            assert set(self.release.values()) == {"new" if self.rollout.state == "done" else "old"}
            assert not self.ours

    def teardown(self) -> None:
        """Check that an undisturbed rollout ends: a good release runs everywhere, a bad one nowhere."""
        if not hasattr(self, "fault"):
            return
        self.all_is_free()
        turned = self.turned_at is not None or bool(self.fault)
        if self.rollout.state == "done":  # it ended before any rollback
            turned = False
        self.ticks_until_it_ends()
        assert self.rollout.state == ("rolled back" if turned else "done")

    def ticks_until_it_ends(self) -> timedelta:
        began = self.now
        while self.rollout.state not in ("done", "rolled back"):
            self.now += timedelta(seconds=2)
            self.tick()
            assert self.now - began < timedelta(minutes=15), "it never ends"
        return self.now - began


World.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestWorld = World.TestCase


@pytest.mark.parametrize("fault", ["never up", "dies", "errors", "slow"])
def test_bad_canary_has_its_old_release_again_within_two_minutes(fault: str):
    world = World()
    world.build(fault, "c1")
    assert world.ticks_until_it_ends() <= timedelta(minutes=2)
    assert world.rollout.state == "rolled back"
    assert not [action for action in world.done if isinstance(action, StartStep) and action.step != 1]
