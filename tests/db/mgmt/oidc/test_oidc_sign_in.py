"""Sign-in by OpenID Connect against a provider that speaks the protocol: accounts, members, links and sessions.

The rule (docs/threat-model.md): an identity is a connection and a subject. A provider speaks for its tenant only.
"""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from allauth.account.models import EmailAddress
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from mgmt.models import AuditEntry, Invitation, Membership, SsoConnection, SsoDomain, Tenant, User
from mgmt.services import (
    InvitationInvalidError,
    add_member,
    create_service_account,
    invite_member,
    make_sign_in_link,
    remove_connection,
    remove_member,
)
from mgmt.sso.pages.sign_in import STARTS
from mgmt.sso.queries import facts_of
from mgmt.sso.services import sign_in
from tests.db.cast import MakeClient
from tests.db.mgmt.oidc.flow import Role, connect, go, refusal, tenants_seen_by, verified
from tests.support.identity_provider import IdentityProvider, Lies

pytestmark = pytest.mark.django_db


def test_first_sign_in_creates_a_member_with_the_default_role(
    client: Client, tenant: Tenant, connection: SsoConnection
):
    assert go(client, tenant, "Dora@Acme.example")["Location"] == "/"
    member = Membership.objects.get(user__username="dora")
    assert (member.tenant, member.role) == (tenant, Role.VIEWER)
    assert tenants_seen_by(client) == ["Alice's"]
    assert not member.user.has_usable_password()
    assert AuditEntry.objects.filter(tenant_id=tenant.id, action="sso.session_started", actor="dora").count() == 1

    go(Client(), tenant, "dora@acme.example")
    assert User.objects.filter(username__startswith="dora").count() == 2  # another subject: "Dora" and "dora"
    go(Client(), tenant, "Dora@Acme.example")
    assert User.objects.filter(username__startswith="dora").count() == 2
    assert client.get("/").status_code == 200


def test_session_ends_twelve_hours_after_the_sign_in_whatever_is_saved_later(
    client: Client, tenant: Tenant, connection: SsoConnection, monkeypatch: pytest.MonkeyPatch
):
    go(client, tenant, "dora@acme.example")
    began, now = timezone.now(), timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: now() + timedelta(hours=11))
    client.post("/tenant/", {"tenant": tenant.id})  # saves the session
    end = Session.objects.get(session_key=client.session.session_key).expire_date
    assert timedelta(hours=11) < end - began <= timedelta(hours=12)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now() + timedelta(hours=12, seconds=1))
    assert client.get("/api/v1/me/").status_code == 401


def make_token(client: Client, tenant: Tenant, **headers: str) -> str:
    body = {"name": "CI", "scope": "admin"}
    made = client.post(f"/api/v1/tenants/{tenant.id}/tokens/", body, content_type="application/json", headers=headers)
    assert made.status_code == 201, made.text
    return f"Bearer {made.json()['token']}"


def answer_to(token: str) -> int:
    return int(Client().get("/api/v1/me/", headers={"Authorization": token}).status_code)


def test_token_of_a_session_by_single_sign_on_ends_with_the_connection(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, alice: User, client_of: MakeClient
):
    go(client, tenant, "dora@acme.example")
    Membership.objects.filter(user__username="dora").update(role=Role.OWNER)
    direct = make_token(client, tenant)
    account = create_service_account(tenant=tenant, name="ci", role=Role.VIEWER, by=alice, now=timezone.now())
    form = {"name": "page", "scope": "read", "days": "7", "account": account.id}
    on_page = f"Bearer {client.post('/tokens/', form).context['text']}"
    copy = make_token(Client(), tenant, Authorization=direct)
    by_own_means = make_token(client_of(alice), tenant)
    assert [answer_to(one) for one in (direct, on_page, copy, by_own_means)] == [200, 200, 200, 200]
    connect(tenant, idp, alice, enabled=False)
    assert [answer_to(one) for one in (direct, on_page, copy, by_own_means)] == [401, 401, 401, 200]
    connect(tenant, idp, alice)
    assert answer_to(direct) == 200
    remove_connection(connection=SsoConnection.objects.get(tenant=tenant), by=alice)
    connect(tenant, idp, alice)
    assert [answer_to(one) for one in (direct, on_page, copy, by_own_means)] == [401, 401, 401, 200]


