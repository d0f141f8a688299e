"""Services of members: change a role, remove a member, require a second factor.

A tenant always keeps an owner who can sign in.
"""

import structlog
from django.db import transaction

from mgmt.audit.services import record
from mgmt.errors import InvalidValue, LastOwnerError, SecondFactorNeededError
from mgmt.models import Membership, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.tenancy.queries import has_second_factor
from mgmt.tenancy.services.invitations import revoke_invitations_of
from mgmt.tokens.services.tokens import revoke_tokens_of

log = structlog.get_logger(__name__)


@transaction.atomic
def change_role(*, membership: Membership, role: str, by: User) -> None:
    """Give a member another role. Raises InvalidValue, LastOwnerError."""
    if role not in Membership.Role.values:
        raise InvalidValue("role", f"needs one of {', '.join(Membership.Role.values)}")
    hold_tenant(membership.tenant_id)
    membership.refresh_from_db()
    if role != Membership.Role.OWNER:
        _keep_an_owner(membership)
        revoke_invitations_of(user=membership.user, tenant=membership.tenant, by=by)
    _record(membership, by, "member.role_changed", before=membership.role, after=role)
    Membership.objects.filter(pk=membership.pk).update(role=role)
    membership.role = role
    _note("role changed", membership, by)


@transaction.atomic
def remove_member(*, membership: Membership, by: User) -> None:
    """Remove a member, who may be `by`: a member who leaves. Raises LastOwnerError.

    Their invitations are revoked, and so are the API tokens that they have seen: their own and those that they created.
    """
    hold_tenant(membership.tenant_id)
    membership.refresh_from_db()
    _keep_an_owner(membership)
    _note("member removed", membership, by)
    _record(membership, by, "member.removed", before=membership.role)
    revoke_tokens_of(user=membership.user, tenant=membership.tenant, by=by)
    revoke_invitations_of(user=membership.user, tenant=membership.tenant, by=by)
    Membership.objects.filter(pk=membership.pk).delete()


@transaction.atomic
def set_require_mfa(*, tenant: Tenant, required: bool, by: User) -> None:
    """Require a second factor of the tenant's members, or no longer. Safe to repeat.

    Raises SecondFactorNeededError if `by` has none: they would lock themselves out.
    """
    if required and not has_second_factor(by):
        raise SecondFactorNeededError("Set up a second factor for your own account first.")
    hold_tenant(tenant.id)
    tenant.refresh_from_db(fields=["require_mfa"])
    before, after = {"require_mfa": tenant.require_mfa}, {"require_mfa": required}
    record(tenant=tenant, by=by, action="tenant.changed", target=tenant, before=before, after=after)
    Tenant.objects.filter(id=tenant.id).update(require_mfa=required)
    tenant.require_mfa = required
    log.info("second factor required" if required else "second factor optional", tenant=tenant.id, by=by.get_username())


def _keep_an_owner(leaving: Membership) -> None:
    """Raise LastOwnerError if no other owner can sign in. Needs the lock of the tenant: no constraint can count."""
    role = Membership.objects.filter(pk=leaving.pk).values_list("role", flat=True).first()
    owners = Membership.objects.filter(tenant_id=leaving.tenant_id, role=Membership.Role.OWNER, user__is_active=True)
    owners = owners.filter(user__is_service_account=False)
    if role == Membership.Role.OWNER and not owners.exclude(pk=leaving.pk).exists():
        raise LastOwnerError("A tenant needs an owner. Make another member an owner first.")


def _record(membership: Membership, by: User, action: str, *, before: str, after: str | None = None) -> None:
    record(
        tenant=membership.tenant,
        by=by,
        action=action,
        target=membership.user,
        before={"role": before},
        after={"role": after} if after else None,
    )


def _note(event: str, membership: Membership, by: User) -> None:
    log.info(
        event,
        tenant=membership.tenant_id,
        member=membership.user.get_username(),
        role=membership.role,
        by=by.get_username(),
    )
