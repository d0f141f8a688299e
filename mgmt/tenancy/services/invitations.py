"""Services of invitations: send, re-send, revoke and accept them.

The token of a link is random and is only in the e-mail; the database has its digest. Each e-mail has a new token, so
only the newest link works.
"""

from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from mgmt.audit.services import record
from mgmt.errors import (
    AlreadyMemberError,
    InvalidValue,
    InvitationInvalidError,
    LimitReachedError,
    NameTakenError,
    TooManyInvitationsError,
)
from mgmt.models import Invitation, Membership, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.tenancy.row_scope import all_tenants
from mgmt.tenancy.secrets import link_token_digest, new_link_token
from mgmt.tenancy.services.rate_limits import TryLimit, hit

VALID_FOR: Final = timedelta(days=7)
MOST_OPEN: Final = 100  # of a tenant
# Per day, over all tenants: nobody can flood an address that is not theirs with e-mail.
PER_ADDRESS: Final = TryLimit("invitation: address", 5, timedelta(days=1))
PER_TENANT: Final = TryLimit("invitation: tenant", 100, timedelta(days=1))
log = structlog.get_logger(__name__)


def invite_member(*, tenant: Tenant, email: str, role: str, by: User, now: datetime) -> Invitation:
    """Invite a person by e-mail. `mail_error` of the invitation says if the e-mail could not be sent.

    Raises InvalidValue, AlreadyMemberError, NameTakenError, LimitReachedError, TooManyInvitationsError.
    """
    with transaction.atomic():
        invitation, token = add_invitation(tenant=tenant, email=email, role=role, by=by, now=now)
    mail_invitation(invitation=invitation, token=token)
    return invitation


def add_invitation(
    *, tenant: Tenant, email: str, role: str, by: User | None, now: datetime, field: str = "email"
) -> tuple[Invitation, str]:
    """Store an invitation. Return it and its token, for `mail_invitation` after the commit. Needs a transaction.

    field: name of the address in the request, for InvalidValue

    Raises as `invite_member`.
    """
    email = _checked_address(field, email)
    if role not in Membership.Role.values:
        raise InvalidValue("role", f"needs one of {', '.join(Membership.Role.values)}")
    hold_tenant(tenant.id)
    if tenant.memberships.filter(user__email__iexact=email).exists():
        raise AlreadyMemberError(f"A member of {tenant} has this address. Change the role of that member.")
    opened = tenant.invitations.filter(accepted_at=None, revoked_at=None)
    opened.filter(expires_at__lte=now).update(revoked_at=now)
    if opened.filter(email=email).exists():
        raise NameTakenError("This address is already invited. Send the invitation again, or revoke it first.")
    if opened.count() >= MOST_OPEN:
        raise LimitReachedError(f"A tenant has at most {MOST_OPEN} open invitations. Revoke one first.")
    _count_mail(tenant.id, email, now)
    token = new_link_token()
    invitation = Invitation.objects.create(
        tenant=tenant,
        email=email,
        role=role,
        digest=link_token_digest(token),
        invited_by=by,
        created_at=now,
        sent_at=now,
        expires_at=now + VALID_FOR,
    )
    record(tenant=tenant, by=by, action="member.invited", target=invitation, after={"role": role})
    log.info("member invited", tenant=tenant.id, invitation=invitation.id, role=role)
    return invitation, token


def resend_invitation(*, invitation: Invitation, by: User, now: datetime) -> Invitation:
    """Send a new link, valid for VALID_FOR from now; earlier links no longer work. An expired one becomes valid.

    Raises InvitationInvalidError, TooManyInvitationsError.
    """
    token = new_link_token()
    with transaction.atomic():
        waiting = Invitation.objects.filter(id=invitation.id, accepted_at=None, revoked_at=None)
        if not waiting.update(digest=link_token_digest(token), sent_at=now, expires_at=now + VALID_FOR):
            raise InvitationInvalidError("The invitation was accepted or revoked. Invite the person again.")
        _count_mail(invitation.tenant_id, invitation.email, now)
        record(tenant=invitation.tenant, by=by, action="invitation.resent", target=invitation)
    invitation.refresh_from_db()
    log.info("invitation sent again", tenant=invitation.tenant_id, invitation=invitation.id, by=by.get_username())
    mail_invitation(invitation=invitation, token=token)
    return invitation


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User, now: datetime) -> None:
    """Revoke an invitation for good. Safe to repeat, and without effect on an accepted one."""
    waiting = Invitation.objects.filter(id=invitation.id, accepted_at=None, revoked_at=None)
    if waiting.update(revoked_at=now):
        record(tenant=invitation.tenant, by=by, action="invitation.revoked", target=invitation)
        log.info("invitation revoked", tenant=invitation.tenant_id, invitation=invitation.id, by=by.get_username())


