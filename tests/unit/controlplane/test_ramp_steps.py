"""Advance, hold and rollback of a ramp, from the figures of its two revisions alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.provisioner.ramping import (
    AdvanceRamp,
    KeepShare,
    RampProgress,
    most_failures,
    next_step,
    rollback_reason,
)
from mgmt.ramps.queries import RampFigures
from mgmt.ramps.schedule import RampPolicy, ramp_steps

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POLICY = RampPolicy()
WELL = RampFigures(taken=1_000, p95_us=40_000)


def ramp(ramping: RampFigures = WELL, stable: RampFigures = WELL, **changes: Any) -> RampProgress:
    fields: dict[str, Any] = {
        "revision": 8,
        "stable_number": 7,
        "share": 5,
        "began_at": NOW - POLICY.hold,
        "held_by": "",
    }
    return RampProgress(ramping=ramping, stable=stable, **fields | changes)


def test_lag_of_a_ramp_between_lanes_and_bulk_is_not_judged_but_its_failures_are():
    slow = RampFigures(taken=40, p95_us=900_000)
    assert rollback_reason(ramp(slow, changes_execution=True), POLICY) == ""
    failing = RampFigures(taken=40, failed=12, p95_us=900_000)
    assert rollback_reason(ramp(failing, changes_execution=True), POLICY).startswith("12 of its 40 messages failed")


def test_equally_good_revisions_give_no_reason_for_a_rollback():
    assert rollback_reason(ramp(), POLICY) == ""


@pytest.mark.parametrize(
    ("ramping", "reason"),
    [
        pytest.param(
            RampFigures(taken=40, failed=12),
            "12 of its 40 messages failed at 5 % of the keys; with revision 7, 0 of 1000",
            id="messages fail",
        ),
        pytest.param(
            RampFigures(taken=40, lost=1),
            "1 of its 40 messages were lost at 5 % of the keys; with revision 7, 0 of 1000",
            id="one is lost",
        ),
        pytest.param(
            RampFigures(taken=40, stuck=3),
            "3 of its 40 messages have not reached the route at 5 % of the keys; with revision 7, 0 of 1000",
            id="they wait for something that does not come",
        ),
        pytest.param(
            RampFigures(taken=40, p95_us=900_000),
            "its p95 from ingest to the end of the steps is 900 ms at 5 % of the keys; that of revision 7 is 40 ms",
            id="it is slow",
        ),
    ],
)
def test_worse_ramping_revision_is_rolled_back_with_the_reason(ramping: RampFigures, reason: str):
    assert rollback_reason(ramp(ramping), POLICY) == reason


@pytest.mark.parametrize(
    ("ramping", "stable"),
    [
        pytest.param(
            RampFigures(taken=100, failed=30), RampFigures(taken=1_000, failed=300), id="a destination refuses both"
        ),
        pytest.param(
            RampFigures(taken=100, stuck=9), RampFigures(taken=1_000, stuck=50), id="the lanes are behind for both"
        ),
        pytest.param(RampFigures(taken=100, lost=1), RampFigures(taken=1_000, lost=20), id="both lose"),
        pytest.param(RampFigures(taken=5, failed=2), WELL, id="two bad messages are no verdict"),
        pytest.param(RampFigures(taken=100, p95_us=400_000), WELL, id="half a second more is allowed"),
        pytest.param(RampFigures(taken=3, p95_us=9_000_000), WELL, id="three messages have no percentile"),
        pytest.param(RampFigures(taken=40, filtered=40), WELL, id="what a revision filters is its own affair"),
    ],
)
def test_problems_of_both_revisions_or_of_few_messages_cause_no_rollback(ramping: RampFigures, stable: RampFigures):
    assert rollback_reason(ramp(ramping, stable), POLICY) == ""


def test_bad_revision_is_rolled_back_despite_a_hold_or_a_young_step():
    bad = ramp(RampFigures(taken=10, failed=10), began_at=NOW, held_by="alice")
    assert rollback_reason(bad, POLICY)


@given(st.integers(1, 100_000), st.floats(0, 1), st.integers(1, 100_000))
def test_revision_that_fails_as_often_as_the_stable_one_stays(taken: int, rate: float, of: int):
    stable = RampFigures(taken=of, failed=round(rate * of))
    assert most_failures(taken, stable, POLICY) >= taken * stable.failed / of


@given(st.integers(10, 100_000))
def test_revision_whose_messages_all_fail_never_stays_next_to_one_that_works(taken: int):
    assert taken > most_failures(taken, WELL, POLICY)


@pytest.mark.parametrize(
    ("share", "follows"),
    [
        (1, AdvanceRamp(5)),
        (5, AdvanceRamp(25)),
        (25, AdvanceRamp(50)),
        (50, AdvanceRamp(100)),
        (100, AdvanceRamp(None)),
        (10, AdvanceRamp(25)),
    ],
)
def test_step_that_was_held_long_enough_is_followed_by_the_next(share: int, follows: AdvanceRamp):
    assert next_step(ramp(share=share), POLICY, NOW) == follows


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"held_by": "alice"}, "held at 5 % of the keys by alice", id="a person holds it"),
        pytest.param({"began_at": NOW}, "at 5 % of the keys until 12:00:30 UTC", id="it has just begun"),
        pytest.param(
            {"ramping": RampFigures(taken=3)},
            "at 5 % of the keys until it has processed 20 messages, or until 12:04:30 UTC",
            id="it has taken too little to say anything",
        ),
    ],
)
def test_step_reports_what_it_waits_for(changes: dict[str, Any], reason: str):
    assert next_step(ramp(**changes), POLICY, NOW) == KeepShare(reason)


def test_step_without_enough_messages_continues_when_its_patience_is_over():
    slow = ramp(RampFigures(taken=3), began_at=NOW - POLICY.patience)
    assert next_step(slow, POLICY, NOW) == AdvanceRamp(25)


@pytest.mark.parametrize("text", ["", "1,5", "5,1,100", "0,100", "1,1,100", "1,100,200", "a,100"])
def test_steps_that_do_not_grow_to_100_are_refused(text: str):
    with pytest.raises(ValueError, match=r"PENSTOCK_RAMP_STEPS|invalid literal"):
        ramp_steps(text)


def test_steps_are_parsed_from_text():
    assert ramp_steps("1,5,25,50,100") == POLICY.steps
    assert ramp_steps("100") == (100,)
    assert timedelta(seconds=30) == POLICY.hold


TICK_S, PER_S = 2, 100


def gone_back(bad_from: int) -> tuple[int, int, int] | None:
    """Simulate a ramp at 100 messages a second whose revision fails from one share on.

    Returns the share at which it was rolled back, the seconds that it lasted, and how many messages failed;
    None if it became live.
    """
    share, began, passed = POLICY.steps[0], NOW, 0
    while True:
        ours = round(PER_S * passed * share / 100)
        ramping = RampFigures(taken=ours, failed=ours if share >= bad_from else 0, p95_us=40_000)
        stable = RampFigures(taken=max(PER_S * passed - ours, 1), p95_us=40_000)
        view = ramp(ramping, stable, share=share, began_at=began)
        if rollback_reason(view, POLICY):
            return share, passed, ramping.failed
        follows = next_step(view, POLICY, began + timedelta(seconds=passed))
        if follows == AdvanceRamp(None):
            return None
        if isinstance(follows, AdvanceRamp) and follows.share is not None:
            share, began, passed = follows.share, began + timedelta(seconds=passed), 0
        passed += TICK_S


@pytest.mark.parametrize("share", POLICY.steps)
def test_revision_that_fails_at_a_step_is_rolled_back_in_seconds_and_affects_only_its_share(share: int):
    went = gone_back(bad_from=share)
    assert went is not None
    at, seconds, failed = went
    assert (at, seconds <= 10) == (share, True)
    assert 0 < failed <= PER_S * seconds * share / 100


def test_revision_that_never_fails_becomes_live():
    assert gone_back(bad_from=101) is None
