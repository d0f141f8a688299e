"""Operational events: which changes of a tenant's pipes make one, who receives it, and who may ask for it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dataplane.spec import SpecError
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.deliveries.services.destinations import change_destination_state
from mgmt.models import Alert, Destination, OperationalEvent, Pipe, PipeRevision, Ramp, Tenant, User
from mgmt.operational_events.services import MOST_PIPES, emit_event
from mgmt.operational_events.types import OPERATIONAL_TYPES
from mgmt.pipes.services.pipes import end_pause
from mgmt.services import (
    QuotaExceededError,
    adopt_live_spec,
    begin_ramp,
    close_pipe,
    create_pipe,
    pause_destination,
    pause_pipe,
    publish_revision,
    reopen_pipe,
    resolve_alert,
    resume_destination,
    roll_back_ramp,
)
from mgmt.tenancy.models import Grant
from tests.db.cast import MakeClient, MakeSpec

NOW = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)


def receiving(spec: dict[str, Any], *events: str, name: str = "events") -> dict[str, Any]:
    """Return the spec with a source of type penstock."""
    source = {"type": "penstock", **({"events": list(events)} if events else {})}
    return spec | {"sources": spec["sources"] | {name: source}}


@pytest.fixture
def siem(pipe: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec) -> Pipe:
    """Pipe that receives the events of Alice's tenant, also those about `pipe`, which was created before."""
    return create_pipe(tenant=tenant, name="siem", spec=receiving(a_spec()), author=alice)


def stored() -> list[tuple[str, dict[str, Any]]]:
    """Return type and data of the stored events, in order."""
    return list(OperationalEvent.objects.order_by("at", "id").values_list("type", "data"))


def fail(pipe: Pipe) -> Alert:
    """Open an alert about the pipe's destination."""
    sample = {"message_id": "m1", "reason": "secret-of-a-message", "status": 400}
    note_failures(failures=[FailureGroup(pipe.id, "crm", "rejected", 2, NOW, sample, status=400)], now=NOW)
    return Alert.objects.get(pipe=pipe)


def test_states_of_a_pipe_make_events(siem: Pipe, pipe: Pipe, alice: User):
    pause_pipe(pipe=pipe, by=alice)
    end_pause(pipe=pipe, by=alice)
    close_pipe(pipe=pipe, by=alice)
    reopen_pipe(pipe=pipe, by=alice)
    assert stored() == [
        ("penstock.pipe.paused", {"state": "paused"}),
        ("penstock.pipe.resumed", {"state": "active"}),
        ("penstock.pipe.closed", {"state": "closed"}),
        ("penstock.pipe.reopened", {"state": "active"}),
    ]
    row = OperationalEvent.objects.earliest("at")
    assert (row.tenant_id, row.pipe_id, row.pipe_name) == (pipe.tenant_id, pipe.id, "orders")


def test_request_of_an_editor_stores_the_event_in_the_row_scope_of_the_tenant(
    siem: Pipe, pipe: Pipe, bob: User, client_of: MakeClient
):
    assert client_of(bob).post(f"/api/v1/pipes/{pipe.id}/pause/").status_code == 200
    assert stored() == [("penstock.pipe.paused", {"state": "paused"})]


def test_states_of_a_destination_make_events_with_the_cause(siem: Pipe, pipe: Pipe, alice: User):
    row = pipe.destinations.get()
    pause_destination(destination=row, by=alice)
    resume_destination(destination=row, by=alice)
    states = Destination.State
    change_destination_state(
        row=row, was=[states.ACTIVE], becomes=states.SUSPENDED, cause="gone", reason="returned 410"
    )
    assert stored() == [
        ("penstock.destination.paused", {"destination": "crm", "state": "paused"}),
        ("penstock.destination.resumed", {"destination": "crm", "state": "active"}),
        (
            "penstock.destination.suspended",
            {"destination": "crm", "state": "suspended", "cause": "gone", "reason": "returned 410"},
        ),
    ]


def test_steps_of_a_revision_make_events(siem: Pipe, pipe: Pipe, alice: User, a_spec: MakeSpec):
    first = pipe.revisions.get()
    PipeRevision.objects.filter(id=first.id).update(state=PipeRevision.State.RAMPING)
    adopt_live_spec(revision=first, now=NOW)
    adopt_live_spec(revision=first, now=NOW)
    second = publish_revision(pipe=pipe, spec=a_spec(crm="https://new.example.com/"), based_on=1, author=alice)
    begin_ramp(revision=second, share=5, now=NOW)
    roll_back_ramp(ramp=Ramp.objects.get(revision=second), reason="more failures", now=NOW)
    assert stored() == [
        ("penstock.revision.live", {"revision": 1}),
        ("penstock.revision.published", {"revision": 2}),
        ("penstock.revision.rolled_back", {"revision": 2, "share": 5, "reason": "more failures"}),
    ]


def test_alert_makes_an_event_when_it_opens_and_when_it_is_resolved(siem: Pipe, pipe: Pipe, alice: User):
    alert = fail(pipe)
    assert fail(pipe) == alert
    resolve_alert(alert=alert, now=NOW, by=alice)
    resolve_alert(alert=alert, now=NOW, by=alice)
    (opened, first), (resolved, last) = stored()
    assert (opened, resolved) == ("penstock.alert.opened", "penstock.alert.resolved")
    assert first.items() >= {"alert": alert.id, "destination": "crm", "status": 400, "count": 2}.items()
    assert last.items() >= {"count": 4, "resolved_at": NOW.isoformat(), "resolution": "resolved by alice"}.items()
    assert first["url"].endswith(reverse("console:alert", args=[pipe.id, alert.id]))
    assert "secret-of-a-message" not in f"{first}{last}"


