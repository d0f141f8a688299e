"""Sign-in by SAML against a provider that speaks the protocol: the same rules as by OpenID Connect."""

from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from mgmt.models import AuditEntry, Membership, SsoConnection, SsoDomain, Tenant, UsedAssertion, User
from mgmt.services import invite_member, make_sign_in_link
from tests.db.mgmt.saml.flow import EMAIL, Role, asked_by, connect, go, post, refusal, service_of, tenants_seen_by
from tests.support.saml_provider import Lies, SamlProvider, new_signer, subject_of

pytestmark = pytest.mark.django_db


def test_first_sign_in_creates_a_member_who_reaches_this_tenant_only(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider
):
    assert go(client, tenant, idp)["Location"] == "/"
    member = Membership.objects.get(user__username="dora")
    assert (member.tenant, member.role) == (tenant, Role.VIEWER)
    assert SocialAccount.objects.get().uid == subject_of(EMAIL)
    assert tenants_seen_by(client) == ["Alice's"]
    assert client.get("/account/").status_code == 403
    assert AuditEntry.objects.filter(action="sso.session_started", actor="dora").count() == 1
    go(Client(), tenant, idp)
    assert User.objects.filter(username__startswith="dora").count() == 1
    assert SocialAccount.objects.get().extra_data == {}


def test_session_ends_with_that_of_the_provider_and_after_twelve_hours_at_the_latest(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider
):
    def lasts() -> timedelta:
        go(client, tenant, idp)
        return Session.objects.get(session_key=client.session.session_key).expire_date - timezone.now()

    assert timedelta(hours=11) < lasts() <= timedelta(hours=12)
    idp.lies = Lies(session_ends_s=3600)
    assert timedelta(minutes=59) < lasts() <= timedelta(hours=1)
    idp.lies = Lies(session_ends_s=48 * 3600)
    assert timedelta(hours=11) < lasts() <= timedelta(hours=12)


def test_sign_in_that_the_provider_starts_is_refused_unless_an_owner_permits_it(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User, settings: Settings
):
    service = service_of(tenant, settings)
    refusal(post(client, tenant, idp.response(service, EMAIL)), client, "may not start a sign-in here")
    connect(tenant, idp, alice, idp_initiated=True)
    response = idp.response(service, EMAIL)
    assert post(client, tenant, response, "/members/")["Location"] == "/members/"
    assert tenants_seen_by(client) == ["Alice's"]
    again = Client()
    refusal(post(again, tenant, response), again, "was used already")


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        pytest.param(Lies(signs_assertion=False), "The assertion is not signed", id="not signed"),
        pytest.param(Lies(signer=new_signer()), "not signed with a certificate", id="unknown certificate"),
        pytest.param(Lies(audience="https://other.example"), "for another application", id="audience"),
        pytest.param(Lies(begins_s=120), "Correct the clock", id="clock"),
        pytest.param(Lies(status="AuthnFailed"), "AuthnFailed", id="status"),
    ],
)
def test_page_says_what_to_do_about_a_refused_response(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, lies: Lies, words: str
):
    idp.lies = lies
    refusal(go(client, tenant, idp), client, words)
    assert not UsedAssertion.objects.exists()
    assert not SocialAccount.objects.exists()
    assert 'ForceAuthn="true"' not in str(asked_by(client, tenant))


def test_address_counts_as_verified_only_if_the_owner_says_so(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User
):
    SsoDomain.objects.create(tenant=tenant, domain="acme.example", token="t", verified_at=timezone.now())
    go(client, tenant, idp)
    assert User.objects.get(username="dora").email == ""
    connect(tenant, idp, alice, trusts_email=True)
    go(Client(), tenant, idp, "eve@acme.example")
    assert EmailAddress.objects.get().email == User.objects.get(username="eve").email == "eve@acme.example"
    refused = Client()
    refusal(go(refused, tenant, idp, "mallory@bank.example"), refused, "accepts only addresses at acme.example")


@pytest.mark.parametrize(("trusts_email", "role"), [(True, Role.EDITOR), (False, Role.VIEWER)])
def test_invitation_above_the_default_role_needs_an_address_that_counts_as_verified(
    client: Client, tenant: Tenant, idp: SamlProvider, alice: User, trusts_email: bool, role: str
):
    connect(tenant, idp, alice, trusts_email=trusts_email)
    invite_member(tenant=tenant, email=EMAIL, role=Role.EDITOR, by=alice, now=timezone.now())
    go(client, tenant, idp)
    assert Membership.objects.get(user__username="dora").role == role


def test_account_of_a_member_is_linked_by_its_existing_means_and_asked_for_its_second_factor(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, bob: User
):
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    assert go(client, tenant, idp, "bob@acme.example")["Location"] == "/sso/link/"
    assert "_auth_user_id" not in client.session
    client.get(make_sign_in_link(user=bob, base_url=""))
    assert client.post("/sso/link/")["Location"] == "/"
    TOTP.activate(bob, generate_totp_secret())
    code = RecoveryCodes.activate(bob).get_unused_codes()[0]
    idp.lies = Lies(session_ends_s=3600)
    sso = Client()
    answer = go(sso, tenant, idp, "bob@acme.example")
    assert "_auth_user_id" not in sso.session
    sso.post(answer["Location"], {"code": code})
    assert sso.session["_auth_user_id"] == str(bob.pk)
    assert sso.get("/account/").status_code == 403
    end = Session.objects.get(session_key=sso.session.session_key).expire_date
    assert end - timezone.now() <= timedelta(hours=1)
