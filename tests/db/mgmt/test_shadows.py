"""Services of shadow runs: start, stop and promote, and what they refuse."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError

from dataplane.spec import SpecError, parse_pipe_spec
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Cell, Pipe, PipeMigration, PipeRevision, Shadow, Tenant, User
from mgmt.services import (
    CredentialNeededError,
    InvalidValue,
    MigrationInProgressError,
    NothingToCompareError,
    PipeClosedError,
    QuotaExceededError,
    RevisionConflictError,
    ShadowInProgressError,
    ShadowRequest,
    UnchangedError,
    check_shadow,
    close_pipe,
    create_pipe,
    promote_shadow,
    publish_revision,
    set_credential,
    start_shadow,
    stop_shadow,
)
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth
from tests.db.replays import publish
from tests.db.shadows import FILTER, NOW, a_draft, a_shadow

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    publish(pipe)
    return pipe


def migrate(pipe: Pipe, *, state: str, **fields: Any) -> None:
    target = Cell.objects.create(id="c2")
    PipeMigration.objects.create(pipe=pipe, source_id="c1", target=target, state=state, asked_at=NOW, **fields)


# -- start


def test_run_stores_the_draft_and_what_it_is_compared_with(live: Pipe):
    row = a_shadow(live, events=500)
    assert row.id.startswith("shadow_")
    assert row.spec["normalize"] == [FILTER]
    assert (row.revision, row.based_on, row.cell_id, row.tenant_id) == (1, 1, "c1", live.tenant_id)
    assert (row.state, row.version, row.most_events, row.until) == ("running", 1, 500, NOW)
    assert live.revisions.count() == 1, "nothing is published"


def test_newest_events_begin_where_the_ledger_has_that_many(live: Pipe):
    truth, minute = Truth(live), bucket_at(NOW)
    truth.fact(minute - 200, "ingest", "sent", list(range(50)), "acked")
    truth.fact(minute - 100, "ingest", "sent", list(range(50, 90)), "acked")
    truth.fact(minute - 10, "ingest", "sent", list(range(90, 100)), "acked")
    start = a_shadow(live, events=30).since
    at = start.timestamp() / 60 - (minute - 100)
    assert at == pytest.approx(0.5), "10 events are newer, and half of the 40 of that minute are wanted"
    assert (NOW - check(live, events=1_000).since) == timedelta(days=7), "there are fewer: all that is retained"


def check(pipe: Pipe, **changes: Any) -> Any:
    Shadow.objects.update(state="done")
    return check_shadow(pipe=pipe, spec=a_draft(pipe), based_on=1, request=ShadowRequest(**changes), now=NOW)


def test_default_is_ten_thousand_events_and_a_range_has_the_maximum(live: Pipe):
    assert check(live).most_events == 10_000
    found = check(live, since=NOW - timedelta(hours=2), until=NOW - timedelta(hours=1))
    assert (found.since, found.until, found.most_events) == (
        NOW - timedelta(hours=2), NOW - timedelta(hours=1), 1_000_000,
    )  # fmt: skip


def test_run_that_follows_live_traffic_begins_now_and_has_no_end(live: Pipe):
    row = a_shadow(live, follow=True)
    assert (row.since, row.until, row.most_events, row.follows) == (NOW, None, 0, True)


def test_events_before_a_migration_are_not_read(live: Pipe):
    switched = NOW - timedelta(hours=3)
    migrate(live, state="done", switched_at=switched)
    assert check(live).since == switched
    with pytest.raises(InvalidValue, match="the pipe was migrated then"):
        check(live, since=switched - timedelta(minutes=1), until=NOW)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"events": 0}, "events"),
        ({"events": 1_000_001}, "events"),
        ({"since": NOW}, "until"),
        ({"until": NOW}, "since"),
        ({"since": NOW, "until": NOW}, "until"),
        ({"since": NOW, "until": NOW + timedelta(hours=1)}, "until"),
        ({"since": NOW - timedelta(days=30), "until": NOW - timedelta(days=20)}, "until"),
        ({"follow": True, "events": 5}, "follow"),
        ({"follow": True, "until": NOW}, "follow"),
    ],
)
def test_request_that_makes_no_sense_names_the_field(live: Pipe, changes: dict[str, Any], field: str):
    with pytest.raises(InvalidValue) as refused:
        a_shadow(live, **changes)
    assert refused.value.field == field
    assert not Shadow.objects.exists()


def test_draft_that_cannot_be_published_is_refused_at_its_field(live: Pipe):
    draft = {**a_draft(live), "normalize": [{"op": "filter", "when": "body.("}]}
    with pytest.raises(SpecError) as refused:
        a_shadow(live, draft=draft)
    assert "normalize" in refused.value.path


def test_draft_that_changes_nothing_is_refused(live: Pipe):
    with pytest.raises(UnchangedError, match="revision 1, which is live"):
        a_shadow(live, draft=live.revisions.get().spec)


def test_draft_of_an_older_revision_is_a_conflict(live: Pipe, alice: User):
    publish_revision(pipe=live, spec=a_draft(live), based_on=1, author=alice)
    with pytest.raises(RevisionConflictError, match="has revision 2"):
        start_shadow(pipe=live, spec=a_draft(live), based_on=1, request=ShadowRequest(), by=alice, now=NOW)


@pytest.mark.parametrize("state", ["requested", "ramping"])
def test_run_waits_for_a_revision_that_is_rolled_out(live: Pipe, alice: User, state: str):
    publish_revision(pipe=live, spec=a_draft(live), based_on=1, author=alice)
    PipeRevision.objects.filter(number=2).update(state=state)
    with pytest.raises(NothingToCompareError, match=f"Revision 2 of orders is {state}"):
        a_shadow(live)


def test_pipe_without_a_live_revision_has_nothing_to_compare_with(live: Pipe):
    PipeRevision.objects.update(state="failed")
    with pytest.raises(NothingToCompareError, match="No revision of this pipe is live"):
        a_shadow(live)


def test_pipe_without_a_cell_has_no_events(pipe: Pipe):
    with pytest.raises(NothingToCompareError, match="not placed on a cell"):
        a_shadow(pipe)


def test_closed_pipe_is_refused(live: Pipe):
    close_pipe(pipe=live)
    with pytest.raises(PipeClosedError):
        a_shadow(live)


@pytest.mark.parametrize("state", ["requested", "draining"])
def test_pipe_that_is_being_migrated_is_refused(live: Pipe, state: str):
    migrate(live, state=state)
    with pytest.raises(MigrationInProgressError):
        a_shadow(live)


def test_tenant_has_one_run_at_a_time(live: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    first = a_shadow(live)
    other = create_pipe(tenant=tenant, name="returns", spec=a_spec(), author=alice)
    publish(other)
    with pytest.raises(ShadowInProgressError, match=f"Shadow run {first.id} of orders is running"):
        a_shadow(other)
    stop_shadow(shadow=first, now=NOW)
    with pytest.raises(ShadowInProgressError, match="is stopping"):
        a_shadow(other)
    Shadow.objects.update(state="stopped")
    assert a_shadow(other).pipe_id == other.id


def test_tenant_starts_a_limited_number_of_runs_a_day(live: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.shadows.services.shadows.MOST_A_DAY", 2)
    for hours in (25, 23, 1):
        a_shadow(live, now=NOW - timedelta(hours=hours))
        Shadow.objects.update(state="stopped")
    with pytest.raises(QuotaExceededError, match="2 shadow runs within 24 hours"):
        a_shadow(live)
    assert a_shadow(live, now=NOW + timedelta(hours=2))


def test_constraint_refuses_a_second_run_that_no_check_saw(live: Pipe, monkeypatch: pytest.MonkeyPatch):
    row = a_shadow(live)
    monkeypatch.setattr("mgmt.shadows.services.shadows.shadow_under_way", lambda _tenant: None)
    with pytest.raises(ShadowInProgressError, match="just been started"):
        a_shadow(live)
    assert Shadow.objects.get() == row
    copy = Shadow.objects.get()
    copy.pk = "shadow_2"
    with pytest.raises(IntegrityError, match="one_shadow_under_way_per_tenant"):
        copy.save(force_insert=True)


# -- stop


def test_stop_is_published_once(live: Pipe):
    row = a_shadow(live)
    assert stop_shadow(shadow=row, now=NOW)
    assert (row.state, row.version, row.state_since) == ("stopping", 2, NOW)
    assert not stop_shadow(shadow=row, now=NOW + timedelta(minutes=1))
    assert (row.version, row.state_since) == (2, NOW)


# -- promote


def test_promotion_publishes_the_draft_and_stops_the_run(live: Pipe, alice: User):
    row = a_shadow(live, follow=True)
    revision = promote_shadow(shadow=row, author=alice, now=NOW)
    row.refresh_from_db()
    assert (revision.number, revision.state, revision.at_once) == (2, "requested", False)
    assert parse_pipe_spec(revision.spec) == parse_pipe_spec(row.spec)
    assert revision.author == alice
    assert (row.state, row.promoted) == ("stopping", 2)


def test_finished_run_is_promoted_and_stays_as_it_is(live: Pipe, alice: User):
    row = a_shadow(live)
    Shadow.objects.update(state="done", finished_at=NOW)
    promote_shadow(shadow=row, author=alice, now=NOW)
    row.refresh_from_db()
    assert (row.state, row.promoted, row.version) == ("done", 2, 1)


def test_draft_is_not_promoted_over_a_revision_that_it_was_not_compared_with(live: Pipe, alice: User):
    row = a_shadow(live)
    other = {**a_draft(live), "normalize": [{"op": "filter", "when": "body.total > 1"}]}
    publish_revision(pipe=live, spec=other, based_on=1, author=alice)
    with pytest.raises(RevisionConflictError) as refused:
        promote_shadow(shadow=row, author=alice, now=NOW)
    assert str(refused.value) == (
        "Revision 2 of orders was published after this run began, which compared the draft with revision 1. Apply your "
        "change to revision 2, and rehearse it again."
    )
    assert live.revisions.count() == 2
    row.refresh_from_db()
    assert (row.state, row.promoted) == ("running", None)


def test_second_click_on_promote_is_a_conflict(live: Pipe, alice: User):
    row = a_shadow(live)
    promote_shadow(shadow=row, author=alice, now=NOW)
    with pytest.raises(RevisionConflictError):
        promote_shadow(shadow=row, author=alice, now=NOW)
    assert live.revisions.count() == 2


def test_draft_based_on_a_failed_revision_is_promoted_after_it(live: Pipe, alice: User):
    publish_revision(pipe=live, spec=a_draft(live), based_on=1, author=alice)
    PipeRevision.objects.filter(number=2).update(state="failed")
    other = {**a_draft(live), "normalize": [{"op": "filter", "when": "body.total > 1"}]}
    row = a_shadow(live, draft=other)
    assert (row.revision, row.based_on) == (1, 2)
    assert promote_shadow(shadow=row, author=alice, now=NOW).number == 3


def test_promotion_to_a_new_address_needs_the_credential_and_changes_nothing(live: Pipe, alice: User):
    to = {"type": "http", "url": "https://crm.example.com/in", "auth": {"type": "bearer"}}
    publish_revision(pipe=live, spec={"sources": {"shop": {}}, "destinations": {"crm": to}}, based_on=1, author=alice)
    publish(live)
    set_credential(destination=live.destinations.get(), credential={"value": "abc"})
    moved = {"sources": {"shop": {}}, "destinations": {"crm": to | {"url": "https://other.example.com/in"}}}
    row = a_shadow(live, draft=moved)
    with pytest.raises(CredentialNeededError):
        promote_shadow(shadow=row, author=alice, now=NOW)
    row.refresh_from_db()
    assert (row.state, row.promoted, live.revisions.count()) == ("running", None, 2)
