"""Portal links: those that are open, the one of a token, and the user as whom it acts."""

from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from mgmt.models import Destination, Membership, PortalLink, User
from mgmt.tenancy.models import Grant
from mgmt.tenancy.roles import includes, lower_role
from mgmt.tenancy.row_scope import all_tenants
from mgmt.tenancy.secrets import link_token_digest

REDRIVE_ROLE: Final = Membership.Role.OPERATOR
EDIT_ROLE: Final = Membership.Role.EDITOR


def open_portal_links(*, tenant_id: str, now: datetime, destination_id: int | None = None) -> QuerySet[PortalLink]:
    """Return the open links of a tenant, or of one destination, newest first."""
    rows = PortalLink.objects.filter(destination__pipe__tenant=tenant_id, revoked_at=None, expires_at__gt=now)
    rows = rows if destination_id is None else rows.filter(destination=destination_id)
    return rows.select_related("author", "destination__pipe").order_by("-created_at", "-id")


def example_destination(tenant_id: str) -> Destination | None:
    """Return the tenant's newest destination that may have a portal, for the command of the page."""
    rows = Destination.objects.filter(pipe__tenant=tenant_id, config__type="http")
    return rows.exclude(state=Destination.State.REMOVED).order_by("-id").first()


@all_tenants("link")
def portal_link_of_token(token: str) -> PortalLink | None:
    """Return the link of a token, also a closed one, with its destination, pipe and tenant; None if it is unknown."""
    rows = PortalLink.objects.filter(digest=link_token_digest(token))
    return rows.select_related("destination__pipe__tenant", "author").first()


def role_needed(*, may_edit: bool) -> Membership.Role:
    """Return the role that a link's author needs to give these permissions, and as long as it is open."""
    return EDIT_ROLE if may_edit else REDRIVE_ROLE


def acting_user(link: PortalLink) -> User | None:
    """Return the author of a link, limited to its pipe and permissions; None if they may no longer give these.

    Entries of the audit log name the link as they name a token.
    """
    user, pipe = link.author, link.destination.pipe
    role = Membership.objects.filter(user=user, tenant=pipe.tenant_id).values_list("role", flat=True).first()
    if role is None or not user.is_active or not includes(role, role_needed(may_edit=link.may_edit)):
        return None
    wanted = EDIT_ROLE if link.may_edit else REDRIVE_ROLE if link.may_redrive else Membership.Role.VIEWER
    user.grant = Grant(link.id, f"portal link for {link.label}", pipe.tenant_id, lower_role(wanted, role), pipe.id)
    return user
