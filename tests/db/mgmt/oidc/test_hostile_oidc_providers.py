"""Providers that lie, answer slowly or lead to internal addresses, and browsers that bring codes of others."""

import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from mgmt.models import SsoConnection, Tenant, User
from mgmt.services import (
    SsoError,
)
from mgmt.services import test_connection as run_test
from mgmt.sso.http import ForbiddenAddressError, GuardedSession, get_json
from mgmt.sso.provider_steps import StepSlots
from tests.db.mgmt.oidc.flow import connect, go, refusal, settings_of, tenants_seen_by, verified
from tests.support.identity_provider import IdentityProvider, Lies, new_key

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        pytest.param({"iss": "https://other.example"}, "another issuer", id="issuer"),
        pytest.param({"aud": "another"}, "another application", id="audience"),
        pytest.param({"aud": ["penstock", "another"]}, "another application", id="audiences without azp"),
        pytest.param({"aud": ["penstock", "x"], "azp": "x"}, "another application", id="authorized party"),
        pytest.param({"exp": int(time.time()) - 120}, "has expired", id="expired"),
        pytest.param({"iat": int(time.time()) + 86_400}, "from the future", id="clock"),
        pytest.param({"nonce": "of another sign-in"}, "another sign-in", id="replayed token"),
        pytest.param({"nonce": None}, "another sign-in", id="no nonce"),
        pytest.param({"sub": None}, "not valid", id="no subject"),
        pytest.param({"sub": "x" * 192}, "subject", id="long subject"),
        pytest.param({"sub": "a\0b"}, "subject", id="subject with NUL"),
        pytest.param({"exp": None}, "not valid", id="no expiry"),
    ],
)
def test_token_that_is_not_for_this_sign_in_is_refused(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, claims: dict[str, Any], words: str
):
    idp.lies = Lies(claims=claims)
    assert words in refusal(client, tenant)
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    "lies",
    [
        pytest.param(Lies(key=new_key()), id="key of somebody else"),
        pytest.param(Lies(algorithm="none"), id="not signed"),
        pytest.param(Lies(algorithm="HS256"), id="signed with the client secret"),
    ],
)
def test_token_that_the_provider_did_not_sign_is_refused(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, lies: Lies
):
    idp.lies = lies
    assert "signature or form is not valid" in refusal(client, tenant)


def test_address_from_the_user_information_belongs_to_the_subject(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider
):
    idp.lies = Lies(claims={"email": None}, userinfo={"sub": "another"})
    assert "of another person" in refusal(client, tenant)
    idp.lies = Lies(claims={"email": None})
    go(client, tenant, "dora@acme.example")
    assert User.objects.filter(username="dora").exists()


def test_odd_answers_of_the_provider_are_refused_with_a_page(
    tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
):
    """The table of odd values is tests/unit/mgmt/test_sso_provider_answers.py; here they pass the whole flow."""
    for lies in (Lies(claims={"nonce": "\ud800"}), Lies(claims={"email": 5}), Lies(claims={"preferred_username": 5})):
        idp.lies = lies
        refusal(Client(), tenant)
    for lies in (Lies(claims={"name": ["x"], "given_name": {"a": 1}}), Lies(claims={"iat": 1.5})):
        idp.lies = lies
        assert go(Client(), tenant, "dora@acme.example")["Location"] == "/"
    idp.lies = Lies()
    redeem = idp.token
    for wrong in (5, "access_token", ["access_token"]):
        monkeypatch.setattr(idp, "token", lambda *_args, wrong=wrong: wrong)
        assert "token endpoint" in refusal(Client(), tenant)
    monkeypatch.setattr(idp, "token", lambda *args: (redeem(*args) or {}) | {"expires_in": "abc"})
    assert go(Client(), tenant, "dora@acme.example")["Location"] == "/"
    idp.lies = Lies(metadata={"token_endpoint_auth_methods_supported": 5})
    answer = Client().get(f"/sso/{tenant.id}/")
    assert (answer.status_code, "needs a list" in answer.text) == (403, True)


def test_sign_in_while_providers_hold_the_threads_is_refused_with_a_page(
    tenant: Tenant, connection: SsoConnection, monkeypatch: pytest.MonkeyPatch
):
    slots = StepSlots()
    slots.take(tenant.id)
    monkeypatch.setattr("mgmt.sso.provider_steps._slots", slots)
    monkeypatch.setattr("mgmt.sso.provider_steps.WAIT_S", 0.02)
    answer = Client().get(f"/sso/{tenant.id}/")
    assert (answer.status_code, "Try again in a minute" in answer.text) == (403, True)
    slots.release(tenant.id)
    assert Client().get(f"/sso/{tenant.id}/").status_code == 302


def test_callback_without_a_known_state_takes_no_step(
    client: Client, tenant: Tenant, connection: SsoConnection, monkeypatch: pytest.MonkeyPatch
):
    slots = StepSlots()
    slots.take(tenant.id)
    monkeypatch.setattr("mgmt.sso.provider_steps._slots", slots)
    answer = client.get(f"/sso/{tenant.id}/callback/?code=c&state=s")
    assert (answer.status_code, "started in another browser" in answer.text) == (403, True)


