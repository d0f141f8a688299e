"""Adapters of django-allauth: its flows with Penstock's rules. Settings name these classes (docs/decisions/0120)."""

from smtplib import SMTPException
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from mgmt.tenancy.device_cookie import DEVICE_COOKIE, with_device
from mgmt.tenancy.secrets import decrypt, encrypt
from mgmt.tenancy.services.rotation import SECOND_FACTOR_PLACE
from mgmt.tenancy.services.sign_in_limits import attempt_of, note_success

_EMAIL_STAGE: Final = "allauth.account.stages.EmailVerificationStage"
log = structlog.get_logger(__name__)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # the package has no types
    """Accounts: sign-up is by invitation only, and each sign-in sets the device cookie."""

    def is_open_for_signup(self, _request: HttpRequest) -> bool:
        """Return False: an invitation link has its own page (mgmt.tenancy.pages.invitations)."""
        return False

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Queue a flash message with the class of the console's notes."""
        kwargs["extra_tags"] = "bad" if level >= messages.WARNING else "fine"
        super().add_message(request, level, *args, **kwargs)

    def get_login_stages(self) -> list[str]:
        """Return the stages without that of the address: an invitation confirms it, and older accounts have none."""
        return [stage for stage in super().get_login_stages() if stage != _EMAIL_STAGE]

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        """Set the device cookie: failed guesses from elsewhere cannot lock the account out in this browser."""
        return with_device(super().post_login(request, user, **kwargs), user.get_username())

    def get_password_change_redirect_url(self, _request: HttpRequest) -> str:
        """Return the account page."""
        return reverse("console:account")

    def set_password(self, user: Any, password: str) -> None:
        """Set the password and reset the failures from this address: the user has proved who they are otherwise."""
        super().set_password(user, password)
        meta, cookies = _request().META, _request().COOKIES
        device, address = cookies.get(DEVICE_COOKIE, ""), meta.get("REMOTE_ADDR", "")
        name = user.get_username()
        for typed in (name, *user.emailaddress_set.filter(verified=True).values_list("email", flat=True)):
            note_success(attempt_of(username=name, address=address, device=device, typed=typed))

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return the link of the e-mail, with the configured address: the request's Host header is the client's."""
        return f"{settings.PENSTOCK_WEB_URL}{urlsplit(super().get_reset_password_from_key_url(key)).path}"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send an e-mail. Raises ImmediateHttpResponse, a page that says so, if the mail server refuses it."""
        try:
            super().send_mail(template_prefix, email, context)
        except (SMTPException, OSError) as exc:
            log.warning("account mail", template=template_prefix, error=f"{type(exc).__name__}: {exc}")
            why = "The e-mail could not be sent. Try again in a few minutes."
            raise ImmediateHttpResponse(render(_request(), "web/not_now.html", {"why": why}, status=503)) from exc


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors: their secrets are encrypted like all others."""

    def encrypt(self, text: str) -> str:
        """Encrypt a TOTP secret or the seed of recovery codes."""
        return encrypt(text, SECOND_FACTOR_PLACE)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a token of `encrypt`."""
        return decrypt(encrypted_text, SECOND_FACTOR_PLACE)

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Authenticator.Type) -> str:  # noqa: A002 the package's name
        """Return the suggested name of a further passkey."""
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return f"Passkey {count + 1}" if count else "Passkey"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Return the name and the host for which browsers store passkeys."""
        entity: dict[str, str] = super().get_public_key_credential_rp_entity()
        return entity | {"name": "Penstock"}


def _request() -> HttpRequest:
    request: HttpRequest = context.request
    return request
