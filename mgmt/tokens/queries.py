"""API tokens and service accounts in lists, and the token of a request."""

from datetime import datetime

from django.db.models import OuterRef, Q, QuerySet, Subquery

from mgmt.models import ApiToken, Membership, ServiceAccount
from mgmt.tenancy.roles import includes
from mgmt.tokens.models import ROLE_OF_SCOPE


def scopes_up_to(role: str) -> list[ApiToken.Scope]:
    """Return the scopes that a token of a user with this role may have."""
    return [scope for scope, needed in ROLE_OF_SCOPE.items() if includes(role, needed)]


def token_with_role(digest: str) -> ApiToken | None:
    """Return the token with its user, and its user's role in the tenant as `role` (None: not a member); one query."""
    role = Membership.objects.filter(user=OuterRef("user"), tenant=OuterRef("tenant")).values("role")
    return ApiToken.objects.select_related("user").annotate(role=Subquery(role)).filter(digest=digest).first()


def live_tokens(tenant_id: str, now: datetime) -> QuerySet[ApiToken]:
    """Return the tokens of a tenant that can be used: neither revoked nor expired."""
    rows = ApiToken.objects.filter(tenant_id=tenant_id, revoked_at=None)
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=now))


def service_accounts_of(tenant_id: str) -> QuerySet[ServiceAccount]:
    """Return the service accounts of a tenant with their roles as `role`, by name. Removed ones are left out."""
    role = Membership.objects.filter(user=OuterRef("user"), tenant=OuterRef("tenant")).values("role")
    rows = ServiceAccount.objects.filter(tenant_id=tenant_id, removed_at=None).annotate(role=Subquery(role))
    return rows.select_related("user", "created_by").order_by("name")