def test_code_of_another_browser_or_a_second_time_is_refused(client: Client, tenant: Tenant, connection: SsoConnection):
    away = client.get(f"/sso/{tenant.id}/")
    back = requests.post(away["Location"], data={"email": "dora@acme.example"}, allow_redirects=False, timeout=5)
    url = back.headers["Location"]
    path = f"{urlsplit(url).path}?{urlsplit(url).query}"
    stranger = Client().get(path)
    assert (stranger.status_code, "started in another browser" in stranger.text) == (403, True)
    assert client.get(path)["Location"] == "/"
    assert client.get(path).status_code == 403


def test_state_of_one_organisation_is_not_accepted_at_another(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, charlie: User
):
    other = Tenant.objects.get(name="Charlie's")
    connect(other, idp, charlie)
    away = client.get(f"/sso/{tenant.id}/")
    back = requests.post(away["Location"], data={"email": "dora@acme.example"}, allow_redirects=False, timeout=5)
    query = urlsplit(back.headers["Location"]).query
    assert client.get(f"/sso/{other.id}/callback/?{query}").status_code == 403


def test_provider_at_an_internal_address_is_not_contacted(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, settings: Settings
):
    """The metadata may name any address, and a name may resolve to one: the socket's address decides."""
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    idp.paths.clear()
    answer = client.get(f"/sso/{tenant.id}/")
    assert (answer.status_code, "public address" in answer.text) == (403, True)
    assert idp.paths == []


def test_name_that_resolves_to_an_internal_address_is_refused_at_the_connection(
    idp: IdentityProvider, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    """The text of the URL gives no reason: only DNS, which the tenant controls, leads inside."""
    resolve = socket.getaddrinfo
    here = {"idp.acme.example": "127.0.0.1"}
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *args, **more: resolve(here.get(host, host), *args, **more))
    url = idp.issuer.replace("127.0.0.1", "idp.acme.example") + "/jwks"
    assert get_json(url)["keys"]
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    with pytest.raises(ForbiddenAddressError, match="no public address"):
        get_json(url)
    assert idp.paths == ["/jwks"]


def test_redirect_of_the_provider_is_not_followed(tenant: Tenant, idp: IdentityProvider):
    """It could lead the client secret elsewhere."""
    idp.redirects["/jwks"] = f"{idp.issuer}/elsewhere"
    with pytest.raises(SsoError, match="keys"):
        run_test(tenant=tenant, values=settings_of(idp), now=timezone.now())
    assert "/elsewhere" not in idp.paths


def test_redirect_with_a_large_body_is_not_read(idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch):
    """To prepare the next request, the library would read and decompress it whole."""
    idp.redirects["/jwks"] = f"{idp.issuer}/elsewhere"
    read: list[int] = []
    monkeypatch.setattr("requests.Response.content", property(lambda _self: read.append(1)))
    with pytest.raises(requests.TooManyRedirects), GuardedSession() as session:
        session.get(f"{idp.issuer}/jwks")
    assert read == []


def test_charset_of_the_provider_is_not_used(idp: IdentityProvider):
    """Some codecs of Python need a time that grows with the square of the length."""
    with GuardedSession() as session:
        response = session.get(f"{idp.issuer}/nothing")  # text/plain: Latin 1, if its charset counted
    assert response.encoding == "utf-8"


def test_provider_that_answers_bytewise_is_given_up(
    tenant: Tenant, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
):
    """Each byte would restart the time limit of a read."""
    monkeypatch.setattr("mgmt.sso.provider_steps.TOTAL_S", 0.5)
    idp.drips = True
    began = time.monotonic()
    with pytest.raises(SsoError, match="Check the issuer URL"):
        run_test(tenant=tenant, values=settings_of(idp), now=timezone.now())
    assert time.monotonic() - began < 5


def test_provider_that_claims_the_address_of_another_tenants_owner_gets_a_new_account(
    client: Client, tenant: Tenant, connection: SsoConnection, charlie: User
):
    User.objects.filter(pk=charlie.pk).update(email="charlie@bank.example")
    EmailAddress.objects.create(user=charlie, email="charlie@bank.example", verified=True, primary=True)
    go(client, tenant, "charlie@bank.example")
    signed_in = User.objects.get(pk=client.session["_auth_user_id"])
    assert signed_in != charlie
    assert signed_in.email == ""
    assert tenants_seen_by(client) == ["Alice's"]
    assert not SocialAccount.objects.filter(user=charlie).exists()


def test_subject_of_one_provider_is_nobody_at_another(
    tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, charlie: User
):
    """Both providers issue the same subject for the same address."""
    other = Tenant.objects.get(name="Charlie's")
    provider = IdentityProvider()
    provider.start()
    try:
        connect(other, provider, charlie)
        here, there = Client(), Client()
        go(here, tenant, "dora@acme.example")
        go(there, other, "dora@acme.example")
        assert here.session["_auth_user_id"] != there.session["_auth_user_id"]
        assert tenants_seen_by(there) == ["Charlie's"]
    finally:
        provider.stop()


def test_address_that_the_provider_has_not_verified_is_not_given_to_the_account(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: IdentityProvider
):
    """Some providers let their users enter any address, such as that of a colleague without an account."""
    verified(tenant, "acme.example")
    idp.lies = Lies(claims={"email_verified": None})
    go(client, tenant, "boss@acme.example")
    assert User.objects.get(username="boss").email == ""
    assert not EmailAddress.objects.filter(user__username="boss").exists()