def test_person_who_is_signed_in_changes_the_account_only_by_a_post(
    client: Client, tenant: Tenant, connection: SsoConnection, charlie: User
):
    """Another site can lead a browser to the address, but not send the form."""
    client.get(make_sign_in_link(user=charlie, base_url=""))
    asked = client.get(f"/sso/{tenant.id}/?next=/members/")
    assert (asked.status_code, "signed in as <strong>charlie" in asked.text) == (200, True)
    assert "http-equiv" not in asked.text
    assert client.session["_auth_user_id"] == str(charlie.pk)
    foreign = Client(enforce_csrf_checks=True)
    foreign.cookies = client.cookies
    assert foreign.post(f"/sso/{tenant.id}/").status_code == 403
    assert client.session["_auth_user_id"] == str(charlie.pk)

    page = client.post(f"/sso/{tenant.id}/?next=/members/")
    assert f'href="/sso/{tenant.id}/?next=%2Fmembers%2F"' in page.text
    assert go(client, tenant, "dora@acme.example")["Location"] == "/"
    assert client.get(f"/sso/{tenant.id}/").status_code == 302  # the same organisation


def test_late_callback_does_not_change_the_account_of_a_person_who_is_signed_in(
    client: Client, tenant: Tenant, connection: SsoConnection, charlie: User
):
    """Another site may have started the sign-in before the person signed in otherwise."""
    away = client.get(f"/sso/{tenant.id}/")
    back = requests.post(away["Location"], data={"email": "eve@acme.example"}, allow_redirects=False, timeout=5)
    client.get(make_sign_in_link(user=charlie, base_url=""))
    parts = urlsplit(back.headers["Location"])
    answer = client.get(f"{parts.path}?{parts.query}")
    assert answer["Location"] == f"/sso/{tenant.id}/"
    assert client.session["_auth_user_id"] == str(charlie.pk)


