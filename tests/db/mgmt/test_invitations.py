"""Invitations: one open one per address, links that work once and for seven days, and e-mails that can fail."""

import json
import re
from datetime import datetime, timedelta
from importlib import import_module
from io import StringIO
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.apps import apps
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.utils import timezone

from mgmt.errors import (
    AlreadyMemberError,
    InvalidValue,
    InvitationInvalidError,
    LastOwnerError,
    LimitReachedError,
    NameTakenError,
    TooManyInvitationsError,
)
from mgmt.models import AuditEntry, Invitation, Membership, Pipe, Tenant, User
from mgmt.services import (
    accept_invitation,
    change_role,
    create_service_account,
    create_token,
    invitation_of_token,
    invite_member,
    open_tenant,
    remove_member,
    resend_invitation,
    revoke_invitation,
    sign_up,
)
from mgmt.tenancy.secrets import decrypt
from mgmt.tenancy.services.invitations import PER_ADDRESS, VALID_FOR

pytestmark = pytest.mark.django_db
NOW = datetime(2031, 5, 10, 12, 30, tzinfo=timezone.get_default_timezone())
PASSWORD = "violet giraffe 81 kettle"


def token_of(number: int = -1) -> str:
    """Return the token in an e-mail that was sent."""
    found = re.search(r"/invitations/([\w-]+)/", str(mail.outbox[number].body))
    assert found
    return found[1]


def invite(tenant: Tenant, by: User, email: str = "ada@example.com", role: str = "viewer") -> Invitation:
    return invite_member(tenant=tenant, email=email, role=role, by=by, now=NOW)


def test_invitation_is_mailed_and_the_database_has_only_its_digest(tenant: Tenant, alice: User):
    invitation = invite(tenant, alice, " Ada@Example.com ")
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["ada@example.com"], "[Penstock] Join Alice's")
    assert "alice invites you to Alice's on Penstock, with the role viewer." in str(sent.body)
    assert invitation_of_token(token=token_of(), now=NOW) == invitation
    assert token_of() not in str(Invitation.objects.values().get())


def test_member_gets_the_invited_role_and_the_link_works_once(tenant: Tenant, alice: User, charlie: User):
    invitation = invite(tenant, alice, role="operator")
    accept_invitation(invitation=invitation, user=charlie, now=NOW)
    assert charlie.memberships.get(tenant=tenant).role == "operator"
    added = AuditEntry.objects.get(tenant=tenant, user=charlie, action="member.added")
    assert (added.user, added.target_name, added.after) == (charlie, charlie.username, {"role": "operator"})
    assert invitation_of_token(token=token_of(), now=NOW) is None
    with pytest.raises(InvitationInvalidError):
        accept_invitation(invitation=invitation, user=alice, now=NOW)


def test_member_who_accepts_keeps_their_role(tenant: Tenant, alice: User, bob: User):
    accept_invitation(invitation=invite(tenant, alice, role="viewer"), user=bob, now=NOW)
    assert bob.memberships.get(tenant=tenant).role == "editor"


def test_link_expires_after_seven_days(tenant: Tenant, alice: User, charlie: User):
    invitation = invite(tenant, alice)
    late = NOW + VALID_FOR
    assert invitation_of_token(token=token_of(), now=late - timedelta(seconds=1)) == invitation
    assert invitation_of_token(token=token_of(), now=late) is None
    with pytest.raises(InvitationInvalidError):
        accept_invitation(invitation=invitation, user=charlie, now=late)


def test_expired_invitation_does_not_prevent_a_new_one(tenant: Tenant, alice: User):
    invite(tenant, alice)
    again = invite_member(tenant=tenant, email="ada@example.com", role="viewer", by=alice, now=NOW + VALID_FOR)
    assert tenant.invitations.filter(revoked_at=None).get() == again


def test_revoked_link_does_not_work(tenant: Tenant, alice: User):
    invitation = invite(tenant, alice)
    revoke_invitation(invitation=invitation, by=alice, now=NOW)
    assert invitation_of_token(token=token_of(), now=NOW) is None
    with pytest.raises(InvitationInvalidError):
        resend_invitation(invitation=invitation, by=alice, now=NOW)


def test_resent_link_replaces_the_earlier_one(tenant: Tenant, alice: User):
    invitation = invite(tenant, alice)
    resend_invitation(invitation=invitation, by=alice, now=NOW + timedelta(days=8))
    assert token_of(0) != token_of(1)
    assert invitation_of_token(token=token_of(0), now=NOW) is None
    found = invitation_of_token(token=token_of(1), now=NOW + timedelta(days=14))
    assert found == invitation


