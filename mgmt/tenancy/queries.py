"""Queries of tenants for staff, of open invitations, and of second factors."""

from typing import Any, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from mgmt.models import Invitation, Membership, Pipe, Tenant, User
from mgmt.tenancy.row_scope import all_tenants

_SECOND_FACTORS: Final = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def open_invitations(tenant_id: str) -> QuerySet[Invitation]:
    """Return a tenant's invitations that were neither accepted nor revoked, newest first, also expired ones."""
    rows = Invitation.objects.filter(tenant=tenant_id, accepted_at=None, revoked_at=None)
    return rows.select_related("invited_by").order_by("-created_at", "-id")


def members_of(tenant_id: str) -> QuerySet[Membership]:
    """Return a tenant's memberships of people, with their users, ordered by user name; service accounts are none."""
    rows = Membership.objects.filter(tenant=tenant_id, user__is_service_account=False)
    return rows.select_related("user").order_by("user__username")


def tenants_for_staff() -> QuerySet[Tenant, Any]:
    """Return all tenants, newest first, with the numbers of owners who can sign in, members, pipes and invitations."""
    people = Q(memberships__user__is_service_account=False)
    can_sign_in = people & Q(memberships__role=Membership.Role.OWNER, memberships__user__is_active=True)
    opened = Q(invitations__accepted_at=None, invitations__revoked_at=None)
    return Tenant.objects.annotate(
        owner_count=Count("memberships", can_sign_in, distinct=True),
        member_count=Count("memberships", people, distinct=True),
        pipe_count=Count("pipes", ~Q(pipes__state=Pipe.State.CLOSED), distinct=True),
        invitation_count=Count("invitations", opened, distinct=True),
    ).order_by("-created_at", "-id")


def session_users() -> QuerySet[User, Any]:
    """Return the users with `lacks_second_factor` (they need one and have none) and `tenant_ids`, in one query."""
    joined = Membership.objects.filter(user=OuterRef("pk")).order_by().values("tenant_id")
    return User.objects.annotate(lacks_second_factor=Q(_needs_one()) & ~Q(_has_one()), tenant_ids=ArraySubquery(joined))


@all_tenants("authentication")
def tenant_ids_of(user: User) -> list[str]:
    """Return the ids of the tenants of which the user is a member; without a query if `session_users` read the user."""
    known: list[str] | None = getattr(user, "tenant_ids", None)
    return list(Membership.objects.filter(user=user).values_list("tenant_id", flat=True)) if known is None else known


def has_second_factor(user: User) -> bool:
    """Return True if the user has an authenticator app or a passkey."""
    return bool(Authenticator.objects.filter(user=user, type__in=_SECOND_FACTORS).exists())


def has_owner_with_own_means(tenant_id: str) -> bool:
    """Return True if an owner can sign in without single sign-on: by password, passkey, or reset by e-mail."""
    owners = members_of(tenant_id).filter(role=Membership.Role.OWNER, user__is_active=True)
    passkeys = Authenticator.objects.filter(type=Authenticator.Type.WEBAUTHN).values("user")
    confirmed = EmailAddress.objects.filter(verified=True).values("user")
    password = ~Q(user__password="") & ~Q(user__password__startswith=UNUSABLE_PASSWORD_PREFIX)
    return bool(owners.filter(password | Q(user__in=passkeys) | Q(user__in=confirmed)).exists())


@all_tenants("authentication")
def is_password_enough(user: User) -> bool:
    """Return True if the user neither needs nor has a second factor."""
    return not User.objects.filter(Q(_needs_one()) | Q(_has_one()), pk=user.pk).exists()


def _needs_one() -> Q | Exists:
    # Owners of a tenant that requires single sign-on can still sign in without it, but not by a password alone.
    strict = Q(tenant__require_mfa=True) | Q(tenant__require_sso=True, role=Membership.Role.OWNER)
    as_member = Exists(Membership.objects.filter(strict, user=OuterRef("pk")))
    return as_member | Q(is_staff=True) if settings.PENSTOCK_STAFF_MFA else as_member


def _has_one() -> Exists:
    return Exists(Authenticator.objects.filter(user=OuterRef("pk"), type__in=_SECOND_FACTORS))
