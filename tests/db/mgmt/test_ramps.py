"""Rows of a ramp: shares only grow, the ramp ends once, and its end names the author."""

from datetime import UTC, datetime, timedelta

import pytest

from mgmt.models import ControlAction, Destination, Pipe, PipeRevision, Ramp, RampStep, User
from mgmt.services import (
    RampCompleteError,
    adopt_live_spec,
    begin_ramp,
    finish_ramp,
    hold_ramp,
    publish_revision,
    raise_share,
    resume_ramp,
    roll_back_ramp,
)
from tests.db.cast import MakeSpec

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
State, Outcome = PipeRevision.State, Ramp.Outcome
NEW = "https://new.example.com/"


@pytest.fixture
def live(pipe: Pipe) -> PipeRevision:
    revision = pipe.revisions.get()
    PipeRevision.objects.filter(id=revision.id).update(state=State.RAMPING)
    adopt_live_spec(revision=revision, now=NOW)
    return revision


@pytest.fixture
def second(pipe: Pipe, live: PipeRevision, alice: User, a_spec: MakeSpec) -> PipeRevision:
    spec = a_spec(crm=NEW)
    return publish_revision(pipe=pipe, spec=spec, based_on=live.number, author=alice)


@pytest.fixture
def ramp(second: PipeRevision) -> Ramp:
    begin_ramp(revision=second, share=1, now=NOW)
    return Ramp.objects.get(revision=second)


def shares(ramp: Ramp) -> list[int]:
    return [step.share for step in RampStep.objects.filter(ramp=ramp)]


def url_of(pipe: Pipe) -> str:
    return str(pipe.destinations.get(name="crm").config["url"])


def test_ramp_begins_while_the_old_revision_stays_live(ramp: Ramp, live: PipeRevision, second: PipeRevision):
    second.refresh_from_db()
    live.refresh_from_db()
    assert (second.state, live.state) == (State.RAMPING, State.LIVE)
    assert (ramp.stable, ramp.share, shares(ramp)) == (live, 1, [1])


def test_beginning_a_ramp_twice_begins_it_once(ramp: Ramp, second: PipeRevision):
    assert not begin_ramp(revision=second, share=1, now=NOW)
    assert shares(ramp) == [1]


def test_first_revision_has_no_ramp(pipe: Pipe):
    assert begin_ramp(revision=pipe.revisions.get(), share=1, now=NOW)
    assert not Ramp.objects.exists()


def test_raised_share_stores_the_steps_figures_and_republishes_the_pipe(ramp: Ramp, pipe: Pipe):
    version = Pipe.objects.get(id=pipe.id).version
    assert raise_share(ramp=ramp, share=5, figures={"ramping": {"taken": 3}}, now=NOW)
    assert Pipe.objects.get(id=pipe.id).version == version + 1
    assert ramp.steps.get(share=1).figures == {"ramping": {"taken": 3}}
    assert shares(ramp) == [1, 5]


@pytest.mark.parametrize("share", [1, 5])
def test_share_never_shrinks_and_is_set_once(ramp: Ramp, share: int):
    raise_share(ramp=ramp, share=5, figures={}, now=NOW)
    assert not raise_share(ramp=ramp, share=share, figures={}, now=NOW)


def test_new_addresses_apply_at_the_last_step_and_are_reverted_by_a_rollback(ramp: Ramp, pipe: Pipe):
    raise_share(ramp=ramp, share=50, figures={}, now=NOW)
    assert url_of(pipe) == "https://crm.example.com/in"
    raise_share(ramp=ramp, share=100, figures={}, now=NOW)
    assert url_of(pipe) == NEW
    ramp.refresh_from_db()
    roll_back_ramp(ramp=ramp, reason="all refused", now=NOW)
    assert url_of(pipe) == "https://crm.example.com/in"


def test_dropped_destination_is_removed_only_when_the_revision_is_live(
    pipe: Pipe, live: PipeRevision, alice: User, a_spec: MakeSpec
):
    second = publish_revision(pipe=pipe, spec=a_spec(audit=NEW), based_on=live.number, author=alice)
    begin_ramp(revision=second, share=100, now=NOW)
    assert pipe.destinations.get(name="crm").state == Destination.State.ACTIVE
    finish_ramp(revision=second, figures={}, now=NOW)
    assert pipe.destinations.get(name="crm").state == Destination.State.REMOVED


