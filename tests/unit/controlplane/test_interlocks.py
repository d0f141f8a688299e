"""Interlocks: reasons that stop a change of a cell, their order, and the exemption of protective changes."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from controlplane.interlocks import (
    CellState,
    ControllerName,
    LeaseView,
    PauseView,
    VerdictView,
    refusal_of,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)
CONTROLLERS: tuple[ControllerName, ...] = get_args(ControllerName)
STABLE = VerdictView("stable", [], NOW, NOW)
UNSTABLE = VerdictView("unstable", ["process-0 is silent for 30 s"], NOW - timedelta(minutes=1), NOW)


def cell(
    *pauses: PauseView, lease: LeaseView | None = None, verdict: VerdictView | None = STABLE, now: datetime = NOW
) -> CellState:
    return CellState("c1", list(pauses), lease, verdict, now)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("verdict", [STABLE, None], ids=["stable", "never looked at"])
def test_free_and_healthy_cell_may_be_changed(controller: ControllerName, verdict: VerdictView | None):
    assert refusal_of(controller, cell(verdict=verdict)) is None


def test_pause_reports_its_author_end_and_reason():
    refusal = refusal_of("provision", cell(PauseView("provision", "admin", "audit of the books", SOON)))
    assert refusal is not None
    assert refusal.why == "provisioning is paused by admin until 2026-11-21 12:05:00 UTC: audit of the books"
    assert refusal.again == "at 2026-11-21 12:05:00 UTC, or when a person ends the pause"


@pytest.mark.parametrize(
    "pause",
    [
        pytest.param(PauseView("deploy", "admin", "x"), id="of another controller"),
        pytest.param(PauseView("provision", "admin", "x", cell="c2"), id="of another cell"),
        pytest.param(PauseView("provision", "admin", "x", until=NOW), id="that is over"),
    ],
)
def test_pause_stops_no_other_controller_or_cell_and_nothing_after_its_end(pause: PauseView):
    assert refusal_of("provision", cell(pause)) is None


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("holder", CONTROLLERS)
@pytest.mark.parametrize("protective", [False, True])
def test_leased_cell_is_refused_to_every_controller(controller: ControllerName, holder: str, protective: bool):
    held = cell(lease=LeaseView(holder, "moving lanes", SOON))
    refusal = refusal_of(controller, held, protective=protective)
    assert refusal is not None
    assert "is changing cell c1: moving lanes" in refusal.why


@pytest.mark.parametrize(
    "lease", [LeaseView("deploy", "x", NOW), LeaseView("", "", SOON)], ids=["ran out", "given back"]
)
def test_expired_or_released_lease_stops_no_controller(lease: LeaseView):
    assert refusal_of("provision", cell(lease=lease)) is None


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("state", ["unstable", "unknown"])
def test_cell_that_is_not_stable_allows_only_protective_changes(controller: ControllerName, state: str):
    unwell = cell(verdict=VerdictView(state, ["process-0 is silent for 30 s"], NOW, NOW))
    refusal = refusal_of(controller, unwell)
    assert refusal is not None
    assert f"cell c1 is {state} since 2026-11-21 12:00:00 UTC: process-0 is silent for 30 s" in refusal.why
    assert refusal_of(controller, unwell, protective=True) is None


def test_outdated_verdict_does_not_count_as_stable():
    refusal = refusal_of("scale", cell(now=NOW + timedelta(seconds=61)))
    assert refusal is not None
    assert "cell c1 has not been judged since" in refusal.why


@pytest.mark.parametrize(("controller", "goes"), [("provision", True), ("deploy", True), ("scale", False)])
def test_pause_stops_no_rollback_but_stops_the_autoscaler_from_scaling_out(controller: ControllerName, goes: bool):
    paused = cell(PauseView(controller, "admin", "x"), verdict=UNSTABLE)
    assert (refusal_of(controller, paused, protective=True) is None) is goes


def test_pause_is_reported_before_a_lease_and_a_lease_before_the_verdict():
    lease = LeaseView("deploy", "x", SOON)
    pause = PauseView("provision", "admin", "y")
    said = [
        refusal_of("provision", cell(pause, lease=lease, verdict=UNSTABLE)),
        refusal_of("provision", cell(lease=lease, verdict=UNSTABLE)),
    ]
    assert [one.why.partition(":")[0] for one in said if one] == [
        "provisioning is paused by admin",
        "deploying is changing cell c1",
    ]
