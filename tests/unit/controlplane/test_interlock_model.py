"""Exhaustive exploration of the interlocks: no violation is reachable, and every broken rule is found."""

import time

import pytest

from controlplane.interlocks import ControllerName
from tests.support.interlock_model import PROCESSES, Rules, World, explore


def test_no_reachable_world_has_two_or_unauthorised_controllers_changing_a_cell(capsys: pytest.CaptureFixture[str]):
    began = time.monotonic()
    explored = explore(Rules())
    with capsys.disabled():
        print(f"\n{explored.worlds} worlds, {explored.steps} steps, {time.monotonic() - began:.1f} s")  # noqa: T201
    assert (explored.violation, explored.way) == ("", [])
    assert explored.worlds > 5_000


class FenceRisesWithTheFirstWrite(Rules):
    def raised(self, fence: int, _token: int) -> int:
        return fence


class WritesAreNotFenced(Rules):
    def write(self, world: World, _process: int) -> tuple[bool, World]:
        return True, world


class TokenIsGivenTwice(Rules):
    def next_token(self, world: World) -> int:
        return max(world.token, 1)


class LeaseNeverRunsOut(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        return super().may(world._replace(left=1), controller, protective=protective)


class InstabilityStopsRollbacks(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        return super().may(world, controller, protective=protective) and (not protective or world.verdict == "stable")


class RollbacksNeedNoLease(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        return super().may(world._replace(holder="") if protective else world, controller, protective=protective)


class PausesAreNotAsked(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        return super().may(world._replace(paused=frozenset()), controller, protective=protective)


class PausesStopRollbacks(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        return super().may(world, controller, protective=protective) and controller not in world.paused


class VerdictsAreNotAsked(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        return super().may(world._replace(verdict="stable"), controller, protective=protective)


class UnknownCountsAsStable(Rules):
    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        known = world if world.verdict == "unstable" else world._replace(verdict="stable")
        return super().may(known, controller, protective=protective)


class AnybodyGivesBack(Rules):
    def give_back(self, world: World, process: int) -> tuple[bool, World]:
        _, after = super().give_back(world, process)
        return True, after._replace(holder="")


class WhoeverHasTheNameKeeps(Rules):
    """Rules that compare the holder's name where they should compare the token."""

    def holds(self, world: World, process: int) -> bool:
        return world.holder == PROCESSES[process]


@pytest.mark.parametrize(
    ("broken", "violation"),
    [
        (FenceRisesWithTheFirstWrite, "somebody wrote after another had taken the cell"),
        (WritesAreNotFenced, "somebody wrote after another had taken the cell"),
        (TokenIsGivenTwice, "somebody wrote after another had taken the cell"),
        (LeaseNeverRunsOut, "can never take the cell again"),
        (InstabilityStopsRollbacks, "a lease was refused although nothing stood against it"),
        (PausesStopRollbacks, "a lease was refused although nothing stood against it"),
        (RollbacksNeedNoLease, "two changed the cell at once"),
        (PausesAreNotAsked, "a controller that was paused took the cell"),
        (VerdictsAreNotAsked, "a cell that is not stable was taken"),
        (UnknownCountsAsStable, "a cell that is not stable was taken"),
        (AnybodyGivesBack, "give back of one who lost the lease changed another's"),
        (WhoeverHasTheNameKeeps, "of one who lost the lease changed another's"),
    ],
)
def test_broken_interlock_is_found_with_the_path_that_leads_to_it(broken: type[Rules], violation: str):
    explored = explore(broken())
    assert violation in explored.violation
    assert explored.way or "never" in violation