def test_destination_that_another_revision_has_removed_meanwhile_is_active_from_the_first_share(
    pipe: Pipe, live: PipeRevision, alice: User, a_spec: MakeSpec
):
    spec = a_spec()
    spec["destinations"]["audit"] = {"url": NEW}
    second = publish_revision(pipe=pipe, spec=spec, based_on=live.number, author=alice)
    pipe.destinations.filter(name="audit").update(state=Destination.State.REMOVED)
    begin_ramp(revision=second, share=1, now=NOW)
    assert pipe.destinations.get(name="audit").state == Destination.State.ACTIVE


def test_successful_ramp_ends_live(ramp: Ramp, second: PipeRevision, live: PipeRevision):
    assert finish_ramp(revision=second, figures={}, now=NOW)
    for row in (ramp, second, live):
        row.refresh_from_db()
    assert (ramp.outcome, second.state, live.state) == (Outcome.LIVE, State.LIVE, State.RETIRED)


def test_rolled_back_ramp_leaves_the_stable_revision_live_and_stores_the_reason(
    ramp: Ramp, second: PipeRevision, live: PipeRevision, bob: User
):
    roll_back_ramp(ramp=ramp, reason="12 of its 40 messages failed", now=NOW, by=bob)
    for row in (ramp, second, live):
        row.refresh_from_db()
    assert (ramp.outcome, ramp.ended_by) == (Outcome.ROLLED_BACK, bob)
    said = "rolled back at 1 % of the keys by bob: 12 of its 40 messages failed"
    assert (second.state, second.state_reason) == (State.FAILED, said)
    assert live.state == State.LIVE


@pytest.mark.parametrize(("minutes", "state"), [(1, Destination.State.ACTIVE), (-1, Destination.State.SUSPENDED)])
def test_rollback_reactivates_a_destination_that_was_suspended_during_the_ramp(
    ramp: Ramp, pipe: Pipe, minutes: int, state: str
):
    pipe.destinations.update(state=Destination.State.SUSPENDED, state_since=NOW + timedelta(minutes=minutes))
    roll_back_ramp(ramp=ramp, reason="bad", now=NOW)
    assert pipe.destinations.get(name="crm").state == state


def test_ramp_ends_once(ramp: Ramp, second: PipeRevision):
    roll_back_ramp(ramp=ramp, reason="bad", now=NOW)
    with pytest.raises(RampCompleteError):
        roll_back_ramp(ramp=ramp, reason="bad", now=NOW)
    assert not raise_share(ramp=ramp, share=5, figures={}, now=NOW)
    assert not finish_ramp(revision=second, figures={}, now=NOW)


def test_held_ramp_neither_advances_nor_becomes_live_until_it_is_resumed(ramp: Ramp, second: PipeRevision, bob: User):
    assert hold_ramp(ramp=ramp, by=bob, now=NOW)
    assert not hold_ramp(ramp=ramp, by=bob, now=NOW)
    assert not raise_share(ramp=ramp, share=5, figures={}, now=NOW)
    assert not finish_ramp(revision=second, figures={}, now=NOW)
    assert resume_ramp(ramp=ramp, by=bob, now=NOW)
    assert raise_share(ramp=ramp, share=5, figures={}, now=NOW)
    assert [row.action for row in ControlAction.objects.filter(author=bob)] == ["hold-ramp", "resume-ramp"]


def test_held_ramp_can_be_rolled_back(ramp: Ramp, bob: User):
    hold_ramp(ramp=ramp, by=bob, now=NOW)
    roll_back_ramp(ramp=ramp, reason="asked", now=NOW, by=bob)
    with pytest.raises(RampCompleteError):
        resume_ramp(ramp=ramp, by=bob, now=NOW)


def test_newer_revision_ends_an_older_ramp(ramp: Ramp, pipe: Pipe, alice: User, a_spec: MakeSpec):
    third = publish_revision(pipe=pipe, spec=a_spec(), based_on=2, author=alice)
    begin_ramp(revision=third, share=1, now=NOW)
    ramp.refresh_from_db()
    ramp.revision.refresh_from_db()
    assert (ramp.outcome, ramp.revision.state) == (Outcome.OVERTAKEN, State.FAILED)
    assert Ramp.objects.get(revision=third).stable.number == 1
