"""Services of API tokens: create and revoke. A token is shown once; only its digest is stored."""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from dataplane.spec.keys import PREFIX_CHARS, key_digest
from mgmt.audit.services import record
from mgmt.errors import InvalidValue, LimitReachedError
from mgmt.models import ApiToken, Membership, Pipe, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.tenancy.names import checked_name
from mgmt.tokens.models import ROLE_OF_SCOPE, SCOPE_OF_ROLE
from mgmt.tokens.queries import live_tokens, scopes_up_to
from mgmt.tokens.text import new_token

DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 365
MAX_OF_USER: Final = 20  # tokens of one user that can be used at a time
MAX_TOKENS: Final = 100  # of a tenant that can be used at a time
USE_NOTED_EVERY: Final = timedelta(minutes=1)
log = structlog.get_logger(__name__)


@transaction.atomic
def create_token(
    *,
    tenant: Tenant,
    user: User,
    by: User,
    name: str,
    scope: str,
    days: int | None,
    now: datetime,
    pipe: Pipe | None = None,
) -> tuple[ApiToken, str]:
    """Create a token of a member. Return the row and the token itself, which cannot be shown again.

    user: whose token it is: a person, or a service account
    days: until it expires, 1 to MAX_DAYS; None for never, which only an owner may choose
    pipe: the only one that the token reaches; None for all of the tenant

    In a session by single sign-on, or by a token of one, the token is valid only while the connection is enabled.

    Raises InvalidValue, LimitReachedError.
    """
    name = checked_name("name", name)
    hold_tenant(tenant.id)  # before the roles are read: a member who is removed meanwhile gets no token
    roles = dict(Membership.objects.filter(tenant=tenant, user__in=[user, by]).values_list("user_id", "role"))
    _check_scope(scope, roles.get(user.pk))
    if days is None and roles.get(by.pk) != Membership.Role.OWNER:
        raise InvalidValue("expires_in_days", f"needs 1 to {MAX_DAYS} days; only an owner creates one without end")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise InvalidValue("expires_in_days", f"needs 1 to {MAX_DAYS} days")
    if pipe is not None and pipe.tenant_id != tenant.id:
        raise InvalidValue("pipe", "needs a pipe of the tenant")
    if live_tokens(tenant.id, now).filter(user=user).count() >= MAX_OF_USER:
        raise LimitReachedError(f"A user has at most {MAX_OF_USER} tokens. Revoke one that nobody uses.")
    if live_tokens(tenant.id, now).count() >= MAX_TOKENS:
        raise LimitReachedError(f"A tenant has at most {MAX_TOKENS} tokens. Revoke one that nobody uses.")
    text = new_token()
    row = ApiToken.objects.create(
        tenant=tenant,
        user=user,
        name=name,
        scope=scope,
        pipe=pipe,
        prefix=text[:PREFIX_CHARS],
        digest=key_digest(text),
        created_at=now,
        created_by=by,
        sso_connection_id=by.sso_connection_id,
        expires_at=now + timedelta(days=days) if days is not None else None,
    )
    about = {
        "scope": scope,
        "user": user.get_username(),
        "pipe": pipe.id if pipe else None,
        "expires_at": row.expires_at,
    }
    record(tenant=tenant, by=by, action="token.created", target=row, after=about)
    log.info("token created", tenant=tenant.id, token=row.id, scope=scope, user=user.username, by=by.username)
    return row, text


@transaction.atomic
def revoke_token(*, token: ApiToken, by: User, now: datetime) -> bool:
    """Revoke a token for good. Returns False if it was revoked already; the first time is kept."""
    return _revoke(ApiToken.objects.filter(id=token.id), by, now) == 1


@transaction.atomic
def revoke_tokens_of(*, user: User, tenant: Tenant, by: User) -> int:
    """Revoke the tokens of a user in a tenant, and those that they created and so know; return their number."""
    known = Q(user=user) | Q(created_by=user)
    return _revoke(ApiToken.objects.filter(known, tenant=tenant), by, timezone.now())


def note_use(token: ApiToken, address: str, now: datetime) -> None:
    """Store time and address of a request with the token, at most once a minute.

    The condition on the stored time lets one of several concurrent requests write.
    """
    if token.last_used_at is not None and now - token.last_used_at < USE_NOTED_EVERY:
        return
    unchanged = ApiToken.objects.filter(id=token.id, last_used_at=token.last_used_at)
    unchanged.update(last_used_at=now, last_used_from=address[:45])


def _check_scope(scope: str, role: str | None) -> None:
    if role is None:
        raise InvalidValue("user", "needs a member of the tenant")
    highest = SCOPE_OF_ROLE[Membership.Role(role)]
    if scope not in ROLE_OF_SCOPE:
        raise InvalidValue("scope", f"needs one of {', '.join(ApiToken.Scope)}")
    if scope not in scopes_up_to(role):
        raise InvalidValue("scope", f"needs at most {highest}: a token cannot do more than its user, who is {role}")


def _revoke(tokens: QuerySet[ApiToken], by: User, now: datetime) -> int:
    rows = list(tokens.filter(revoked_at=None).select_for_update(no_key=True, of=("self",)).select_related("user"))
    for row in rows:
        about = {"scope": row.scope, "user": row.user.get_username()}
        record(tenant=row.tenant_id, by=by, action="token.revoked", target=row, before=about)
    ApiToken.objects.filter(id__in=[row.id for row in rows]).update(revoked_at=now, revoked_by=by)
    if rows:
        log.info("tokens revoked", count=len(rows), by=by.username)
    return len(rows)
