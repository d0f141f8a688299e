"""Steps of a sign-in by OpenID Connect: connect a tenant to the provider of a test, go there, come back."""

from typing import Any
from urllib.parse import urlsplit

import requests
from django.test import Client
from django.utils import timezone

from mgmt.models import Membership, SsoConnection, SsoDomain, Tenant, User
from mgmt.services import SsoSettings, save_connection
from tests.support.identity_provider import CLIENT, IdentityProvider

Role = Membership.Role


def settings_of(idp: IdentityProvider, **changes: Any) -> SsoSettings:
    return SsoSettings(idp.issuer, *CLIENT, enabled=True, join_policy="anyone", default_role="viewer")._replace(
        **changes
    )


def connect(tenant: Tenant, idp: IdentityProvider, by: User, **changes: Any) -> SsoConnection:
    return save_connection(tenant=tenant, values=settings_of(idp, **changes), by=by, now=timezone.now())


def verified(tenant: Tenant, domain: str) -> None:
    SsoDomain.objects.create(tenant=tenant, domain=domain, token="t", verified_at=timezone.now())


def go(client: Client, tenant: Tenant, email: str) -> Any:
    """Sign in at the tenant's provider with an address; return the response of the callback."""
    away = client.get(f"/sso/{tenant.id}/")
    assert away.status_code == 302, away.text
    back = requests.post(away["Location"], data={"email": email}, allow_redirects=False, timeout=5)
    parts = urlsplit(back.headers["Location"])
    return client.get(f"{parts.path}?{parts.query}")


def tenants_seen_by(client: Client) -> list[str]:
    return [one["name"] for one in client.get("/api/v1/me/").json()["tenants"]]


def refusal(client: Client, tenant: Tenant, email: str = "dora@acme.example") -> str:
    answer = go(client, tenant, email)
    assert answer.status_code == 403
    assert "_auth_user_id" not in client.session
    return str(answer.text)
