"""SAML responses that somebody else sends, repeats or redirects, through the whole flow.

The attacks on the response itself are tests/unit/mgmt/test_sso_saml_responses.py.
"""

from datetime import timedelta
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from mgmt.models import SsoConnection, Tenant, UsedAssertion, User
from mgmt.services import make_sign_in_link
from mgmt.sso.pages import saml as saml_pages
from mgmt.sso.pages.saml import HANDOFF_COOKIE
from tests.db.mgmt.saml.flow import EMAIL, acs_of, asked_by, connect, go, post, refusal, service_of
from tests.support.saml_provider import Asked, Lies, SamlProvider, new_signer, signed

pytestmark = pytest.mark.django_db


def test_response_answers_the_request_of_the_same_browser_once(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider
):
    asked = asked_by(client, tenant)
    response = idp.response(asked, EMAIL)
    stranger = Client()
    refusal(post(stranger, tenant, response, asked.id), stranger, "started in another browser")
    wrong = Client()
    other = asked_by(wrong, tenant)
    refusal(post(wrong, tenant, response, other.id), wrong, "started in another browser")
    refusal(post(client, tenant, idp.response(asked, EMAIL), "another"), client, "started in another browser")
    asked = asked_by(client, tenant)
    response = idp.response(asked, EMAIL)
    assert post(client, tenant, response, asked.id)["Location"] == "/"
    client.logout()
    refusal(post(client, tenant, response, asked.id), client, "started in another browser")


@pytest.mark.parametrize("relay_state", ["https://evil.example/", "//evil.example", "/" + "x" * 300, "/\xe9"])
def test_relay_state_of_a_person_who_is_signed_in_leads_nowhere_else(
    client: Client,
    tenant: Tenant,
    connection: SsoConnection,
    idp: SamlProvider,
    charlie: User,
    settings: Settings,
    relay_state: str,
):
    SsoConnection.objects.update(idp_initiated=True)
    client.get(make_sign_in_link(user=charlie, base_url=""))
    response = idp.response(service_of(tenant, settings), EMAIL)
    assert post(client, tenant, response, relay_state)["Location"] == f"/sso/{tenant.id}/?next=%2F"


@pytest.mark.parametrize(
    "relay_state", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "members", ""]
)
def test_relay_state_leads_nowhere_else(
    client: Client,
    tenant: Tenant,
    connection: SsoConnection,
    idp: SamlProvider,
    settings: Settings,
    relay_state: str,
):
    SsoConnection.objects.update(idp_initiated=True)
    response = idp.response(service_of(tenant, settings), EMAIL)
    assert post(client, tenant, response, relay_state)["Location"] == "/"


def test_used_assertion_is_refused_until_it_is_too_old_also_by_another_connection(
    tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User, settings: Settings
):
    SsoConnection.objects.update(idp_initiated=True)
    idp.lies = Lies(assertion_id="_same")
    service = service_of(tenant, settings)
    first = idp.response(service, EMAIL)
    assert post(Client(), tenant, first)["Location"] == "/"
    again = Client()
    refusal(post(again, tenant, idp.response(service, "eve@acme.example")), again, "was used already")
    SsoConnection.objects.all().delete()
    connect(tenant, idp, alice, idp_initiated=True)
    refusal(post(again, tenant, first), again, "was used already")

    UsedAssertion.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    idp.lies = Lies()
    assert post(Client(), tenant, idp.response(service, EMAIL))["Location"] == "/"
    assert UsedAssertion.objects.count() == 1  # the expired one is gone


def test_response_that_nobody_asked_for_changes_no_account_of_a_person_who_is_signed_in(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, charlie: User, settings: Settings
):
    """Another site can send the form: neither the form nor what follows replaces the session without a question."""
    SsoConnection.objects.update(idp_initiated=True)
    client.get(make_sign_in_link(user=charlie, base_url=""))
    service = service_of(tenant, settings)
    form = {"SAMLResponse": idp.response(service, "eve@acme.example"), "RelayState": "/members/"}
    answer = client.post(acs_of(tenant), form)
    assert client.session["_auth_user_id"] == str(charlie.pk)
    answer = client.get(answer["Location"])
    assert answer["Location"] == f"/sso/{tenant.id}/?next=%2Fmembers%2F"
    assert client.session["_auth_user_id"] == str(charlie.pk)
    assert "signed in as <strong>charlie" in client.get(answer["Location"]).text

    member = Client()
    go(member, tenant, idp)
    dora = member.session["_auth_user_id"]
    answer = post(member, tenant, idp.response(service, "eve@acme.example"))  # of the same provider
    assert (answer["Location"], member.session["_auth_user_id"]) == (f"/sso/{tenant.id}/?next=%2F", dora)


def test_late_response_does_not_change_the_account_of_a_person_who_is_signed_in(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, charlie: User
):
    asked = asked_by(client, tenant)
    client.get(make_sign_in_link(user=charlie, base_url=""))
    answer = post(client, tenant, idp.response(asked, "eve@acme.example"), asked.id)
    assert answer["Location"].startswith(f"/sso/{tenant.id}/")
    assert client.session["_auth_user_id"] == str(charlie.pk)


