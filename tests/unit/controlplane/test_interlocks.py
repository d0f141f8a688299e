"""Who may change a cell now: what stops a controller, in which order it is said, and what stops none that protects."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from controlplane.interlocks import (
    BELIEVED,
    CellState,
    Controller,
    LeaseView,
    PauseView,
    VerdictView,
    why_not,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)
CONTROLLERS: tuple[Controller, ...] = get_args(Controller)
STABLE = VerdictView("stable", [], NOW, NOW)
UNSTABLE = VerdictView("unstable", ["process-0 is silent for 30 s"], NOW - timedelta(minutes=1), NOW)


def cell(
    *pauses: PauseView, lease: LeaseView | None = None, verdict: VerdictView | None = STABLE, now: datetime = NOW
) -> CellState:
    return CellState("c1", list(pauses), lease, verdict, now)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("verdict", [STABLE, None], ids=["stable", "never looked at"])
def test_nothing_stops_a_change_of_a_cell_that_is_free_and_well(controller: Controller, verdict: VerdictView | None):
    assert why_not(controller, cell(verdict=verdict)) is None


def test_a_pause_says_who_until_when_and_why():
    refusal = why_not("provision", cell(PauseView("provision", "admin", "audit of the books", SOON)))
    assert refusal is not None
    assert refusal.why == "provisioning is paused by admin until 2026-11-21 12:05:00 UTC: audit of the books"
    assert refusal.again == "at 2026-11-21 12:05:00 UTC, or when somebody ends the pause"


@pytest.mark.parametrize(
    "pause",
    [
        pytest.param(PauseView("deploy", "admin", "x"), id="of another controller"),
        pytest.param(PauseView("provision", "admin", "x", cell="c2"), id="of another cell"),
        pytest.param(PauseView("provision", "admin", "x", until=NOW), id="that is over"),
    ],
)
def test_a_pause_stops_nobody_else(pause: PauseView):
    assert why_not("provision", cell(pause)) is None


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("holder", CONTROLLERS)
@pytest.mark.parametrize("protective", [False, True])
def test_a_cell_is_changed_by_one_at_a_time_whoever_asks(controller: Controller, holder: str, protective: bool):
    held = cell(lease=LeaseView(holder, "moving lanes", SOON))
    refusal = why_not(controller, held, protective=protective)
    assert refusal is not None
    assert "is changing cell c1: moving lanes" in refusal.why


@pytest.mark.parametrize(
    "lease", [LeaseView("deploy", "x", NOW), LeaseView("", "", SOON)], ids=["ran out", "given back"]
)
def test_a_lease_that_ran_out_or_was_given_back_stops_nobody(lease: LeaseView):
    assert why_not("provision", cell(lease=lease)) is None


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("state", ["unstable", "unknown"])
def test_a_cell_that_is_not_stable_is_only_touched_to_protect_it(controller: Controller, state: str):
    unwell = cell(verdict=VerdictView(state, ["process-0 is silent for 30 s"], NOW, NOW))
    refusal = why_not(controller, unwell)
    assert refusal is not None
    assert f"cell c1 is {state} since 2026-11-21 12:00:00 UTC: process-0 is silent for 30 s" in refusal.why
    assert why_not(controller, unwell, protective=True) is None


def test_an_old_verdict_is_no_verdict():
    refusal = why_not("scale", cell(now=NOW + BELIEVED + timedelta(seconds=1)))
    assert refusal is not None
    assert "nobody has looked at cell c1 since" in refusal.why


@pytest.mark.parametrize(("controller", "goes"), [("provision", True), ("deploy", True), ("scale", False)])
def test_a_pause_keeps_nobody_from_undoing_but_the_autoscaler_from_scaling_out(controller: Controller, goes: bool):
    paused = cell(PauseView(controller, "admin", "x"), verdict=UNSTABLE)
    assert (why_not(controller, paused, protective=True) is None) is goes


def test_a_pause_is_named_before_a_lease_and_a_lease_before_the_verdict():
    lease = LeaseView("deploy", "x", SOON)
    pause = PauseView("provision", "admin", "y")
    said = [
        why_not("provision", cell(pause, lease=lease, verdict=UNSTABLE)),
        why_not("provision", cell(lease=lease, verdict=UNSTABLE)),
    ]
    assert [one.why.partition(":")[0] for one in said if one] == [
        "provisioning is paused by admin",
        "deploying is changing cell c1",
    ]
