"""Services of the sign-in by single sign-on: admit an identity, link it to an account, note the sign-in."""

import re
import secrets
from datetime import datetime
from typing import Final

import structlog
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.db import IntegrityError, transaction

from mgmt.audit.services import SYSTEM, record
from mgmt.errors import SsoError
from mgmt.models import Membership, SsoConnection, User
from mgmt.sso.admission import Identity, SsoOutcome, decide
from mgmt.sso.queries import facts_of, invitation_for, owns_domain
from mgmt.tenancy.services.invitations import accept_invitation
from mgmt.tenancy.services.sign_up import has_account
from mgmt.tenancy.services.tenants import add_member

_NAME_CHARS: Final = 30
_NAME_TRIES: Final = 5
log = structlog.get_logger(__name__)


@transaction.atomic
def admit_identity(*, connection: SsoConnection, identity: Identity, now: datetime) -> User | None:
    """Return the account of an identity; create it, or its membership, if the tenant's policy says so.

    None if the identity has to be linked to an existing account first (`link_identity`). Raises SsoRefused.
    """
    facts = facts_of(connection, identity, now)
    match decide(facts):
        case SsoOutcome.LINK:
            return None
        case SsoOutcome.CREATE:
            user = _create_account(connection, identity)
            _join(connection, user, identity, now)
        case SsoOutcome.ACCEPT_INVITATION:
            user = _account_of(connection, identity)
            _join(connection, user, identity, now)
        case SsoOutcome.SIGN_IN:
            user = _account_of(connection, identity)
    return user


@transaction.atomic
def link_identity(*, connection: SsoConnection, identity: Identity, user: User) -> None:
    """Link an identity to the account of a member who has signed in by their own means. Raises SsoError."""
    if user.is_staff or user.is_superuser:
        raise SsoError("Accounts of Penstock's staff are not linked to single sign-on.")
    if not Membership.objects.filter(user=user, tenant=connection.tenant_id).exists():
        raise SsoError(
            f"{user.get_username()} is not a member of {connection.tenant.name}. Sign in with another account."
        )
    row, is_new = SocialAccount.objects.get_or_create(
        provider=connection.id, uid=identity.subject, defaults={"user": user, "extra_data": {}}
    )
    if row.user_id != user.pk:
        raise SsoError("This identity is linked to another account already. Ask an owner of your organisation.")
    if is_new:
        _record(connection, user, "sso.linked", identity.email)


@transaction.atomic
def note_sso_sign_in(*, connection: SsoConnection, user: User) -> None:
    """Add a completed sign-in to the audit log of the tenant."""
    record(tenant=connection.tenant_id, by=user, action="sso.session_started", target=connection)
    log.info("signed in by single sign-on", tenant=connection.tenant_id, user=user.get_username())


def _account_of(connection: SsoConnection, identity: Identity) -> User:
    row = SocialAccount.objects.select_related("user").get(provider=connection.id, uid=identity.subject)
    user: User = row.user
    return user


def _create_account(connection: SsoConnection, identity: Identity) -> User:
    """Create an account. It gets a verified address only if the tenant has verified the address's domain.

    Otherwise a tenant could occupy the address of a person that it knows nothing about, or a person a colleague's.
    """
    is_theirs = identity.is_verified and owns_domain(connection.tenant_id, identity.email)
    owns = is_theirs and not has_account(identity.email)
    user = _new_user(identity, identity.email if owns else "")
    if owns:
        EmailAddress.objects.create(user=user, email=identity.email, verified=True, primary=True)
    SocialAccount.objects.create(provider=connection.id, uid=identity.subject, user=user, extra_data={})
    _record(connection, user, "sso.linked", identity.email)
    return user


def _new_user(identity: Identity, email: str) -> User:
    stem = re.sub(r"[^a-z0-9._-]", "", (identity.email or identity.name).partition("@")[0].lower())[:_NAME_CHARS]
    stem = stem or "member"
    for attempt in range(_NAME_TRIES):
        name = stem if attempt == 0 else f"{stem}-{secrets.token_hex(2 + attempt)}"
        if name == SYSTEM.casefold() or User.objects.filter(username__iexact=name).exists():
            continue
        user = User(username=name, email=email)
        user.set_unusable_password()
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError:  # another sign-in took the name
            continue
        return user
    raise SsoError("Could not find a free user name. Sign in again.")


def _join(connection: SsoConnection, user: User, identity: Identity, now: datetime) -> None:
    """Accept the open invitation of the address, or else add the user with the default role."""
    invitation = invitation_for(connection, identity, now)
    if invitation is not None:
        accept_invitation(invitation=invitation, user=user, now=now)
    else:
        add_member(tenant=connection.tenant, user=user, role=Membership.Role(connection.default_role), by=None)


def _record(connection: SsoConnection, user: User, action: str, email: str) -> None:
    record(tenant=connection.tenant_id, by=user, action=action, target=connection, after={"email": email})