def test_response_of_another_tenants_provider_or_for_another_tenant_is_refused(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, charlie: User, settings: Settings
):
    SsoConnection.objects.update(idp_initiated=True)
    theirs, other = SamlProvider(signer=new_signer()), Tenant.objects.get(name="Charlie's")
    theirs.start()
    try:
        connect(other, theirs, charlie, idp_initiated=True)
        here, there = service_of(tenant, settings), service_of(other, settings)
        words = "not signed with a certificate"
        refusal(post(client, tenant, theirs.response(here, EMAIL)), client, words)
        theirs.lies = Lies(issuer=idp.entity_id)
        refusal(post(client, tenant, theirs.response(here, EMAIL)), client, words)
        idp.lies = Lies(issuer=theirs.entity_id)
        refusal(post(client, tenant, idp.response(here, EMAIL)), client, "is of the provider")
    finally:
        theirs.stop()
    idp.lies = Lies()
    SsoConnection.objects.filter(tenant=other).delete()
    connect(other, idp, charlie, idp_initiated=True)  # one provider of two tenants
    for_other = idp.response(there, EMAIL)
    refusal(post(client, tenant, for_other), client, "for another address")
    only_audience = idp.response(Asked(there.entity_id, here.acs_url), EMAIL)
    refusal(post(client, tenant, only_audience), client, "for another application")
    assert post(Client(), other, for_other)["Location"] == "/"


def test_handoff_is_bound_to_its_connection_and_a_minute(
    client: Client,
    tenant: Tenant,
    connection: SsoConnection,
    idp: SamlProvider,
    charlie: User,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
):
    other = Tenant.objects.get(name="Charlie's")
    connect(other, idp, charlie)
    SsoConnection.objects.update(idp_initiated=True)
    form = {"SAMLResponse": idp.response(service_of(tenant, settings), EMAIL)}
    answer = Client().post(acs_of(tenant), form)
    path, token = answer["Location"], answer.cookies[HANDOFF_COOKIE].value

    def expires(path: str, token: str) -> None:
        client.cookies[HANDOFF_COOKIE] = token
        refusal(client.get(path), client, "has expired")

    expires(path.replace(tenant.id, other.id), token)
    for wrong in (token[:-8], "", "x", "\xff"):
        expires(path, wrong)
    now = timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: now() + timedelta(seconds=61))
    expires(path, token)


def test_handoff_is_in_the_browser_and_in_no_address(
    tenant: Tenant, connection: SsoConnection, idp: SamlProvider, settings: Settings
):
    """Logs and the history of a browser keep addresses."""
    SsoConnection.objects.update(idp_initiated=True)
    settings.SESSION_COOKIE_SECURE = True
    idp.lies = Lies(subject="\u8d75" * 191, assertion_id="_" + "x" * 199)
    form = {"SAMLResponse": idp.response(service_of(tenant, settings), EMAIL), "RelayState": "/" + "x" * 299}
    answer = Client().post(acs_of(tenant), form)
    assert answer["Location"] == f"/sso/{tenant.id}/saml/finish/"
    cookie = answer.cookies[HANDOFF_COOKIE]
    found = [cookie[name] for name in ("path", "max-age", "httponly", "secure", "samesite", "domain")]
    assert found == [answer["Location"], 60, True, True, "Lax", ""]
    assert EMAIL not in cookie.value
    assert len(cookie.OutputString()) < 4_096  # browsers drop a larger one


def test_handoff_is_used_once_also_in_the_last_minute_of_its_assertion(
    tenant: Tenant,
    connection: SsoConnection,
    idp: SamlProvider,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
):
    """The handoff is valid for longer than the assertion, whose row must not go before it."""
    SsoConnection.objects.update(idp_initiated=True)
    idp.lies = Lies(ends_s=-50)  # within the tolerance of clocks for ten seconds more
    answer = Client().post(acs_of(tenant), {"SAMLResponse": idp.response(service_of(tenant, settings), EMAIL)})
    now = timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: now() + timedelta(seconds=20))
    first, second = Client(), Client()
    for client in (first, second):
        client.cookies.update(answer.cookies)
    assert first.get(answer["Location"])["Location"] == "/"
    refusal(second.get(answer["Location"]), second, "was used already")


def test_response_that_nobody_asked_for_offers_no_link(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, bob: User, settings: Settings
):
    """Mallory claims Bob's address and sends her own response to Bob's browser: he would link her to his account."""
    SsoConnection.objects.update(idp_initiated=True)
    User.objects.filter(pk=bob.pk).update(email="bob@acme.example")
    idp.lies = Lies(subject="mallory")
    answer = post(client, tenant, idp.response(service_of(tenant, settings), "bob@acme.example"))
    assert answer["Location"] == f"/sso/{tenant.id}/"  # the provider is asked who this is
    client.get(make_sign_in_link(user=bob, base_url=""))
    assert client.post("/sso/link/").status_code == 403
    assert not SocialAccount.objects.exists()


def test_large_odd_and_many_posts_are_refused_before_they_are_read(
    client: Client, tenant: Tenant, connection: SsoConnection, monkeypatch: pytest.MonkeyPatch
):
    assert client.get(acs_of(tenant)).status_code == 405
    assert "too large" in client.post(acs_of(tenant), {"SAMLResponse": "A" * 300_000}).text
    for wrong in ("", "\0", "PHg+", "%%%"):
        assert client.post(acs_of(tenant), {"SAMLResponse": wrong}).status_code == 403
    monkeypatch.setattr(saml_pages, "RESPONSES", saml_pages.RESPONSES._replace(most=1))
    assert client.post(acs_of(tenant), {"SAMLResponse": ""}).status_code == 429


def test_wrapped_assertion_signs_nobody_in(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider
):
    def wrap(root: Any) -> Any:
        stranger = new_signer()
        assertion = root[-1]
        copy = type(assertion).__copy__(assertion)
        copy.set("ID", "_stranger")
        assertion.addprevious(copy)
        copy.remove(copy[1])
        signed(root, copy, Lies(), stranger)
        return root

    idp.lies = Lies(tampers=wrap)
    refusal(go(client, tenant, idp), client, "exactly one assertion")
