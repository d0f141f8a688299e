"""API tokens and service accounts in lists, and the token of a request."""

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from mgmt.expiry import unexpired
from mgmt.models import ApiToken, Membership, ServiceAccount, SsoConnection
from mgmt.tenancy.roles import includes
from mgmt.tokens.models import ROLE_OF_SCOPE


def scopes_up_to(role: str) -> list[ApiToken.Scope]:
    """Return the scopes that a token of a user with this role may have."""
    return [scope for scope, needed in ROLE_OF_SCOPE.items() if includes(role, needed)]


def token_with_role(digest: str) -> ApiToken | None:
    """Return the token with its user; one query.

    `role`: of its user in the tenant (None: not a member); `is_vouched_for`: if it needs a connection of single
    sign-on, this is enabled.
    """
    role = Membership.objects.filter(user=OuterRef("user"), tenant=OuterRef("tenant")).values("role")
    connection = SsoConnection.objects.filter(id=OuterRef("sso_connection_id"), tenant=OuterRef("tenant"), enabled=True)
    vouched_for = Q(sso_connection_id="") | Exists(connection)
    rows = ApiToken.objects.select_related("user").annotate(role=Subquery(role), is_vouched_for=vouched_for)
    return rows.filter(digest=digest).first()


def live_tokens(tenant_id: str, now: datetime) -> QuerySet[ApiToken]:
    """Return the tokens of a tenant that can be used: neither revoked nor expired."""
    return ApiToken.objects.filter(unexpired(now), tenant_id=tenant_id, revoked_at=None)


def service_accounts_of(tenant_id: str) -> QuerySet[ServiceAccount]:
    """Return the service accounts of a tenant with their roles as `role`, by name. Removed ones are left out."""
    role = Membership.objects.filter(user=OuterRef("user"), tenant=OuterRef("tenant")).values("role")
    rows = ServiceAccount.objects.filter(tenant_id=tenant_id, removed_at=None).annotate(role=Subquery(role))
    return rows.select_related("user", "created_by").order_by("name")
