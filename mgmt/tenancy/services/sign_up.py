"""Service of sign-up: an account for a person who has an invitation. There is no other sign-up."""

from datetime import datetime
from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from mgmt.errors import InvalidValue, InvitationInvalidError
from mgmt.models import Invitation, User
from mgmt.tenancy.services.invitations import accept_invitation

_TAKEN: Final = "is taken; choose another one"


@transaction.atomic
def sign_up(*, invitation: Invitation, username: str, password: str, now: datetime) -> User:
    """Create an account with the invited address and accept the invitation.

    Raises InvalidValue for the name or the password, InvitationInvalidError.
    """
    user = User(username=User.normalize_username(username.strip()), email=invitation.email)
    _check_name(user)
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise InvalidValue("password", " ".join(exc.messages)) from exc
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
    return User.objects.filter(email__iexact=email).exists()


def _check_name(user: User) -> None:
    try:
        user.clean_fields(exclude=["password", "email"])
    except ValidationError as exc:
        raise InvalidValue("username", " ".join(exc.messages)) from exc
    # Names that differ in upper and lower case only look the same to the members of a tenant.
    if User.objects.filter(username__iexact=user.username).exists():
        raise InvalidValue("username", _TAKEN)