def test_address_is_invited_once_at_a_time(tenant: Tenant, alice: User):
    invite(tenant, alice)
    with pytest.raises(NameTakenError):
        invite(tenant, alice, "ADA@example.com")
    row = Invitation.objects.values().get() | {"id": "inv_2", "digest": "2"}
    with pytest.raises(IntegrityError, match="one_open_invitation"):
        Invitation.objects.create(**row)


def test_member_is_not_invited(tenant: Tenant, alice: User, bob: User):
    User.objects.filter(pk=bob.pk).update(email="Bob@example.com")
    with pytest.raises(AlreadyMemberError):
        invite(tenant, alice, "bob@example.com")


@pytest.mark.parametrize("email", ["", "ada", "ada@", "ädä@example.com", f"{'a' * 250}@example.com"])
def test_address_that_gets_no_mail_is_refused(tenant: Tenant, alice: User, email: str):
    with pytest.raises(InvalidValue):
        invite(tenant, alice, email)


def test_address_gets_few_mails_a_day(tenant: Tenant, alice: User):
    invitation = invite(tenant, alice)
    for _ in range(PER_ADDRESS.most - 1):
        resend_invitation(invitation=invitation, by=alice, now=NOW)
    with pytest.raises(TooManyInvitationsError):
        resend_invitation(invitation=invitation, by=alice, now=NOW)
    assert len(mail.outbox) == PER_ADDRESS.most
    assert invitation_of_token(token=token_of(), now=NOW) == invitation  # the newest link still works