def test_created_pipe_makes_an_event(siem: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    made = create_pipe(tenant=tenant, name="later", spec=a_spec(), author=alice)
    assert list(OperationalEvent.objects.values_list("type", "pipe")) == [("penstock.pipe.created", made.id)]


def test_data_has_only_fields_that_the_reference_lists(siem: Pipe, pipe: Pipe):
    fail(pipe)
    pause_pipe(pipe=pipe)
    for type_, data in stored():
        assert data.keys() <= set(OPERATIONAL_TYPES[type_].fields)


def test_tenant_without_a_receiving_pipe_stores_nothing(pipe: Pipe, alice: User):
    pause_pipe(pipe=pipe, by=alice)
    fail(pipe)
    assert stored() == []


def test_pipe_that_alone_receives_events_makes_none_about_itself(siem: Pipe, alice: User):
    pause_pipe(pipe=siem, by=alice)
    fail(siem)
    assert stored() == []


def test_closed_pipe_receives_nothing(siem: Pipe, pipe: Pipe, alice: User):
    close_pipe(pipe=siem, by=alice)
    OperationalEvent.objects.all().delete()
    pause_pipe(pipe=pipe, by=alice)
    assert stored() == []


def test_revision_without_the_source_ends_the_events(siem: Pipe, pipe: Pipe, alice: User, a_spec: MakeSpec):
    publish_revision(pipe=siem, spec=a_spec(), based_on=1, author=alice)
    pause_pipe(pipe=pipe, by=alice)
    assert len(stored()) == 1, "revision 1 may still take events"
    siem.revisions.filter(number=1).update(state=PipeRevision.State.RETIRED)
    end_pause(pipe=pipe, by=alice)
    assert len(stored()) == 1


def test_events_of_another_tenant_are_not_stored_for_this_one(siem: Pipe, charlie: User, a_spec: MakeSpec):
    theirs = create_pipe(tenant=charlie.memberships.get().tenant, name="theirs", spec=a_spec(), author=charlie)
    pause_pipe(pipe=theirs, by=charlie)
    fail(theirs)
    assert stored() == []


def test_event_is_part_of_the_transaction_of_its_change(siem: Pipe, pipe: Pipe, alice: User):
    with transaction.atomic():
        pause_pipe(pipe=pipe, by=alice)
        assert len(stored()) == 1
        transaction.set_rollback(True)
    assert stored() == []


@pytest.mark.django_db(transaction=True)
def test_event_outside_of_a_transaction_is_refused(pipe: Pipe):
    with pytest.raises(TransactionManagementError):
        emit_event(type_="penstock.pipe.paused", pipe=pipe, data={})


def test_change_costs_one_more_query_if_nobody_receives_it(pipe: Pipe):
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        assert emit_event(type_="penstock.pipe.paused", pipe=pipe, data={}) is None
    assert len([one for one in queries if one["sql"].startswith("SELECT")]) == 1
    assert not [one for one in queries if one["sql"].startswith("INSERT")]


# -- specs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "path"),
    [
        (["penstock.alert.opend"], "$.sources.events.events[0]"),
        (["penstock.*", "penstock.member.*"], "$.sources.events.events[1]"),
    ],
)
def test_pattern_without_a_type_is_refused(tenant: Tenant, alice: User, a_spec: MakeSpec, events: list[str], path: str):
    with pytest.raises(SpecError) as refused:
        create_pipe(tenant=tenant, name="siem", spec=receiving(a_spec(), *events), author=alice)
    assert refused.value.path == path


def test_pipe_has_one_source_of_events(tenant: Tenant, alice: User, a_spec: MakeSpec):
    spec = receiving(receiving(a_spec()), name="more")
    with pytest.raises(SpecError, match="at most one") as refused:
        create_pipe(tenant=tenant, name="siem", spec=spec, author=alice)
    assert refused.value.path == "$.sources.more"


def test_pipes_that_receive_events_are_limited(siem: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    close_pipe(pipe=siem, by=alice)
    for number in range(MOST_PIPES):
        last = create_pipe(tenant=tenant, name=f"p{number}", spec=receiving(a_spec()), author=alice)
    with pytest.raises(SpecError, match="one too many"):
        create_pipe(tenant=tenant, name="more", spec=receiving(a_spec()), author=alice)
    with pytest.raises(QuotaExceededError):
        reopen_pipe(pipe=siem, by=alice)
    spec = receiving(a_spec(), "penstock.alert.*")
    assert publish_revision(pipe=last, spec=spec, based_on=1, author=alice).number == 2
    close_pipe(pipe=last, by=alice)
    assert reopen_pipe(pipe=siem, by=alice)


def test_token_of_one_pipe_neither_adds_nor_changes_the_source(siem: Pipe, pipe: Pipe, alice: User, a_spec: MakeSpec):
    alice.grant = Grant("tok_1", "deploy", pipe.tenant_id, "editor", pipe.id)
    with pytest.raises(SpecError, match="token without a pipe"):
        publish_revision(pipe=pipe, spec=receiving(a_spec()), based_on=1, author=alice)
    alice.grant = Grant("tok_2", "deploy", pipe.tenant_id, "editor", siem.id)
    with pytest.raises(SpecError, match="token without a pipe"):
        publish_revision(pipe=siem, spec=receiving(a_spec(), "penstock.alert.*"), based_on=1, author=alice)
    kept = receiving(a_spec(crm="https://new.example.com/"))
    assert publish_revision(pipe=siem, spec=kept, based_on=1, author=alice).number == 2
    alice.grant = Grant("tok_3", "deploy", pipe.tenant_id, "editor")
    assert publish_revision(pipe=pipe, spec=receiving(a_spec()), based_on=1, author=alice).number == 2