def revoke_invitations_of(*, user: User, tenant: Tenant, by: User) -> None:
    """Revoke the open invitations that a user has sent: someone who may no longer invite keeps no way back."""
    for invitation in tenant.invitations.filter(invited_by=user, accepted_at=None, revoked_at=None):
        revoke_invitation(invitation=invitation, by=by, now=timezone.now())


@all_tenants("link")
def invitation_of_token(*, token: str, now: datetime) -> Invitation | None:
    """Return the invitation of a link; None if the link is not valid (any more)."""
    rows = Invitation.objects.select_related("tenant", "invited_by")
    invitation = rows.filter(digest=link_token_digest(token)).first()
    return invitation if invitation is not None and invitation.is_valid_at(now) else None


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User, now: datetime) -> Membership:
    """Make the user a member with the invited role; a member keeps the role that they have.

    The conditional update accepts exactly one of two concurrent uses. Raises InvitationInvalidError.
    """
    waiting = Invitation.objects.filter(id=invitation.id, accepted_at=None, revoked_at=None, expires_at__gt=now)
    if not waiting.update(accepted_at=now, accepted_by=user):
        raise InvitationInvalidError("This invitation was accepted or revoked, or it has expired. Ask for a new one.")
    membership, is_new = Membership.objects.get_or_create(
        tenant_id=invitation.tenant_id, user=user, defaults={"role": invitation.role}
    )
    role = {"role": invitation.role}
    record(tenant=invitation.tenant, by=user, action="invitation.accepted", target=invitation, after=role)
    if is_new:
        record(tenant=invitation.tenant, by=user, action="member.added", target=user, after=role)
    _confirm_address(invitation.email, user)
    log.info("invitation accepted", tenant=invitation.tenant_id, invitation=invitation.id, by=user.get_username())
    return membership


def _confirm_address(email: str, user: User) -> None:
    """Mark the address of the account as confirmed if the link was sent to it."""
    taken = EmailAddress.objects.filter(email=email, verified=True).exists()
    if user.email.lower() == email and not taken:
        EmailAddress.objects.filter(user=user, primary=True).exclude(email=email).update(primary=False)
        EmailAddress.objects.update_or_create(user=user, email=email, defaults={"verified": True, "primary": True})


def mail_invitation(*, invitation: Invitation, token: str) -> None:
    """Send the e-mail with the link. Store the error in `mail_error`, from where pages and API show it."""
    url = f"{settings.PENSTOCK_WEB_URL}{reverse('console:accept_invitation', args=[token])}"
    context = {"invitation": invitation, "url": url, "days": VALID_FOR.days}
    text = render_to_string("tenancy/emails/invitation.txt", context)
    error = ""
    try:
        send_mail(f"[Penstock] Join {invitation.tenant.name}", text, None, [invitation.email])
    except (SMTPException, OSError) as exc:
        error = f"{type(exc).__name__}: {exc}"[:300]
        log.warning("invitation mail", tenant=invitation.tenant_id, invitation=invitation.id, error=error)
    Invitation.objects.filter(id=invitation.id).update(mail_error=error)
    invitation.mail_error = error


def _checked_address(field: str, email: str) -> str:
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as exc:
        raise InvalidValue(field, "needs an e-mail address") from exc
    if len(email) > 254 or not email.isascii():
        raise InvalidValue(field, "needs an e-mail address of at most 254 ASCII characters")
    return email


def _count_mail(tenant_id: str, email: str, now: datetime) -> None:
    if hit(PER_ADDRESS, email, now) or hit(PER_TENANT, tenant_id, now):
        raise TooManyInvitationsError(
            "Too many invitations were sent today. Ask the person to look for the newest e-mail, or try tomorrow."
        )