def test_tenant_has_a_limit_of_open_invitations(tenant: Tenant, alice: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.tenancy.services.invitations.MOST_OPEN", 1)
    invite(tenant, alice)
    with pytest.raises(LimitReachedError):
        invite(tenant, alice, "grace@example.com")


def test_mail_that_fails_is_reported_and_can_be_sent_again(
    tenant: Tenant, alice: User, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_args: object) -> int:
        raise SMTPServerDisconnected("closed")

    with monkeypatch.context() as broken:
        broken.setattr(EmailBackend, "send_messages", refuse)
        invitation = invite(tenant, alice)
    assert invitation.mail_error == "SMTPServerDisconnected: closed"
    assert Invitation.objects.get().mail_error == invitation.mail_error
    assert resend_invitation(invitation=invitation, by=alice, now=NOW).mail_error == ""
    assert Invitation.objects.get().mail_error == ""


def test_new_person_signs_up_with_the_invited_address(tenant: Tenant, alice: User):
    invitation = invite(tenant, alice, role="editor")
    user = sign_up(invitation=invitation, username="ada", password=PASSWORD, now=NOW)
    assert (user.email, user.check_password(PASSWORD)) == ("ada@example.com", True)
    assert user.memberships.get().role == "editor"


@pytest.mark.parametrize(
    ("username", "password", "field"),
    [
        ("", PASSWORD, "username"),
        ("a b", PASSWORD, "username"),
        ("Alice", PASSWORD, "username"),
        ("ada@example.com", PASSWORD, "username"),
        ("ada", "short", "password"),
        ("ada", "ada@example.com", "password"),
        ("ada", "", "password"),
    ],
)
def test_sign_up_needs_a_free_name_and_a_good_password(
    tenant: Tenant, alice: User, username: str, password: str, field: str
):
    invitation = invite(tenant, alice)
    with pytest.raises(InvalidValue) as refused:
        sign_up(invitation=invitation, username=username, password=password, now=NOW)
    assert refused.value.field == field
    assert not User.objects.filter(email="ada@example.com").exists()


def test_address_with_an_account_cannot_sign_up_again(tenant: Tenant, alice: User, charlie: User):
    User.objects.filter(pk=charlie.pk).update(email="Ada@example.com")
    with pytest.raises(InvitationInvalidError):
        sign_up(invitation=invite(tenant, alice), username="ada", password=PASSWORD, now=NOW)


def test_tenant_keeps_an_owner_who_can_sign_in(tenant: Tenant, alice: User, bob: User):
    mine, bobs = alice.memberships.get(), bob.memberships.get()
    with pytest.raises(LastOwnerError):
        remove_member(membership=mine, by=alice)
    with pytest.raises(LastOwnerError):
        change_role(membership=mine, role="editor", by=alice)
    change_role(membership=bobs, role="owner", by=alice)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(LastOwnerError):
        remove_member(membership=mine, by=alice)
    User.objects.filter(pk=bob.pk).update(is_active=True)
    remove_member(membership=mine, by=alice)
    assert list(tenant.memberships.values_list("user__username", "role")) == [("bob", "owner")]


def test_new_tenant_has_a_salt_and_an_invited_owner(db: None):
    tenant, invitation = open_tenant(name=" Acme ", owner_email="ada@example.com", by=None, now=NOW)
    assert (tenant.name, invitation.role, tenant.memberships.count()) == ("Acme", "owner", 0)
    assert decrypt(tenant.mask_salt, f"{tenant.id}/masks/salt")
    assert "You are invited to Acme" in str(mail.outbox[0].body)
    entries = AuditEntry.objects.filter(tenant=tenant).order_by("at").values_list("action", "actor_kind", "target_name")
    assert list(entries) == [("tenant.created", "system", "Acme"), ("member.invited", "system", "ada@example.com")]


@pytest.mark.parametrize(
    ("name", "email", "field"), [("", "ada@example.com", "name"), ("Acme", "nobody", "owner_email")]
)
def test_refused_tenant_leaves_no_row(db: None, name: str, email: str, field: str):
    with pytest.raises(InvalidValue) as refused:
        open_tenant(name=name, owner_email=email, by=None, now=NOW)
    assert (refused.value.field, Tenant.objects.count(), mail.outbox) == (field, 0, [])


def test_command_creates_a_tenant_and_invites_its_owner(db: None):
    out = StringIO()
    call_command("create_tenant", name="Acme", owner_email="ada@example.com", stdout=out)
    assert json.loads(out.getvalue()) == {"tenant": Tenant.objects.get().id, "invited": "ada@example.com"}
    assert mail.outbox[0].to == ["ada@example.com"]
    with pytest.raises(CommandError, match="needs an e-mail address"):
        call_command("create_tenant", name="Acme", owner_email="ada")


def test_tenants_from_the_admin_get_a_salt(pipe: Pipe):
    with_salt = pipe.tenant.mask_salt
    Tenant.objects.create(name="From the admin")
    import_module("mgmt.migrations.0061_tenant_salts").give_salts(apps, None)
    repaired = Tenant.objects.get(name="From the admin")
    assert decrypt(repaired.mask_salt, f"{repaired.id}/masks/salt")
    assert (Tenant.objects.get(id=pipe.tenant_id).mask_salt, Pipe.objects.get().version) == (with_salt, pipe.version)
    Tenant.objects.filter(id=pipe.tenant_id).update(mask_salt="")
    import_module("mgmt.migrations.0061_tenant_salts").give_salts(apps, None)
    assert Pipe.objects.get().version == pipe.version + 1


def test_membership_of_two_concurrent_uses_is_one(tenant: Tenant, alice: User, charlie: User):
    invitation = invite(tenant, alice)
    stale = Invitation.objects.get()
    accept_invitation(invitation=invitation, user=charlie, now=NOW)
    with pytest.raises(InvitationInvalidError):
        accept_invitation(invitation=stale, user=User.objects.create_user("dora"), now=NOW)
    assert Membership.objects.filter(tenant=tenant).count() == 3


@pytest.mark.parametrize("leaves", [True, False], ids=["removed", "demoted"])
def test_invitations_of_someone_who_may_no_longer_invite_are_revoked(
    tenant: Tenant, alice: User, charlie: User, leaves: bool
):
    owner = Membership.objects.create(tenant=tenant, user=charlie, role="owner")
    invitation = invite(tenant, charlie, role="owner")
    if leaves:
        remove_member(membership=owner, by=alice)
    else:
        change_role(membership=owner, role="editor", by=alice)
    invitation.refresh_from_db()
    assert invitation.revoked_at is not None


def test_tokens_that_a_removed_member_created_for_others_are_revoked(tenant: Tenant, alice: User, charlie: User):
    owner = Membership.objects.create(tenant=tenant, user=charlie, role="owner")
    account = create_service_account(tenant=tenant, name="ci", role="owner", by=charlie, now=NOW)
    about: dict[str, Any] = {"tenant": tenant, "user": account.user, "scope": "admin", "days": None, "now": NOW}
    known, _ = create_token(**about, by=charlie, name="known")
    other, _ = create_token(**about, by=alice, name="other")
    remove_member(membership=owner, by=alice)
    known.refresh_from_db()
    other.refresh_from_db()
    assert (known.revoked_at is not None, other.revoked_at) == (True, None)


@pytest.mark.parametrize("name", ["Penstock", "penstock", "\u0430lice"], ids=["actor", "lower case", "Cyrillic"])
def test_name_that_looks_like_another_actor_is_refused(tenant: Tenant, alice: User, name: str):
    invitation = invite(tenant, alice)
    with pytest.raises(InvalidValue):
        sign_up(invitation=invitation, username=name, password=PASSWORD, now=NOW)
