"""When a ramp goes on, stays and goes back, from the figures of its two revisions alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.provisioner.ramping import On, RampView, Stay, most_failures, next_step, why_back
from mgmt.provisioning.ramps import RampPolicy, ramp_steps
from mgmt.queries.ramps import Figures

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POLICY = RampPolicy()
WELL = Figures(taken=1_000, p95_us=40_000)


def ramp(ramping: Figures = WELL, stable: Figures = WELL, **changes: Any) -> RampView:
    fields: dict[str, Any] = {
        "revision": 8,
        "stable_number": 7,
        "share": 5,
        "began_at": NOW - POLICY.hold,
        "held_by": "",
    }
    return RampView(ramping=ramping, stable=stable, **fields | changes)


def test_two_that_do_equally_well_give_no_reason_to_go_back():
    assert why_back(ramp(), POLICY) == ""


@pytest.mark.parametrize(
    ("ramping", "reason"),
    [
        pytest.param(
            Figures(taken=40, failed=12),
            "12 of its 40 messages failed at 5 % of the keys; of revision 7 0 of 1000 did",
            id="messages fail",
        ),
        pytest.param(
            Figures(taken=40, lost=1),
            "1 of its 40 messages were lost at 5 % of the keys; of revision 7 0 of 1000 were",
            id="one is lost",
        ),
        pytest.param(
            Figures(taken=40, stuck=3),
            "3 of its 40 messages wait before the route at 5 % of the keys; of revision 7 0 of 1000 do",
            id="they wait for something that does not come",
        ),
        pytest.param(
            Figures(taken=40, p95_us=900_000),
            "its p95 from ingest through the steps is 900 ms at 5 % of the keys; that of revision 7 is 40 ms",
            id="it is slow",
        ),
    ],
)
def test_what_is_worse_in_the_ramping_revision_takes_it_back_and_says_so(ramping: Figures, reason: str):
    assert why_back(ramp(ramping), POLICY) == reason


@pytest.mark.parametrize(
    ("ramping", "stable"),
    [
        pytest.param(Figures(taken=100, failed=30), Figures(taken=1_000, failed=300), id="a destination refuses both"),
        pytest.param(Figures(taken=100, stuck=9), Figures(taken=1_000, stuck=50), id="the lanes are behind for both"),
        pytest.param(Figures(taken=100, lost=1), Figures(taken=1_000, lost=20), id="both lose"),
        pytest.param(Figures(taken=5, failed=2), WELL, id="two bad messages are no verdict"),
        pytest.param(Figures(taken=100, p95_us=400_000), WELL, id="half a second more is allowed"),
        pytest.param(Figures(taken=3, p95_us=9_000_000), WELL, id="three messages have no percentile"),
        pytest.param(Figures(taken=40, filtered=40), WELL, id="what a revision filters is its own affair"),
    ],
)
def test_what_meets_both_or_says_little_takes_nothing_back(ramping: Figures, stable: Figures):
    assert why_back(ramp(ramping, stable), POLICY) == ""


def test_neither_a_hold_nor_a_young_step_keeps_a_bad_revision():
    bad = ramp(Figures(taken=10, failed=10), began_at=NOW, held_by="alice")
    assert why_back(bad, POLICY)


@given(st.integers(1, 100_000), st.floats(0, 1), st.integers(1, 100_000))
def test_a_revision_that_fails_as_often_as_the_stable_one_stays(taken: int, rate: float, of: int):
    stable = Figures(taken=of, failed=round(rate * of))
    assert most_failures(taken, stable, POLICY) >= taken * stable.failed / of


@given(st.integers(10, 100_000))
def test_a_revision_of_which_everything_fails_never_stays_beside_one_that_works(taken: int):
    assert taken > most_failures(taken, WELL, POLICY)


@pytest.mark.parametrize(
    ("share", "follows"),
    [(1, On(5)), (5, On(25)), (25, On(50)), (50, On(100)), (100, On(None)), (10, On(25))],
)
def test_a_step_that_was_held_long_enough_is_followed_by_the_next(share: int, follows: On):
    assert next_step(ramp(share=share), POLICY, NOW) == follows


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"held_by": "alice"}, "held at 5 % of the keys by alice", id="a person holds it"),
        pytest.param({"began_at": NOW}, "at 5 % of the keys until 12:00:30 UTC", id="it has just begun"),
        pytest.param(
            {"ramping": Figures(taken=3)},
            "at 5 % of the keys, until it has taken 20 messages; at the latest until 12:04:30 UTC",
            id="it has taken too little to say anything",
        ),
    ],
)
def test_what_a_step_waits_for_is_said_in_words(changes: dict[str, Any], reason: str):
    assert next_step(ramp(**changes), POLICY, NOW) == Stay(reason)


def test_a_step_without_enough_messages_goes_on_when_its_patience_is_over():
    slow = ramp(Figures(taken=3), began_at=NOW - POLICY.patience)
    assert next_step(slow, POLICY, NOW) == On(25)


@pytest.mark.parametrize("text", ["", "1,5", "5,1,100", "0,100", "1,1,100", "1,100,200", "a,100"])
def test_steps_that_do_not_grow_to_the_whole_are_refused(text: str):
    with pytest.raises(ValueError, match=r"PENSTOCK_RAMP_STEPS|invalid literal"):
        ramp_steps(text)


def test_steps_are_read_from_text():
    assert ramp_steps("1,5,25,50,100") == POLICY.steps
    assert ramp_steps("100") == (100,)
    assert timedelta(seconds=30) == POLICY.hold


TICK_S, PER_S = 2, 100


def gone_back(bad_from: int) -> tuple[int, int, int] | None:
    """A ramp at 100 messages a second whose revision fails from one share on.

    Returns the share at which it went back, the seconds that this share had lasted, and how many messages had failed;
    None if it went live.
    """
    share, began, passed = POLICY.steps[0], NOW, 0
    while True:
        ours = round(PER_S * passed * share / 100)
        ramping = Figures(taken=ours, failed=ours if share >= bad_from else 0, p95_us=40_000)
        stable = Figures(taken=max(PER_S * passed - ours, 1), p95_us=40_000)
        view = ramp(ramping, stable, share=share, began_at=began)
        if why_back(view, POLICY):
            return share, passed, ramping.failed
        follows = next_step(view, POLICY, began + timedelta(seconds=passed))
        if follows == On(None):
            return None
        if isinstance(follows, On) and follows.share is not None:
            share, began, passed = follows.share, began + timedelta(seconds=passed), 0
        passed += TICK_S


@pytest.mark.parametrize("share", POLICY.steps)
def test_a_revision_that_turns_bad_at_a_step_goes_back_within_seconds_and_touched_its_share_alone(share: int):
    went = gone_back(bad_from=share)
    assert went is not None
    at, seconds, failed = went
    assert (at, seconds <= 10) == (share, True)
    assert 0 < failed <= PER_S * seconds * share / 100


def test_a_revision_that_never_turns_bad_goes_live():
    assert gone_back(bad_from=101) is None
