"""Queries of single sign-on: connections by what a person enters, and facts about an identity."""

from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.db.models import Q, QuerySet

from mgmt.models import Invitation, Membership, SsoConnection, SsoDomain, Tenant, User
from mgmt.sso.admission import Identity, IdentityFacts, KnownAccount
from mgmt.tenancy.queries import open_invitations
from mgmt.tenancy.row_scope import all_tenants


def connection_of(tenant_id: str) -> SsoConnection | None:
    """Return the connection of a tenant."""
    return SsoConnection.objects.select_related("tenant").filter(tenant=tenant_id).first()


@all_tenants("authentication")
def enabled_connection(**wanted: str) -> SsoConnection | None:
    """Return the connection by which people can sign in, with its tenant; `wanted`: its id, or tenant."""
    return _enabled_connections().filter(**wanted).first()


def domains_of(tenant_id: str) -> list[SsoDomain]:
    """Return the e-mail domains of a tenant, by name."""
    return list(SsoDomain.objects.filter(tenant=tenant_id).order_by("domain"))


@all_tenants("authentication")
def find_connection(text: str) -> SsoConnection | None:
    """Return the connection for an e-mail address or the name of an organisation; None if there is not exactly one.

    An address counts by its domain, if the tenant has verified the domain: otherwise any tenant could send the people
    of a domain to a sign-in page of its own.
    """
    text = text.strip().replace("\0", "\ufffd")
    if "@" in text:
        domain = text.rpartition("@")[2].lower()
        tenants = Tenant.objects.filter(sso_domains__domain=domain, sso_domains__verified_at__isnull=False)
    else:
        tenants = Tenant.objects.filter(name__iexact=text)
    found = list(_enabled_connections().filter(tenant__in=tenants)[:2])
    return found[0] if len(found) == 1 else None


def invitation_for(connection: SsoConnection, identity: Identity, now: datetime) -> Invitation | None:
    """Return the open invitation that a claimed address accepts.

    Some providers let their users claim any address: the invitation of an owner needs the link in the e-mail, and
    without `is_verified` it gives no more than anyone gets.
    """
    if not identity.email:
        return None
    rows = open_invitations(connection.tenant_id).filter(email=identity.email, expires_at__gt=now)
    if not identity.is_verified:
        rows = rows.filter(role__in=[Membership.Role.VIEWER, connection.default_role])
    return rows.exclude(role=Membership.Role.OWNER).first()


def facts_of(connection: SsoConnection, identity: Identity, now: datetime) -> IdentityFacts:
    """Return the facts by which an identity is admitted."""
    email = identity.email
    account = SocialAccount.objects.select_related("user").filter(provider=connection.id, uid=identity.subject).first()
    members = Membership.objects.filter(tenant=connection.tenant_id)
    known = None
    if account is not None:
        is_member = members.filter(user=account.user_id).exists()
        is_staff = account.user.is_staff or account.user.is_superuser
        known = KnownAccount(account.user.is_active, is_staff, is_member)
    return IdentityFacts(
        email=email,
        domains=[row.domain for row in domains_of(connection.tenant_id)],
        account=known,
        is_address_of_member=bool(email) and members.filter(user__in=_accounts_with(email)).exists(),
        is_invited=invitation_for(connection, identity, now) is not None,
        joins_freely=connection.join_policy == SsoConnection.JoinPolicy.ANYONE,
    )


def owns_domain(tenant_id: str, email: str) -> bool:
    """Return True if the tenant has verified the domain of an address."""
    domain = email.rpartition("@")[2]
    return SsoDomain.objects.filter(tenant=tenant_id, domain=domain, verified_at__isnull=False).exists()


def _enabled_connections() -> QuerySet[SsoConnection]:
    return SsoConnection.objects.select_related("tenant").filter(enabled=True)


def _accounts_with(email: str) -> QuerySet[User]:
    confirmed = EmailAddress.objects.filter(email=email, verified=True).values("user_id")
    return User.objects.filter(Q(email__iexact=email) | Q(id__in=confirmed))
