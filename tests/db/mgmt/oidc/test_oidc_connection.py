"""Connection of a tenant to its provider: settings, their test, e-mail domains, required single sign-on."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from cryptography.fernet import Fernet
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from mgmt.models import Membership, SsoConnection, SsoDomain, Tenant, User
from mgmt.services import (
    DomainNotVerifiedError,
    InvalidValue,
    SsoError,
    add_domain,
    create_service_account,
    create_tenant,
    make_sign_in_link,
    remove_connection,
    set_require_sso,
    verify_domain,
)
from mgmt.services import test_connection as run_test
from mgmt.sso.provider_steps import StepSlots
from mgmt.sso.services.connections import client_secret_of
from mgmt.tenancy.services.rotation import rotate_secrets
from tests.db.cast import MakeClient
from tests.db.mgmt.oidc.flow import Role, connect, go, settings_of, tenants_seen_by, verified
from tests.support.identity_provider import CLIENT, IdentityProvider, Lies
from tests.support.name_server import NameServer

pytestmark = pytest.mark.django_db


def test_last_way_in_of_the_owners_is_not_closed(
    client: Client,
    tenant: Tenant,
    connection: SsoConnection,
    idp: IdentityProvider,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
):
    go(client, tenant, "dora@acme.example")
    dora = User.objects.get(username="dora")
    Membership.objects.filter(user=dora).update(role=Role.OWNER)
    Membership.objects.filter(user=alice).update(role=Role.EDITOR)
    create_service_account(tenant=tenant, name="ci", role=Role.OWNER, by=dora, now=timezone.now())
    Authenticator.objects.create(user=dora, type=Authenticator.Type.TOTP, data={"secret": "x"})
    url = f"/api/v1/tenants/{tenant.id}/single-sign-on/"
    form = settings_of(idp)._asdict() | {"enabled": ""}
    assert client.post("/single-sign-on/", form).status_code == 409
    answer = client.delete(url)
    assert (answer.status_code, answer.json()["code"]) == (409, "sso-failed")
    other = IdentityProvider()
    other.start()
    try:
        for act in (
            lambda: connect(tenant, other, dora),
            lambda: connect(tenant, idp, dora, enabled=False),
            lambda: add_domain(tenant=tenant, domain="typo.example", by=dora),
            lambda: set_require_sso(tenant=tenant, required=True, by=dora),
        ):
            with pytest.raises(SsoError, match="No owner could sign in"):
                act()
        monkeypatch.setattr("mgmt.sso.services.connections.test_connection", lambda **_: None)
        with pytest.raises(SsoError, match="No owner could sign in"):  # subjects may depend on the client
            connect(tenant, idp, dora, client_id="another")
    finally:
        other.stop()
    assert SsoConnection.objects.get().enabled
    connect(tenant, idp, dora, default_role="editor")  # closes nothing

    passkey = Authenticator.objects.create(user=dora, type=Authenticator.Type.WEBAUTHN, data={})
    set_require_sso(tenant=tenant, required=True, by=dora)
    passkey.delete()
    Membership.objects.filter(user=alice).update(role=Role.OWNER)  # has a password
    connect(tenant, idp, dora, enabled=False)
    connect(tenant, idp, dora)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.delete(url).status_code == 409
    EmailAddress.objects.create(user=dora, email="dora@acme.example", verified=True, primary=True)
    assert client.delete(url).status_code == 204


def test_settings_have_only_printable_characters(
    tenant: Tenant, idp: IdentityProvider, alice: User, client_of: MakeClient
):
    client, form = client_of(alice), settings_of(idp, enabled=False)._asdict() | {"enabled": ""}
    for field in ("issuer", "client_id", "client_secret"):
        for text in ("a\0b", "a\u202eb"):
            values = form | {field: form[field] + text}
            assert client.post("/single-sign-on/", values, format="multipart").status_code == 422, (field, text)
            body = values | {"enabled": False}
            answer = client.put(f"/api/v1/tenants/{tenant.id}/single-sign-on/", body, format="json")
            assert answer.status_code == 400, (field, text)
    assert not SsoConnection.objects.exists()


def test_required_single_sign_on_hides_the_tenant_from_other_sessions(
    tenant: Tenant, connection: SsoConnection, alice: User, bob: User, client_of: MakeClient
):
    Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={"secret": "x"})
    set_require_sso(tenant=tenant, required=True, by=alice)
    by_password = client_of(bob)
    assert "requires single sign-on" in by_password.get("/").content.decode()
    assert by_password.get("/api/v1/me/").json()["tenants"] == []
    assert by_password.get(f"/api/v1/tenants/{tenant.id}/members/").status_code == 404
    assert client_of(alice).get(f"/api/v1/tenants/{tenant.id}/members/").status_code == 200
    sso = Client()
    go(sso, tenant, "dora@acme.example")
    assert sso.get(f"/api/v1/tenants/{tenant.id}/members/").status_code == 200


def test_owner_needs_a_second_factor_to_require_and_to_pass_by(
    tenant: Tenant, connection: SsoConnection, alice: User, bob: User, client: Client
):
    from mgmt.services import SecondFactorNeededError

    with pytest.raises(SecondFactorNeededError):
        set_require_sso(tenant=tenant, required=True, by=alice)
    factor = Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={"secret": "x"})
    set_require_sso(tenant=tenant, required=True, by=alice)
    factor.delete()
    client.get(make_sign_in_link(user=alice, base_url=""))
    assert client.get("/members/")["Location"] == "/account/"


def test_requirement_ends_with_the_connection_and_so_do_its_sessions(
    tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, alice: User
):
    Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={"secret": "x"})
    set_require_sso(tenant=tenant, required=True, by=alice)
    sso = Client()
    go(sso, tenant, "dora@acme.example")
    connect(tenant, idp, alice, enabled=False)
    assert not Tenant.objects.get(id=tenant.id).require_sso
    assert tenants_seen_by(sso) == []
    with pytest.raises(SsoError, match="Enable"):
        set_require_sso(tenant=tenant, required=True, by=alice)
    connect(tenant, idp, alice)
    assert tenants_seen_by(sso) == ["Alice's"]
    remove_connection(connection=SsoConnection.objects.get(tenant=tenant), by=alice)
    connect(tenant, idp, alice)
    assert tenants_seen_by(sso) == []  # another connection: its provider has confirmed nobody
    assert not SocialAccount.objects.exists()


def test_disabled_connection_signs_nobody_in(client: Client, tenant: Tenant, idp: IdentityProvider, alice: User):
    connect(tenant, idp, alice, enabled=False)
    assert client.get(f"/sso/{tenant.id}/").status_code == 404
    assert client.get(f"/sso/{tenant.id}/callback/?code=x&state=y").status_code == 404


def test_sign_in_page_finds_the_organisation_by_its_name_or_a_verified_domain(
    client: Client, tenant: Tenant, connection: SsoConnection, charlie: User
):
    way = f"/sso/{tenant.id}/"
    SsoDomain.objects.create(tenant=tenant, domain="bank.example", token="t")
    verified(tenant, "acme.example")
    for typed in ("alice's", "anybody@acme.example", "x@ACME.example"):
        assert way in client.post("/sso/", {"organisation": typed}).text
    for typed in ("", "Charlie's", "victim@bank.example", "x@mail.acme.example", "\0"):
        assert client.post("/sso/", {"organisation": typed}).status_code == 404
    create_tenant(name="ALICE'S", owner=charlie)
    assert way in client.post("/sso/", {"organisation": "alice's"}).text  # the other one has no single sign-on


def test_test_of_the_connection_says_what_to_change(tenant: Tenant, idp: IdentityProvider, settings: Settings):
    def complaint(**changes: Any) -> str:
        with pytest.raises((SsoError, InvalidValue)) as refused:
            run_test(tenant=tenant, values=settings_of(idp, **changes), now=timezone.now())
        return str(refused.value)

    run_test(tenant=tenant, values=settings_of(idp), now=timezone.now())
    assert "client secret" in complaint(client_secret="wrong")
    assert "client_secret" in complaint(client_secret="")
    assert "Check the issuer URL" in complaint(issuer=f"{idp.issuer}/realms/none")
    assert "Check the issuer URL" in complaint(issuer="http://127.0.0.1:2")
    assert "default_role" in complaint(default_role="owner")
    idp.lies = Lies(metadata={"issuer": "https://login.example.com"})
    assert "'https://login.example.com'. Enter exactly this text" in complaint()
    idp.lies = Lies(metadata={"token_endpoint": "ftp://x"})
    assert "no token_endpoint" in complaint()
    idp.lies = Lies(metadata={"response_types_supported": ["id_token"]})
    assert "authorization code flow" in complaint()
    idp.lies = Lies(metadata={"jwks_uri": "http://metadata.internal/latest"})
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.1/32"
    assert "keys" in complaint()
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    assert "public address" in complaint()


def test_stored_secret_is_bound_to_its_issuer_and_rotated(
    tenant: Tenant, connection: SsoConnection, idp: IdentityProvider, alice: User, settings: Settings
):
    assert CLIENT[1] not in connection.client_secret
    with pytest.raises(InvalidValue, match="entered again"):
        connect(tenant, idp, alice, issuer="https://login.example.com", client_secret="", enabled=False)
    connect(tenant, idp, alice, client_secret="", default_role="editor")
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode(), *settings.PENSTOCK_FERNET_KEYS]
    rotate_secrets()
    settings.PENSTOCK_FERNET_KEYS = settings.PENSTOCK_FERNET_KEYS[:1]
    assert client_secret_of(SsoConnection.objects.get(tenant=tenant)) == CLIENT[1]


def test_another_issuer_ends_identities_and_sessions(
    client: Client, tenant: Tenant, connection: SsoConnection, alice: User
):
    go(client, tenant, "dora@acme.example")
    other = IdentityProvider()
    other.start()
    try:
        connect(tenant, other, alice)
    finally:
        other.stop()
    assert tenants_seen_by(client) == []
    assert not SocialAccount.objects.exists()


def test_domain_is_verified_by_its_dns_record(tenant: Tenant, alice: User, charlie: User, name_server: NameServer):
    domain = add_domain(tenant=tenant, domain=" @Acme.Example ", by=alice)
    assert domain.domain == "acme.example"
    now = timezone.now()
    with pytest.raises(DomainNotVerifiedError, match=r"_penstock\.acme\.example"):
        verify_domain(domain=domain, by=alice, now=now)
    slots = StepSlots()
    slots.take(tenant.id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgmt.sso.provider_steps._slots", slots)
        patch.setattr("mgmt.sso.provider_steps.WAIT_S", 0.02)
        with pytest.raises(SsoError, match="busy"):
            verify_domain(domain=domain, by=alice, now=now)
    name_server.records["_penstock.acme.example."] = ["another text"]
    with pytest.raises(DomainNotVerifiedError):
        verify_domain(domain=domain, by=alice, now=now)
    name_server.records["_penstock.acme.example."].append(domain.token)
    verify_domain(domain=domain, by=alice, now=now)
    assert SsoDomain.objects.get().verified_at == now

    theirs = add_domain(tenant=Tenant.objects.get(name="Charlie's"), domain="acme.example", by=charlie)
    with pytest.raises(DomainNotVerifiedError):  # its token is another one
        verify_domain(domain=theirs, by=charlie, now=now)
    name_server.records["_penstock.acme.example."].append(theirs.token)
    with pytest.raises(DomainNotVerifiedError, match="Another tenant"):
        verify_domain(domain=theirs, by=charlie, now=now)
    for wrong in ("acme", "a b.example", "http://acme.example", "x" * 250 + ".example", "127.0.0.1", ""):
        with pytest.raises(InvalidValue):
            add_domain(tenant=tenant, domain=wrong, by=alice)
