"""Steps of a sign-in by SAML: connect a tenant to the provider of a test, ask, answer, post as a browser does."""

from typing import Any, Final
from urllib.parse import urlsplit

from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from mgmt.models import Membership, SsoConnection, Tenant, User
from mgmt.services import SsoSettings, save_connection
from mgmt.sso.pages.saml import HANDOFF_COOKIE
from tests.support.saml_provider import Asked, SamlProvider, asked_in

Role = Membership.Role
EMAIL: Final = "dora@acme.example"


def settings_of(idp: SamlProvider, **changes: Any) -> SsoSettings:
    return SsoSettings(protocol="saml", metadata_url=idp.entity_id, enabled=True)._replace(**changes)


def connect(tenant: Tenant, idp: SamlProvider, by: User, **changes: Any) -> SsoConnection:
    return save_connection(tenant=tenant, values=settings_of(idp, **changes), by=by, now=timezone.now())


def acs_of(tenant: Tenant) -> str:
    return f"/sso/{tenant.id}/saml/acs/"


def service_of(tenant: Tenant, settings: Settings) -> Asked:
    """Return the service of a tenant as a provider that starts the sign-in itself knows it."""
    base = f"{settings.PENSTOCK_WEB_URL}/sso/{tenant.id}/saml"
    return Asked(f"{base}/metadata/", f"{base}/acs/")


def asked_by(client: Client, tenant: Tenant) -> Asked:
    """Start a sign-in; return the request."""
    away = client.get(f"/sso/{tenant.id}/")
    assert away.status_code == 302, away.text
    asked, relay_state = asked_in(urlsplit(away["Location"]).query)
    assert relay_state == asked.id
    return asked


def post(client: Client, tenant: Tenant, response: str, relay_state: str = "") -> Any:
    """Post a response as a browser does: without cookies, as from another site. Follow the redirect with them.

    The browser keeps the cookie of the handoff until the redirect.
    """
    form = {"SAMLResponse": response, "RelayState": relay_state}
    answer = Client(enforce_csrf_checks=True).post(acs_of(tenant), form)
    if answer.status_code != 302:
        return answer
    assert list(answer.cookies) == [HANDOFF_COOKIE]
    client.cookies.update(answer.cookies)
    found = client.get(answer["Location"])
    assert not client.cookies[HANDOFF_COOKIE].value
    return found


def go(client: Client, tenant: Tenant, idp: SamlProvider, email: str = EMAIL) -> Any:
    """Sign in at the tenant's provider with an address; return the last response."""
    asked = asked_by(client, tenant)
    return post(client, tenant, idp.response(asked, email), asked.id)


def tenants_seen_by(client: Client) -> list[str]:
    return [one["name"] for one in client.get("/api/v1/me/").json()["tenants"]]


def refusal(answer: Any, client: Client, words: str) -> None:
    assert (answer.status_code, words in answer.text) == (403, True), answer.text
    assert "_auth_user_id" not in client.session
