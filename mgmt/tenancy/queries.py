"""Queries of tenants for staff, and of open invitations."""

from typing import Any

from django.db.models import Count, Q, QuerySet

from mgmt.models import Invitation, Membership, Pipe, Tenant


def open_invitations(tenant_id: str) -> QuerySet[Invitation]:
    """Return a tenant's invitations that were neither accepted nor revoked, newest first, also expired ones."""
    rows = Invitation.objects.filter(tenant=tenant_id, accepted_at=None, revoked_at=None)
    return rows.select_related("invited_by").order_by("-created_at", "-id")


def tenants_for_staff() -> QuerySet[Tenant, Any]:
    """Return all tenants, newest first, with the numbers of owners who can sign in, members, pipes and invitations."""
    can_sign_in = Q(memberships__role=Membership.Role.OWNER, memberships__user__is_active=True)
    opened = Q(invitations__accepted_at=None, invitations__revoked_at=None)
    return Tenant.objects.annotate(
        owner_count=Count("memberships", can_sign_in, distinct=True),
        member_count=Count("memberships", distinct=True),
        pipe_count=Count("pipes", ~Q(pipes__state=Pipe.State.CLOSED), distinct=True),
        invitation_count=Count("invitations", opened, distinct=True),
    ).order_by("-created_at", "-id")
