"""Service of sign-up: an account for a person who has an invitation. There is no other sign-up."""

from datetime import datetime
from typing import Final

from allauth.account.models import EmailAddress
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from mgmt.audit.services import SYSTEM
from mgmt.errors import InvalidValue, InvitationInvalidError
from mgmt.models import Invitation, User
from mgmt.tenancy.services.invitations import accept_invitation

_TAKEN: Final = "is taken; choose another one"


@transaction.atomic
def sign_up(*, invitation: Invitation, username: str, password: str | None, now: datetime) -> User:
    """Create an account with the invited address, which the link confirms, and accept the invitation.

    password: None for an account that signs in with a passkey

    Raises InvalidValue for the name or the password, InvitationInvalidError.
    """
    user = User(username=User.normalize_username(username.strip()), email=invitation.email)
    _check_name(user)
    if password is not None:
        _check_password(password, user)
    if has_account(invitation.email):
        raise InvitationInvalidError("An account has this address already. Sign in to join.")
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as exc:
        raise InvalidValue("username", _TAKEN) from exc
    accept_invitation(invitation=invitation, user=user, now=now)
    return user


def has_account(email: str) -> bool:
    """Return True if an account has this address."""
    confirmed = EmailAddress.objects.filter(email=email.lower(), verified=True)
    return confirmed.exists() or User.objects.filter(email__iexact=email).exists()


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise InvalidValue("password", " ".join(exc.messages)) from exc


def _check_name(user: User) -> None:
    if not user.username.isascii():  # letters of other alphabets look like those of a colleague's name
        raise InvalidValue("username", "needs letters a-z, digits and . + - _")
    if user.username.casefold() == SYSTEM.casefold():
        raise InvalidValue("username", _TAKEN)
    if "@" in user.username:  # it could be the address of another account
        raise InvalidValue("username", "needs a name without @; you can also sign in with your e-mail address")
    try:
        user.clean_fields(exclude=["password", "email"])
    except ValidationError as exc:
        raise InvalidValue("username", " ".join(exc.messages)) from exc
    # Names that differ in upper and lower case only look the same to the members of a tenant.
    if User.objects.filter(username__iexact=user.username).exists():
        raise InvalidValue("username", _TAKEN)
