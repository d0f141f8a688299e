"""Audit log: actors, bounded fields without secrets, one transaction with the change, append-only rows, retention."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.observer.trim import trim
from mgmt.audit.actions import CHANGED
from mgmt.audit.models import AuditEntry
from mgmt.audit.origin import request_from
from mgmt.audit.services import SYSTEM, VALUE_CHARS, delete_expired, record
from mgmt.models import Membership, Pipe, Tenant, User
from mgmt.services import change_role, pause_pipe, remove_member, rename_pipe, set_require_mfa
from mgmt.tenancy.models import Grant

pytestmark = pytest.mark.django_db


def newest() -> AuditEntry:
    return AuditEntry.objects.order_by("-at", "-id")[0]


def test_entry_names_actor_target_change_and_origin(pipe: Pipe, alice: User):
    with request_from("203.0.113.9", "req-12345678"):
        rename_pipe(pipe=pipe, name="invoices", by=alice)
    row = newest()
    assert (row.actor_kind, row.user, row.actor, row.action) == ("user", alice, "alice", "pipe.renamed")
    assert (row.target_kind, row.target_id, row.target_name) == ("pipe", pipe.id, "invoices")
    assert (row.before, row.after) == ({"name": "orders"}, {"name": "invoices"})
    assert (row.address, row.request_id, row.pipe, row.tenant) == ("203.0.113.9", "req-12345678", pipe, pipe.tenant)


def test_entry_outside_a_request_is_penstocks_and_has_no_address(pipe: Pipe):
    pause_pipe(pipe=pipe)
    row = newest()
    assert (row.actor_kind, row.actor, row.user, row.address, row.request_id) == ("system", SYSTEM, None, "", "")


def test_entry_of_a_token_names_the_token_and_its_user(pipe: Pipe, tenant: Tenant, alice: User):
    alice.grant = Grant("tok_1", "deploy", tenant.id, "operator")
    pause_pipe(pipe=pipe, by=alice)
    row = newest()
    assert (row.actor_kind, row.actor, row.token_id, row.token_name) == ("token", "alice", "tok_1", "deploy")


def test_staff_is_named_as_staff_unless_they_are_members(pipe: Pipe, alice: User):
    admin = User.objects.create_user("admin", is_staff=True)
    pause_pipe(pipe=pipe, by=admin)
    assert newest().actor_kind == "staff"
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    rename_pipe(pipe=pipe, name="more", by=User.objects.get(pk=alice.pk))
    assert newest().actor_kind == "user"


def test_change_to_the_same_value_has_no_entry(pipe: Pipe, alice: User):
    count = AuditEntry.objects.count()
    rename_pipe(pipe=pipe, name=pipe.name, by=alice)
    pause_pipe(pipe=pipe, by=alice)
    pause_pipe(pipe=pipe, by=alice)
    assert AuditEntry.objects.count() == count + 1


def test_field_that_the_action_does_not_list_is_only_said_to_have_changed(pipe: Pipe, alice: User):
    record(pipe=pipe, by=alice, action="pipe.renamed", before={"salt": "a"}, after={"salt": "b", "name": "x"})
    assert (newest().before, newest().after) == ({"salt": CHANGED}, {"salt": CHANGED, "name": "x"})


def test_long_values_and_names_are_cut(pipe: Pipe, alice: User):
    long = "x" * 10_000
    record(pipe=pipe, by=alice, action="pipe.renamed", target=("pipe", long, long), after={"name": long + "\0"})
    row = newest()
    assert (len(row.target_id), len(row.target_name)) == (200, 200)
    assert len(row.after["name"]) == VALUE_CHARS + 1


def test_unknown_action_is_refused(pipe: Pipe, alice: User):
    with pytest.raises(KeyError):
        record(pipe=pipe, by=alice, action="pipe.painted")


def test_change_without_its_entry_is_rolled_back(pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.audit.services.ACTIONS", {})
    with pytest.raises(KeyError):
        pause_pipe(pipe=pipe, by=alice)
    assert Pipe.objects.get(id=pipe.id).state == Pipe.State.ACTIVE


@pytest.mark.django_db(transaction=True)
def test_entry_outside_of_a_transaction_is_refused(pipe: Pipe, alice: User):
    with pytest.raises(transaction.TransactionManagementError):
        record(pipe=pipe, by=alice, action="pipe.paused")


def test_database_refuses_to_change_or_delete_an_entry(pipe: Pipe):
    for change in (
        lambda rows: rows.update(actor="charlie"),
        lambda rows: rows.update(at=timezone.now() - timedelta(days=500)),
        lambda rows: rows.update(user=None, action="pipe.closed"),
        lambda rows: rows.delete(),
    ):
        with pytest.raises(IntegrityError, match="audit_entry_is_append_only"), transaction.atomic():
            change(AuditEntry.objects.all())


def test_entry_keeps_the_name_of_a_deleted_account(tenant: Tenant, pipe: Pipe):
    dora = User.objects.create_user("dora")
    pause_pipe(pipe=pipe, by=dora)
    dora.delete()
    assert (newest().user, newest().actor) == (None, "dora")


def test_retention_deletes_older_entries_only(tenant: Tenant, pipe: Pipe):
    now = timezone.now()
    for age in (399, 401, 402):
        AuditEntry.objects.create(tenant=tenant, at=now - timedelta(days=age), actor="alice", action="pipe.paused")
    assert delete_expired(before=now - timedelta(days=400), most=1) == 1
    kept = set(AuditEntry.objects.filter(at__gt=now - timedelta(days=400)))
    trim(now, attempts_keep_h=72, seals_keep_d=400, audit_keep_d=400, ends_keep=timedelta(days=14))
    assert set(AuditEntry.objects.all()) == kept
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEntry.objects.all().delete()  # the permission ended with the call


@pytest.mark.parametrize("name", ["a\\u0000b", 'back\\slash "quoted"'])
def test_name_of_any_characters_is_recorded_as_it_is(pipe: Pipe, alice: User, name: str):
    rename_pipe(pipe=pipe, name=name, by=alice)
    assert AuditEntry.objects.get(action="pipe.renamed").after == {"name": name}


def test_entry_has_the_role_before_the_change_even_if_the_row_was_read_earlier(tenant: Tenant, alice: User, bob: User):
    early = Membership.objects.get(tenant=tenant, user=bob)
    change_role(membership=Membership.objects.get(pk=early.pk), role="operator", by=alice)
    change_role(membership=early, role="viewer", by=alice)
    entries = AuditEntry.objects.filter(action="member.role_changed").order_by("at", "id")
    assert [(row.before["role"], row.after["role"]) for row in entries] == [
        ("editor", "operator"),
        ("operator", "viewer"),
    ]


def test_member_is_removed_once(tenant: Tenant, alice: User, bob: User):
    rows = [Membership.objects.get(tenant=tenant, user=bob) for _ in range(2)]
    remove_member(membership=rows[0], by=alice)
    with pytest.raises(Membership.DoesNotExist):
        remove_member(membership=rows[1], by=alice)
    assert AuditEntry.objects.filter(action="member.removed").count() == 1


def test_switch_of_the_second_factor_is_recorded_even_if_the_tenant_was_read_earlier(tenant: Tenant, alice: User):
    early = Tenant.objects.get(id=tenant.id)
    Tenant.objects.filter(id=tenant.id).update(require_mfa=True)
    set_require_mfa(tenant=early, required=False, by=alice)
    entry = AuditEntry.objects.get(action="tenant.changed")
    assert (entry.before, entry.after) == ({"require_mfa": True}, {"require_mfa": False})
