"""Services of service accounts: create, change the role, disable and remove."""

import re
import secrets
from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction

from mgmt.audit.services import record
from mgmt.errors import InvalidValue, LimitReachedError, NameTakenError
from mgmt.models import Membership, ServiceAccount, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.tokens.queries import service_accounts_of
from mgmt.tokens.services.tokens import revoke_tokens_of

MAX_ACCOUNTS: Final = 50  # of a tenant
NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
log = structlog.get_logger(__name__)


@transaction.atomic
def create_service_account(*, tenant: Tenant, name: str, role: str, by: User, now: datetime) -> ServiceAccount:
    """Create a user for a program, with a role in the tenant. It has no password and no e-mail address.

    Raises InvalidValue, NameTakenError, LimitReachedError.
    """
    if not NAME.fullmatch(name):
        raise InvalidValue("name", "needs 1 to 40 characters: a-z, 0-9 and -, not - first")
    hold_tenant(tenant.id)
    if service_accounts_of(tenant.id).count() >= MAX_ACCOUNTS:
        raise LimitReachedError(f"A tenant has at most {MAX_ACCOUNTS} service accounts. Remove one first.")
    user = User(username=f"{name}@service-{secrets.token_hex(5)}", is_service_account=True)
    user.set_unusable_password()
    user.save(force_insert=True)
    try:
        with transaction.atomic():
            account = ServiceAccount.objects.create(tenant=tenant, user=user, name=name, created_at=now, created_by=by)
    except IntegrityError as exc:
        raise NameTakenError(f"Another service account is named {name}. Choose another name.") from exc
    Membership.objects.create(tenant=tenant, user=user, role=_role(role))
    record(tenant=tenant, by=by, action="service_account.created", target=account, after={"role": role})
    log.info("service account created", tenant=tenant.id, account=account.id, role=role, by=by.username)
    return account


@transaction.atomic
def change_service_account(
    *, account: ServiceAccount, by: User, role: str | None = None, is_active: bool | None = None
) -> None:
    """Set the role, or disable or enable the account; None leaves it unchanged. Raises InvalidValue.

    While it is disabled, its tokens are refused; they are valid again once it is enabled.
    """
    hold_tenant(account.tenant_id)
    membership = Membership.objects.select_related("user").get(tenant=account.tenant_id, user=account.user_id)
    before = {"role": membership.role, "is_active": membership.user.is_active}
    after = {"role": role or membership.role, "is_active": before["is_active"] if is_active is None else is_active}
    if role is not None:
        Membership.objects.filter(pk=membership.pk).update(role=_role(role))
    if is_active is not None:
        User.objects.filter(pk=account.user_id).update(is_active=is_active)
    record(
        tenant=account.tenant_id, by=by, action="service_account.changed", target=account, before=before, after=after
    )
    log.info("service account changed", account=account.id, role=role, is_active=is_active, by=by.username)


@transaction.atomic
def remove_service_account(*, account: ServiceAccount, by: User, now: datetime) -> None:
    """Remove the account for good: its tokens are revoked and its role ends. Safe to repeat."""
    revoke_tokens_of(user=account.user, tenant=account.tenant, by=by)
    Membership.objects.filter(user=account.user_id).delete()
    User.objects.filter(pk=account.user_id).update(is_active=False)
    if ServiceAccount.objects.filter(id=account.id, removed_at=None).update(removed_at=now):
        record(tenant=account.tenant_id, by=by, action="service_account.removed", target=account)
        log.info("service account removed", tenant=account.tenant_id, account=account.id, by=by.username)


def _role(role: str) -> Membership.Role:
    try:
        return Membership.Role(role)
    except ValueError as exc:
        raise InvalidValue("role", f"needs one of {', '.join(Membership.Role)}") from exc
