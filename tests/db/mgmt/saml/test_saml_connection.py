"""Connection of a tenant to a SAML provider: metadata, its refresh, the page and the API."""

from datetime import timedelta

import pytest
from allauth.socialaccount.models import SocialAccount
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML
from pytest_django import Settings

from mgmt.models import AuditEntry, Membership, SsoConnection, Tenant, User
from mgmt.services import InvalidValue, SsoError, SsoSettings, remove_connection, save_connection
from mgmt.services import test_connection as run_test
from mgmt.sso.services.saml import keep_metadata_current
from mgmt.tenancy.services.rotation import rotate_secrets
from tests.db.cast import MakeClient
from tests.db.mgmt.saml.flow import EMAIL, Role, acs_of, connect, go, service_of, settings_of, tenants_seen_by
from tests.support.identity_provider import CLIENT, IdentityProvider
from tests.support.saml_provider import Lies, SamlProvider, metadata_of, new_signer, own_signer, subject_of

pytestmark = pytest.mark.django_db


def test_metadata_is_read_by_its_url_through_the_guard(
    tenant: Tenant, idp: SamlProvider, alice: User, settings: Settings
):
    connection = connect(tenant, idp, alice)
    assert (connection.issuer, connection.sso_url) == (idp.entity_id, f"{idp.url}/sign-in")
    assert connection.client_secret == ""
    rotate_secrets()
    with pytest.raises(SsoError, match="it returned 404"):
        run_test(tenant=tenant, values=settings_of(idp, metadata_url=f"{idp.url}/none"), now=timezone.now())
    with_password = idp.entity_id.replace("//", "//user:secret@")
    with pytest.raises(InvalidValue, match="without user name and password"):
        run_test(tenant=tenant, values=settings_of(idp, metadata_url=with_password), now=timezone.now())
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    idp.paths.clear()
    with pytest.raises(InvalidValue, match="public address"):
        run_test(tenant=tenant, values=settings_of(idp), now=timezone.now())
    assert idp.paths == []


def test_pasted_metadata_is_kept_until_another_is_entered(tenant: Tenant, idp: SamlProvider, alice: User):
    with pytest.raises(InvalidValue, match="address or the text"):
        connect(tenant, idp, alice, metadata_url="")
    with pytest.raises(InvalidValue, match="to be empty"):
        connect(tenant, idp, alice, metadata_xml="x")
    first = connect(tenant, idp, alice, metadata_url="", metadata_xml=idp.metadata())
    assert connect(tenant, idp, alice, metadata_url="", default_role="editor") == first
    assert idp.paths == []
    with pytest.raises(SsoError, match="not an XML document"):
        connect(tenant, idp, alice, metadata_url="", metadata_xml="<")


def test_new_certificate_of_the_provider_arrives_before_it_is_used(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User
):
    later = timezone.now() + timedelta(days=1, minutes=1)
    following = new_signer()
    idp.published = [own_signer(), following]
    keep_metadata_current(connection=connection, now=timezone.now())  # not due
    assert len(SsoConnection.objects.get().certificates) == 1
    idp.paths.clear()
    keep_metadata_current(connection=connection, now=later)
    keep_metadata_current(connection=connection, now=later)  # of another process: claimed once
    assert (idp.paths, len(SsoConnection.objects.get().certificates)) == (["/metadata"], 2)
    entry = AuditEntry.objects.filter(action="sso.configured").order_by("id").last()
    assert entry is not None
    assert len(entry.after["certificates"]) == 2
    idp.signer = following
    assert go(client, tenant, idp)["Location"] == "/"
    idp.signer = own_signer()
    assert go(Client(), tenant, idp)["Location"] == "/"


def test_metadata_that_cannot_be_read_again_changes_nothing_until_it_expires(
    client: Client, tenant: Tenant, idp: SamlProvider, alice: User
):
    end = timezone.now() + timedelta(days=3)
    idp.metadata_attributes = f' validUntil="{end:%Y-%m-%dT%H:%M:%SZ}"'
    connection = connect(tenant, idp, alice)
    before = SsoConnection.objects.get().certificates
    later = timezone.now() + timedelta(days=1, minutes=1)
    entity_id, idp.entity_id = idp.entity_id, "https://other.example"
    SsoConnection.objects.update(metadata_url=f"{idp.url}/none")
    connection.refresh_from_db()
    keep_metadata_current(connection=connection, now=later)
    keep_metadata_current(connection=connection, now=later + timedelta(minutes=59))  # waits for an hour
    assert idp.paths.count("/none") == 1
    keep_metadata_current(connection=connection, now=later + timedelta(minutes=61))
    assert idp.paths.count("/none") == 2
    assert SsoConnection.objects.get().certificates == before
    SsoConnection.objects.update(metadata_valid_until=timezone.now() - timedelta(days=1))
    answer = client.get(f"/sso/{tenant.id}/")
    assert (answer.status_code, "expired on" in answer.text) == (403, True)
    answer = client.post(acs_of(tenant), {"SAMLResponse": ""})
    assert "expired on" in answer.text
    idp.entity_id = entity_id


