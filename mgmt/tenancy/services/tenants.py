"""Services of tenants: create one, add members."""

from django.db import IntegrityError, transaction

from dataplane.tables.sealed import salt_place
from mgmt.audit.services import record
from mgmt.errors import AlreadyMemberError
from mgmt.models import Membership, Tenant, User
from mgmt.tenancy.names import checked_name
from mgmt.tenancy.secrets import encrypt, new_mask_salt


@transaction.atomic
def create_tenant(*, name: str, owner: User, by: User | None = None) -> Tenant:
    """Create a tenant with its first owner, who creates it unless `by` does. Raises InvalidValue for the name."""
    tenant = Tenant(name=checked_name("name", name))
    tenant.mask_salt = encrypt(new_mask_salt(), salt_place(tenant.id))
    tenant.save(force_insert=True)
    record(tenant=tenant, by=by or owner, action="tenant.created", target=tenant)
    add_member(tenant=tenant, user=owner, role=Membership.Role.OWNER, by=by or owner)
    return tenant


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