def test_starts_of_an_office_are_counted_apart_from_guesses(
    client: Client, tenant: Tenant, connection: SsoConnection, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(61):
        found = client.post("/sso/", {"organisation": "nobody"})
    assert found.status_code == 429
    assert client.get(f"/sso/{tenant.id}/").status_code == 302
    monkeypatch.setattr("mgmt.sso.pages.sign_in.STARTS", STARTS._replace(most=1))
    answer = client.get(f"/sso/{tenant.id}/")
    assert (answer.status_code, "Too many attempts" in answer.text) == (429, True)
    assert client.get(f"/sso/{tenant.id}/", REMOTE_ADDR="192.0.2.9").status_code == 302


def test_new_account_has_the_address_only_if_the_tenant_has_verified_its_domain(
    client: Client, tenant: Tenant, connection: SsoConnection
):
    SsoDomain.objects.create(tenant=tenant, domain="other.example", token="t")
    verified(tenant, "acme.example")
    go(client, tenant, "dora@acme.example")
    go(Client(), tenant, "eve@other.example")
    assert User.objects.get(username="dora").email == "dora@acme.example"
    assert EmailAddress.objects.get(user__username="dora").verified
    assert User.objects.get(username="eve").email == ""
    assert not EmailAddress.objects.filter(user__username="eve").exists()


@pytest.mark.parametrize(("is_verified", "role"), [(True, Role.EDITOR), (None, Role.VIEWER)])
def test_invitation_above_the_default_role_needs_a_verified_address(
    client: Client,
    tenant: Tenant,
    connection: SsoConnection,
    idp: IdentityProvider,
    alice: User,
    is_verified: bool | None,
    role: str,
):
    invite_member(tenant=tenant, email="dora@acme.example", role=Role.EDITOR, by=alice, now=timezone.now())
    idp.lies = Lies(claims={"email_verified": is_verified})
    go(client, tenant, "dora@acme.example")
    assert Membership.objects.get(user__username="dora").role == role
    assert Invitation.objects.get().accepted_at is None if is_verified is None else Invitation.objects.get().accepted_at


def test_address_in_a_verified_domain_that_an_account_has_stays_that_accounts(
    client: Client, tenant: Tenant, connection: SsoConnection, charlie: User
):
    verified(tenant, "bank.example")
    User.objects.filter(pk=charlie.pk).update(email="charlie@bank.example")
    go(client, tenant, "charlie@bank.example")
    assert User.objects.get(pk=client.session["_auth_user_id"]) != charlie
    assert User.objects.filter(email="charlie@bank.example").get() == charlie


def link(client: Client, tenant: Tenant, user: User, email: str) -> Any:
    """Sign in at the provider, then by own means, and link."""
    answer = go(client, tenant, email)
    assert answer["Location"] == "/sso/link/"
    page = client.get("/sso/link/")
    assert "sign in once as before" in page.text
    client.get(make_sign_in_link(user=user, base_url=""))
    assert f"Link {user.username}" in client.get("/sso/link/").text
    return client.post("/sso/link/")


def test_account_of_a_member_is_linked_only_by_its_existing_means(
    client: Client, tenant: Tenant, connection: SsoConnection, bob: User, charlie: User
):
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    add_member(tenant=Tenant.objects.get(name="Charlie's"), user=bob, role=Role.EDITOR)
    assert go(client, tenant, "bob@acme.example")["Location"] == "/sso/link/"
    assert "_auth_user_id" not in client.session  # the provider alone signs nobody in
    assert client.post("/sso/link/").status_code == 200
    assert not SocialAccount.objects.exists()

    assert link(client, tenant, bob, "bob@acme.example")["Location"] == "/"
    assert tenants_seen_by(client) == ["Alice's", "Charlie's"]  # still a session by own means
    sso = Client()
    assert go(sso, tenant, "bob@acme.example")["Location"] == "/"
    assert sso.session["_auth_user_id"] == str(bob.pk)
    assert tenants_seen_by(sso) == ["Alice's"]


def test_identity_is_not_linked_to_an_account_outside_the_tenant_or_to_staff(
    client: Client, tenant: Tenant, connection: SsoConnection, bob: User, charlie: User
):
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    answer = link(client, tenant, charlie, "bob@acme.example")
    assert (answer.status_code, "not a member of Alice" in answer.text) == (409, True)
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    answer = link(Client(), tenant, bob, "bob@acme.example")
    assert (answer.status_code, "staff" in answer.text) == (409, True)
    assert not SocialAccount.objects.exists()


def test_session_by_single_sign_on_reaches_no_other_tenant_and_no_means_of_the_account(
    client: Client, tenant: Tenant, connection: SsoConnection, bob: User, charlie: User, client_of: MakeClient
):
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    other = Tenant.objects.get(name="Charlie's")
    add_member(tenant=other, user=bob, role=Role.OWNER)
    link(client, tenant, bob, "bob@acme.example")
    sso = Client()
    go(sso, tenant, "bob@acme.example")
    assert sso.get(f"/api/v1/tenants/{other.id}/members/").status_code == 404
    assert sso.get(f"/api/v1/tenants/{tenant.id}/members/").status_code == 200
    for path in ("/account/", "/account/password/change/", "/account/mfa/webauthn/add/", "/account/email/"):
        assert sso.get(path).status_code == 403
    assert sso.post("/invitations/of-another-tenant/").status_code == 403
    sso.post("/tenant/", {"tenant": other.id})
    assert "Charlie" not in sso.get("/members/").text
    assert sso.get("/admin/").status_code == 403


def test_second_factor_of_a_linked_account_is_asked_for_and_the_session_stays_confined(
    client: Client, tenant: Tenant, connection: SsoConnection, bob: User, charlie: User
):
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    add_member(tenant=Tenant.objects.get(name="Charlie's"), user=bob, role=Role.EDITOR)
    link(client, tenant, bob, "bob@acme.example")
    TOTP.activate(bob, generate_totp_secret())
    codes = RecoveryCodes.activate(bob).get_unused_codes()
    sso = Client()
    answer = go(sso, tenant, "bob@acme.example")
    assert "_auth_user_id" not in sso.session
    assert AuditEntry.objects.filter(action="sso.session_started").count() == 0
    SsoConnection.objects.update(enabled=False)
    assert sso.post(answer["Location"], {"code": codes[1]})["Location"].startswith("/account/login/")
    SsoConnection.objects.update(enabled=True)
    answer = go(sso, tenant, "bob@acme.example")
    sso.post(answer["Location"], {"code": codes[0]})
    assert tenants_seen_by(sso) == ["Alice's"]
    assert AuditEntry.objects.filter(action="sso.session_started").count() == 1


def test_pending_sign_in_of_the_same_browser_does_not_free_the_session(
    tenant: Tenant, connection: SsoConnection, alice: User, bob: User, charlie: User
):
    """allauth forgets by which methods a session was authenticated when it drops a login that waits for a factor."""
    TOTP.activate(alice, generate_totp_secret())
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    add_member(tenant=Tenant.objects.get(name="Charlie's"), user=bob, role=Role.EDITOR)
    link(Client(), tenant, bob, "bob@acme.example")
    sso = Client()
    sso.get(make_sign_in_link(user=alice, base_url=""))  # waits for the second factor
    assert "_auth_user_id" not in sso.session
    go(sso, tenant, "bob@acme.example")
    for _ in range(2):
        assert tenants_seen_by(sso) == ["Alice's"]
        assert sso.get("/account/").status_code == 403
        assert sso.get("/members/").status_code == 200


def test_member_who_was_removed_comes_back_only_by_an_invitation(
    client: Client, tenant: Tenant, connection: SsoConnection, alice: User
):
    go(client, tenant, "dora@acme.example")
    dora = Membership.objects.get(user__username="dora")
    remove_member(membership=dora, by=alice)
    assert tenants_seen_by(client) == []
    assert "no longer a member" in refusal(Client(), tenant)
    invite_member(tenant=tenant, email="dora@acme.example", role=Role.EDITOR, by=alice, now=timezone.now())
    assert go(Client(), tenant, "dora@acme.example")["Location"] == "/"
    assert Membership.objects.get(user__username="dora").role == Role.EDITOR


def test_invited_only_admits_invited_people_and_makes_nobody_an_owner(
    client: Client, tenant: Tenant, idp: IdentityProvider, alice: User
):
    connect(tenant, idp, alice, join_policy="invited")
    assert "admits only invited people" in refusal(client, tenant)
    now = timezone.now()
    invite_member(tenant=tenant, email="dora@acme.example", role=Role.OWNER, by=alice, now=now)
    assert "admits only invited people" in refusal(client, tenant)  # an owner opens the link of the e-mail
    Invitation.objects.update(role=Role.OPERATOR, expires_at=now - timedelta(days=1))
    assert "admits only invited people" in refusal(client, tenant)
    Invitation.objects.update(expires_at=now + timedelta(days=1))
    assert go(client, tenant, "dora@acme.example")["Location"] == "/"
    assert Membership.objects.get(user__username="dora").role == Role.OPERATOR


def test_domains_restrict_who_signs_in(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider
):
    SsoDomain.objects.create(tenant=tenant, domain="acme.example", token="t")
    page = refusal(client, tenant, "dora@bank.example")
    assert "accepts only addresses at acme.example" in page
    assert f"/sso/{tenant.id}/?again" in page
    assert "prompt=login" in client.get(f"/sso/{tenant.id}/?again")["Location"]
    assert "accepts only addresses" in refusal(client, tenant, "dora@evil-acme.example")
    assert "accepts only addresses" in refusal(client, tenant, "dora@\u212acme.example")
    idp.lies = Lies(claims={"email_verified": False})
    assert "has no e-mail address" in refusal(client, tenant)
    idp.lies = Lies(claims={"email_verified": True})
    assert go(client, tenant, "dora@acme.example")["Location"] == "/"


def test_closed_accounts_and_staff_are_refused(client: Client, tenant: Tenant, connection: SsoConnection):
    go(client, tenant, "dora@acme.example")
    User.objects.filter(username="dora").update(is_active=False)
    assert "closed" in refusal(Client(), tenant)
    User.objects.filter(username="dora").update(is_active=True, is_staff=True)
    assert "staff" in refusal(Client(), tenant)


def test_two_first_sign_ins_of_one_person_at_a_time_make_one_account(
    tenant: Tenant, connection: SsoConnection, monkeypatch: pytest.MonkeyPatch
):
    """The second has read its facts before the first has committed."""
    go(Client(), tenant, "dora@acme.example")
    stale = [True]

    def read(*args: Any, **kwargs: Any) -> Any:
        found = facts_of(*args, **kwargs)
        return found._replace(account=None) if stale and stale.pop() else found

    monkeypatch.setattr(sign_in, "facts_of", read)
    assert go(Client(), tenant, "dora@acme.example")["Location"] == "/"
    assert Membership.objects.filter(user__username__startswith="dora").count() == 1


def test_invitation_that_is_used_meanwhile_is_a_refusal(
    client: Client, tenant: Tenant, connection: SsoConnection, alice: User, monkeypatch: pytest.MonkeyPatch
):
    def used(**_kwargs: Any) -> None:
        raise InvitationInvalidError("The invitation is not valid any more.")

    invite_member(tenant=tenant, email="dora@acme.example", role=Role.VIEWER, by=alice, now=timezone.now())
    monkeypatch.setattr(sign_in, "accept_invitation", used)
    assert "not valid any more" in refusal(client, tenant)