@pytest.mark.parametrize("change", ["remove", "paste"])
def test_metadata_that_arrives_after_a_change_of_an_owner_is_not_stored(
    tenant: Tenant,
    connection: SsoConnection,
    idp: SamlProvider,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
):
    pasted = metadata_of(idp.url, [own_signer(), new_signer()])

    def fetch(_url: str) -> bytes:
        if change == "remove":
            remove_connection(connection=SsoConnection.objects.get(), by=alice)
        else:
            connect(tenant, idp, alice, metadata_url="", metadata_xml=pasted)
        return idp.metadata().encode()

    monkeypatch.setattr("mgmt.sso.services.saml.fetch_metadata", fetch)
    keep_metadata_current(connection=connection, now=timezone.now() + timedelta(days=1, minutes=1))
    found = SsoConnection.objects.first()
    assert (found is None) if change == "remove" else (found is not None and len(found.certificates) == 2)


def test_our_metadata_and_request_conform_to_the_standard(client: Client, tenant: Tenant, connection: SsoConnection):
    answer = client.get(f"/sso/{tenant.id}/saml/metadata/")
    assert answer["Content-Type"] == "application/samlmetadata+xml"
    assert not isinstance(OneLogin_Saml2_XML.validate_xml(answer.content, "saml-schema-metadata-2.0.xsd"), str)
    assert f"/sso/{tenant.id}/saml/acs/" in answer.text
    with CaptureQueriesContext(database) as queries:
        unknown = client.get("/sso/ten_0000abtsr9nqx0v2cm1d/saml/metadata/")
    assert (unknown.status_code, len(queries)) == (200, 0)  # the same for each address: it says who exists to nobody


def test_page_and_api_show_what_the_provider_needs_and_what_it_published(
    tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User, client_of: MakeClient, settings: Settings
):
    client, service = Client(), service_of(tenant, settings)
    client.force_login(alice)
    page = client.get("/single-sign-on/").content.decode()
    for text in (service.entity_id, service.acs_url, "nameid-format:persistent", idp.entity_id, "SHA-256"):
        assert text in page
    assert "Client secret" not in page
    assert "replaces" in client.get("/single-sign-on/?protocol=oidc").content.decode()
    found = client_of(alice).get(f"/api/v1/tenants/{tenant.id}/single-sign-on/").json()
    assert (found["protocol"], found["entity_id"], found["acs_url"]) == ("saml", service.entity_id, service.acs_url)
    assert list(found["certificates"][0]) == ["fingerprint", "expires_at"]
    form = {"protocol": "saml", "metadata_url": idp.entity_id, "join_policy": "anyone", "default_role": "viewer"}
    tested = client.post("/single-sign-on/", form | {"test": "yes"}).content.decode()
    assert "The metadata can be used." in tested
    wrong = client.post("/single-sign-on/", form | {"metadata_url": "ftp://x"})
    assert (wrong.status_code, b"metadata-url-error" in wrong.content) == (422, True)
    wrong = client.post("/single-sign-on/", form | {"metadata_url": "", "metadata_xml": "<a"})
    assert (wrong.status_code, b"not an XML document" in wrong.content) == (409, True)


def test_last_way_in_of_the_owners_is_not_closed_by_another_provider_or_certificate(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User
):
    go(client, tenant, idp)
    dora = User.objects.get(username="dora")
    Membership.objects.filter(user=dora).update(role=Role.OWNER)
    Membership.objects.filter(user=alice).update(role=Role.EDITOR)
    for change in ({"enabled": False}, {"subject_attribute": "uid"}):
        with pytest.raises(SsoError, match="No owner could sign in"):
            connect(tenant, idp, dora, **change)
    following = new_signer()
    idp.published = [following]
    with pytest.raises(SsoError, match="No owner could sign in"):
        connect(tenant, idp, dora)
    idp.published = [own_signer(), following]
    assert len(connect(tenant, idp, dora, idp_initiated=True).certificates) == 2


def test_another_subject_attribute_or_protocol_is_another_connection(
    client: Client, tenant: Tenant, connection: SsoConnection, idp: SamlProvider, alice: User
):
    """An employee number means nothing to a NameID with the same text."""
    go(client, tenant, idp)
    connect(tenant, idp, alice, subject_attribute="uid")
    assert tenants_seen_by(client) == []
    assert not SocialAccount.objects.exists()
    idp.lies = Lies(attributes={"uid": [subject_of(EMAIL)]})
    other = Client()
    go(other, tenant, idp, "eve@acme.example")
    assert User.objects.get(pk=other.session["_auth_user_id"]).username == "eve"
    first = SsoConnection.objects.get().id
    connect(tenant, idp, alice, subject_attribute="uid", email_attribute="mail", default_role="editor")
    assert SsoConnection.objects.get().id == first


def test_paths_of_one_protocol_do_not_serve_the_other(
    client: Client, tenant: Tenant, connection: SsoConnection, alice: User
):
    assert client.get(f"/sso/{tenant.id}/callback/?code=c&state=s").status_code == 404
    oidc = IdentityProvider()
    oidc.start()
    try:
        values = SsoSettings(oidc.issuer, *CLIENT, enabled=True)
        save_connection(tenant=tenant, values=values, by=alice, now=timezone.now())
    finally:
        oidc.stop()
    assert client.post(acs_of(tenant), {"SAMLResponse": ""}).status_code == 404
    assert client.get(f"/sso/{tenant.id}/saml/finish/").status_code == 404
