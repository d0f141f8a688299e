"""A lane that fails at any step of its code loses nothing, and the ledger says nothing false."""

import itertools
from pathlib import Path
from typing import Final

import pytest

from dataplane.names import LaneKind
from tests.support.failing_lanes import WORLDS, Raiser, in_memory
from tests.support.failures import FAILURES
from tests.support.sizes import FAILURE_REPEATS
from tests.support.steps import Step, steps_of

LANES: Final = 4  # runs until one drains: the fault is raised once


def passed(kind: LaneKind, var: Path) -> list[Step]:
    """Return the steps that the traffic passes, without closing steps: the process ends after them."""
    world, tracer = WORLDS[kind](var), Raiser()
    with in_memory(world):
        assert world.run_lane(tracer) == "drained"
    world.check_done()
    return [step for step in steps_of(kind) if step.place in tracer.seen and "close" not in step.name]


def fails_at(kind: LaneKind, step: Step, failure: str, nth: int, var: Path) -> bool:
    """Let a lane fail at a step and the next ones finish; return True if the step ran `nth` times."""
    world, tracer = WORLDS[kind](var), Raiser(step, FAILURES[failure](), nth)
    with in_memory(world):
        ends = [world.run_lane(tracer)]
        while ends[-1] != "drained":
            assert len(ends) < LANES, f"{step} {failure}: {ends}"
            ends.append(world.run_lane())
    assert not world.broken, f"{step} {failure}: {world.broken}"
    world.check_done(failure)
    return tracer.has_raised


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.timeout(900)
def test_exception_at_any_step_loses_nothing_and_reports_nothing_false(kind: LaneKind, tmp_path: Path):
    steps, failures = passed(kind, tmp_path / "first"), itertools.cycle(FAILURES)
    assert len(steps) > 100
    raised = [
        fails_at(kind, step, next(failures), 1 + number // len(FAILURES) % 2, tmp_path / str(number))
        for number, step in enumerate(steps)
    ]
    assert sum(raised) > len(steps) * 0.6, "most steps run more than once"


@pytest.mark.long
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.timeout(1_800)
def test_every_exception_at_every_step_loses_nothing(kind: LaneKind, failure: str, tmp_path: Path):
    for number, step in enumerate(passed(kind, tmp_path / "first")):
        for nth in range(1, FAILURE_REPEATS + 1):
            fails_at(kind, step, failure, nth, tmp_path / f"{number}-{nth}")
