"""Services of tenants: create one, add members."""

from datetime import datetime

import structlog
from django.db import IntegrityError, transaction

from dataplane.tables.sealed import salt_place
from mgmt.audit.services import record
from mgmt.errors import AlreadyMemberError
from mgmt.models import Invitation, Membership, Tenant, User
from mgmt.tenancy.names import checked_name
from mgmt.tenancy.secrets import encrypt, new_mask_salt
from mgmt.tenancy.services.invitations import add_invitation, mail_invitation

log = structlog.get_logger(__name__)


@transaction.atomic
def create_tenant(*, name: str, owner: User) -> Tenant:
    """Create a tenant for its first owner. Raises InvalidValue for the name."""
    tenant = _new_tenant(name, owner)
    add_member(tenant=tenant, user=owner, role=Membership.Role.OWNER, by=owner)
    return tenant


def open_tenant(*, name: str, owner_email: str, by: User | None, now: datetime) -> tuple[Tenant, Invitation]:
    """Create a tenant and invite its first owner by e-mail. `mail_error` of the invitation says if that failed.

    by: the member of staff; None for the command line

    Raises InvalidValue for the name or the address, TooManyInvitationsError.
    """
    with transaction.atomic():
        tenant = _new_tenant(name, by)
        invitation, token = add_invitation(
            tenant=tenant, email=owner_email, role=Membership.Role.OWNER, by=by, now=now, field="owner_email"
        )
    log.info("tenant created", tenant=tenant.id, by=by.get_username() if by else "command line")
    mail_invitation(invitation=invitation, token=token)
    return tenant, invitation


def add_member(*, tenant: Tenant, user: User, role: Membership.Role, by: User | None = None) -> Membership:
    """Add a user to a tenant with a role. Raises AlreadyMemberError if they have one."""
    try:
        with transaction.atomic():
            member = Membership.objects.create(tenant=tenant, user=user, role=role)
            record(tenant=tenant, by=by, action="member.added", target=user, after={"role": role})
            return member
    except IntegrityError as exc:
        raise AlreadyMemberError(
            f"{user} is already a member of {tenant}. Change the role of that membership."
        ) from exc


def _new_tenant(name: str, by: User | None) -> Tenant:
    tenant = Tenant(name=checked_name("name", name))
    tenant.mask_salt = encrypt(new_mask_salt(), salt_place(tenant.id))
    tenant.save(force_insert=True)
    record(tenant=tenant, by=by, action="tenant.created", target=tenant)
    return tenant
