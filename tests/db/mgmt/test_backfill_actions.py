"""Cancel and retry of a backfill without a replay, also at the same time as the control plane starts it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from rest_framework.test import APIClient

from mgmt.cells.services.pipe_migrations import switch_pipe, why_busy
from mgmt.errors import BackfillStartedError, MigrationInProgressError, NothingToReplayError, PipeClosedError
from mgmt.models import AuditEntry, Backfill, Cell, Membership, Pipe, PipeMigration, Replay, Tenant, User
from mgmt.replays.services import backfills
from mgmt.services import (
    abort_replay,
    add_member,
    cancel_backfill,
    close_pipe,
    create_pipe,
    pause_destination,
    request_migration,
    retry_backfill,
    start_backfills,
    start_replay,
)
from tests.db.backfills import NOW, new_destinations, wait_until_blocked
from tests.db.cast import MakeClient, MakeSpec
from tests.db.mgmt.test_backfills import NextRevision, done, live, next_revision, started
from tests.db.replays import a_replay

pytestmark = pytest.mark.django_db
__all__ = ["live", "next_revision"]  # fixtures
Run = Callable[..., Future[Any]]


@pytest.fixture
def feed(pipe: Pipe) -> Backfill:
    """The backfill of the new destination feed, which waits."""
    return new_destinations(pipe, "feed")[0]


@pytest.fixture
def run() -> Iterator[Run]:
    """Run a function in another thread, with a database connection of its own."""
    with ThreadPoolExecutor(2) as pool:

        def start(function: Callable[..., Any], **kwargs: Any) -> Future[Any]:
            def apart() -> Any:
                try:
                    return function(**kwargs)
                finally:
                    connection.close()

            return pool.submit(apart)

        yield start


def other_replay(pipe: Pipe) -> Replay:
    """Start a replay of the tenant for which its backfills wait."""
    return a_replay(pipe, destinations=["crm"])


# -- cancel


def test_cancelled_backfill_is_never_started(feed: Backfill, alice: User):
    assert cancel_backfill(backfill=feed, by=alice, now=NOW)
    assert (feed.state, feed.ended_at, feed.reason) == ("cancelled", NOW, "")
    assert start_backfills(now=NOW) == 0
    assert not Replay.objects.exists()


def test_waiting_backfill_with_a_reason_is_cancelled_without_it(pipe: Pipe, feed: Backfill, alice: User):
    other_replay(pipe)
    assert start_backfills(now=NOW) == 0
    feed.refresh_from_db()
    assert feed.reason.startswith("Replay ")
    assert cancel_backfill(backfill=feed, by=alice, now=NOW)
    assert start_backfills(now=NOW) == 0
    feed.refresh_from_db()
    assert (feed.state, feed.reason) == ("cancelled", "")


def test_second_cancel_changes_nothing(feed: Backfill, alice: User):
    stale = Backfill.objects.get()
    assert cancel_backfill(backfill=feed, by=alice, now=NOW)
    assert not cancel_backfill(backfill=stale, by=alice, now=NOW)
    assert stale.state == "cancelled"
    assert AuditEntry.objects.filter(action="backfill.cancelled").count() == 1


def test_backfill_that_was_not_started_keeps_its_reason_when_it_is_cancelled(pipe: Pipe, feed: Backfill, alice: User):
    close_pipe(pipe=pipe)
    assert start_backfills(now=NOW) == 1
    assert not cancel_backfill(backfill=feed, by=alice, now=NOW)
    assert (feed.state, feed.reason.startswith("orders is closed")) == ("not started", True)


@pytest.mark.parametrize("action", [cancel_backfill, retry_backfill])
@pytest.mark.parametrize(
    ("state", "next_step"),
    [("running", "Pause, resume or abort the replay instead."), ("done", "Repeat what failed in it")],
)
def test_backfill_with_a_replay_is_refused_with_its_replay_and_the_next_step(
    feed: Backfill, alice: User, action: Callable[..., bool], state: str, next_step: str
):
    replay = started()
    Replay.objects.filter(id=replay.id).update(state=state)
    with pytest.raises(BackfillStartedError) as refused:
        action(backfill=feed, by=alice, now=NOW)
    assert f"replay {replay.id}, which is {state}. {next_step}" in str(refused.value)
    assert not AuditEntry.objects.filter(action__startswith="backfill.").exists()


# -- retry


def test_cancelled_backfill_is_started_after_a_retry(feed: Backfill, alice: User):
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    assert retry_backfill(backfill=feed, by=alice, now=NOW)
    assert (feed.state, feed.ended_at) == ("waiting", None)
    assert started().revisions == [1]
    feed.refresh_from_db()
    assert feed.state == "running"


def test_backfill_of_a_closed_pipe_is_started_after_the_pipe_is_open_again(pipe: Pipe, feed: Backfill, alice: User):
    close_pipe(pipe=pipe)
    assert start_backfills(now=NOW) == 1
    pipe.refresh_from_db()
    with pytest.raises(PipeClosedError):
        retry_backfill(backfill=feed, by=alice, now=NOW)
    row = Backfill.objects.get()
    assert (row.state, row.reason.startswith("orders is closed")) == ("not started", True)
    Pipe.objects.filter(id=pipe.id).update(state="active")
    assert retry_backfill(backfill=row, by=alice, now=NOW)
    started()


def test_retry_is_refused_while_there_is_nothing_to_replay(next_revision: NextRevision, alice: User):
    next_revision(feed={"type": "topic", "from": "earliest"})
    next_revision()
    assert start_backfills(now=NOW) == 1
    row = Backfill.objects.get()
    with pytest.raises(NothingToReplayError, match="has no destination feed"):
        retry_backfill(backfill=row, by=alice, now=NOW)
    assert Backfill.objects.get().state == "not started"
    next_revision(feed={"type": "topic"})
    assert retry_backfill(backfill=row, by=alice, now=NOW)
    assert started().revisions == [1]


def test_retry_waits_for_a_paused_destination_and_another_replay(pipe: Pipe, feed: Backfill, alice: User):
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    other_replay(pipe)
    pause_destination(destination=pipe.destinations.get(name="feed"), by=alice)
    assert retry_backfill(backfill=feed, by=alice, now=NOW)
    assert start_backfills(now=NOW) == 0
    feed.refresh_from_db()
    assert (feed.state, feed.reason) == ("waiting", "The destination is paused.")


def test_requested_migration_waits_for_a_backfill_which_starts_meanwhile(pipe: Pipe, feed: Backfill, alice: User):
    row = request_migration(pipe=pipe, target=Cell.objects.create(id="c2"), reason="full", by=alice, now=NOW)
    assert not switch_pipe(migration=row, now=NOW)
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    assert retry_backfill(backfill=feed, by=alice, now=NOW)
    assert started().destinations == ["feed"]
    assert "a replay" in why_busy(pipe)
    with pytest.raises(MigrationInProgressError):
        a_replay(pipe, destinations=["crm"])


def test_retry_is_refused_after_the_switch_of_a_migration(pipe: Pipe, feed: Backfill, alice: User):
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    row = request_migration(pipe=pipe, target=Cell.objects.create(id="c2"), reason="full", by=alice, now=NOW)
    PipeMigration.objects.filter(id=row.id).update(state="draining", switched_at=NOW - timedelta(hours=1))
    with pytest.raises(MigrationInProgressError):
        retry_backfill(backfill=feed, by=alice, now=NOW)
    assert Backfill.objects.get().state == "cancelled"


def test_retry_of_a_waiting_backfill_changes_nothing(feed: Backfill, alice: User):
    assert not retry_backfill(backfill=feed, by=alice, now=NOW)
    assert feed.state == "waiting"
    assert not AuditEntry.objects.filter(action__startswith="backfill.").exists()


def test_entries_name_the_destination_and_the_states(pipe: Pipe, feed: Backfill, alice: User):
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    retry_backfill(backfill=feed, by=alice, now=NOW)
    rows = AuditEntry.objects.filter(action__startswith="backfill.").order_by("at", "id")
    assert [(row.action, row.before, row.after) for row in rows] == [
        ("backfill.cancelled", {"state": "waiting"}, {"state": "cancelled"}),
        ("backfill.retried", {"state": "cancelled"}, {"state": "waiting"}),
    ]
    assert {(row.target_kind, row.target_id, row.target_name, row.user, row.pipe) for row in rows} == {
        ("backfill", feed.id, "feed", alice, pipe)
    }


# -- later revisions


def test_later_revision_with_the_same_from_does_not_bring_a_cancelled_backfill_back(
    next_revision: NextRevision, alice: User
):
    feed = {"type": "topic", "from": "earliest"}
    next_revision(feed=feed)
    cancel_backfill(backfill=Backfill.objects.get(), by=alice, now=NOW)
    next_revision(feed=feed, other={"type": "topic"})
    assert Backfill.objects.count() == 1
    assert start_backfills(now=NOW) == 0


def test_destination_that_comes_back_gets_what_a_cancelled_backfill_has_not_sent(
    next_revision: NextRevision, alice: User
):
    feed = {"type": "topic", "from": "earliest"}
    next_revision(feed=feed)
    cancelled = Backfill.objects.get()
    cancel_backfill(backfill=cancelled, by=alice, now=NOW)
    next_revision()
    next_revision(feed=feed)
    replay = started()
    assert replay.revisions == [1, 3]
    done(replay)
    with pytest.raises(NothingToReplayError) as refused:
        retry_backfill(backfill=cancelled, by=alice, now=NOW)
    assert str(refused.value) == "feed has all events accepted since then."


def test_retry_is_refused_if_the_destination_has_all_events_of_the_pipes_new_cell(
    pipe: Pipe, feed: Backfill, alice: User
):
    """The pipe was migrated since: events of the revisions before are in its former cell."""
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    source = Cell.objects.create(id="c2")
    PipeMigration.objects.create(pipe=pipe, source=source, target_id="c1", state="done", switched_at=NOW, asked_at=NOW)
    later = NOW + timedelta(hours=1)
    with pytest.raises(NothingToReplayError) as refused:
        retry_backfill(backfill=feed, by=alice, now=later)
    assert str(refused.value) == f"feed gets all events accepted since {NOW:%Y-%m-%d %H:%M} UTC without a backfill."
    assert Backfill.objects.get().state == "cancelled"


def test_events_until_the_ingest_replicas_have_the_revision_are_sent_after_a_retry(
    pipe: Pipe, feed: Backfill, alice: User
):
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    Backfill.objects.update(beginning=(NOW - timedelta(seconds=1)).isoformat())
    assert retry_backfill(backfill=feed, by=alice, now=NOW + timedelta(hours=1))
    assert started(NOW + timedelta(hours=1)).since == NOW - timedelta(seconds=1)


# -- at the same time as the control plane


@pytest.mark.django_db(transaction=True)
def test_cancel_while_the_replay_is_created_is_refused(
    feed: Backfill, alice: User, run: Run, monkeypatch: pytest.MonkeyPatch
):
    is_created, may_commit = Event(), Event()

    def start_and_wait(**kwargs: Any) -> Replay:
        replay = start_replay(**kwargs)
        is_created.set()
        assert may_commit.wait(20)
        return replay

    monkeypatch.setattr(backfills, "start_replay", start_and_wait)
    starts = run(start_backfills, now=NOW)
    assert is_created.wait(20)
    cancels = run(cancel_backfill, backfill=feed, by=alice, now=NOW)
    try:
        wait_until_blocked()
    finally:
        may_commit.set()
    assert starts.result(20) == 1
    with pytest.raises(BackfillStartedError, match="which is running"):
        cancels.result(20)
    row = Backfill.objects.get()
    assert (row.state, row.ended_at) == ("running", None)


@pytest.mark.django_db(transaction=True)
def test_control_plane_starts_no_replay_during_or_after_a_cancel(feed: Backfill, alice: User, run: Run):
    with transaction.atomic():
        assert cancel_backfill(backfill=feed, by=alice, now=NOW)
        assert run(start_backfills, now=NOW).result(20) == 0
    assert start_backfills(now=NOW) == 0
    assert (Backfill.objects.get().state, Replay.objects.count()) == ("cancelled", 0)


@pytest.mark.django_db(transaction=True)
def test_reason_of_the_control_plane_is_not_written_to_a_backfill_cancelled_meanwhile(
    pipe: Pipe, alice: User, run: Run
):
    first, second = new_destinations(pipe, "first", "second")
    other_replay(pipe)
    with transaction.atomic():
        assert cancel_backfill(backfill=second, by=alice, now=NOW)
        starts = run(start_backfills, now=NOW)
        wait_until_blocked()
    assert starts.result(20) == 0
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.reason.startswith("Replay ")
    assert (second.state, second.reason) == ("cancelled", "")


@pytest.mark.django_db(transaction=True)
def test_one_of_two_cancels_at_once_changes_the_backfill(feed: Backfill, alice: User, run: Run):
    both = [run(cancel_backfill, backfill=Backfill.objects.get(), by=alice, now=NOW) for _ in range(2)]
    assert sorted(one.result(20) for one in both) == [False, True]
    assert AuditEntry.objects.filter(action="backfill.cancelled").count() == 1


# -- API


@pytest.fixture
def operator(tenant: Tenant, client_of: MakeClient) -> APIClient:
    user = User.objects.create_user("otto")
    add_member(tenant=tenant, user=user, role=Membership.Role.OPERATOR)
    return client_of(user)


def test_operator_cancels_and_retries_it_through_the_api(pipe: Pipe, feed: Backfill, operator: APIClient):
    base = f"/api/v1/pipes/{pipe.id}/backfills/"
    (listed,) = operator.get(base).json()["results"]
    one = f"{base}{listed['id']}/"
    assert operator.get(one).json() == listed
    for action, state in (("cancel", "cancelled"), ("cancel", "cancelled"), ("retry", "waiting"), ("retry", "waiting")):
        answer = operator.post(f"{one}{action}/")
        assert (answer.status_code, answer.json()) == (200, listed | {"state": state})
        assert operator.get(one).json()["state"] == state


def test_api_refuses_to_cancel_or_retry_a_backfill_with_a_replay(pipe: Pipe, feed: Backfill, operator: APIClient):
    replay = started()
    one = f"/api/v1/pipes/{pipe.id}/backfills/{feed.id}/"
    for action in ("cancel", "retry"):
        answer = operator.post(f"{one}{action}/")
        assert (answer.status_code, answer.json()["code"]) == (409, "backfill-started")
        assert answer.json()["detail"] == (
            f"The backfill of feed has replay {replay.id}, which is running. Pause, resume or abort the replay instead."
        )
    assert operator.get(one).json()["replay"] == replay.id
    assert abort_replay(replay=replay, now=NOW)


def test_api_names_why_a_retry_would_not_start(pipe: Pipe, feed: Backfill, alice: User, operator: APIClient):
    cancel_backfill(backfill=feed, by=alice, now=NOW)
    close_pipe(pipe=pipe)
    answer = operator.post(f"/api/v1/pipes/{pipe.id}/backfills/{feed.id}/retry/")
    assert (answer.status_code, answer.json()["code"]) == (409, "pipe-closed")


def test_backfill_of_another_pipe_or_tenant_is_not_found(
    pipe: Pipe, feed: Backfill, alice: User, charlie: User, client_of: MakeClient, a_spec: MakeSpec
):
    other = create_pipe(tenant=pipe.tenant, name="other", spec=a_spec(), author=alice)
    for client, pipe_id in ((client_of(charlie), pipe.id), (client_of(alice), other.id)):
        one = f"/api/v1/pipes/{pipe_id}/backfills/{feed.id}/"
        assert client.get(one).status_code == 404
        assert [client.post(f"{one}{action}/").status_code for action in ("cancel", "retry")] == [404, 404]
    feed.refresh_from_db()
    assert feed.state == "waiting"
