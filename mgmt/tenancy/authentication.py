"""Authentication backend: the only place that checks passwords, so that each check counts against the limits.

The sign-in page, the API and each later caller of django.contrib.auth.authenticate are covered automatically.
"""

from typing import Any

import structlog
from allauth.account.models import EmailAddress
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from mgmt.models import User
from mgmt.tenancy.device_cookie import DEVICE_COOKIE
from mgmt.tenancy.queries import session_users
from mgmt.tenancy.row_scope import all_tenants
from mgmt.tenancy.services.sign_in_limits import attempt_of, note_failure, note_success, wait_for_attempt_s

log = structlog.get_logger(__name__)


class LimitedBackend(ModelBackend):
    """Django's ModelBackend with the limits of mgmt.tenancy.services.sign_in_limits."""

    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the user; None for a wrong name, a wrong password or an account that is not active.

        username: the user name, or the confirmed e-mail address of the account

        Over a limit no password is checked, for any account; `wait_of(request)` then returns the remaining seconds.
        Raises PermissionDenied over a limit.
        """
        if username is None or password is None:
            return None
        typed, now = username.replace("\0", "\ufffd"), timezone.now()
        username = _user_name_of(typed)
        meta, cookies = getattr(request, "META", {}), getattr(request, "COOKIES", {})
        attempt = attempt_of(
            username=username, address=meta.get("REMOTE_ADDR", ""), device=cookies.get(DEVICE_COOKIE, ""), typed=typed
        )
        if seconds := wait_for_attempt_s(attempt, now):
            if request is not None:
                request.sign_in_wait_s = seconds
            log.warning("sign-in refused: over the limit", address=attempt.address, wait_s=seconds)
            raise PermissionDenied  # Django then asks no other backend
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None:
            note_failure(attempt, now)
        else:
            note_success(attempt)
        return user

    def user_can_authenticate(self, user: Any) -> bool:
        """Return True for an active account of a person: service accounts never sign in."""
        return super().user_can_authenticate(user) and not user.is_service_account

    @all_tenants("authentication")
    def get_user(self, user_id: Any) -> User | None:
        """Return the user of a session, with `lacks_second_factor` and `tenant_ids`."""
        user: User | None = session_users().filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


def _user_name_of(name: str) -> str:
    """Return the user name of the account with this confirmed address; the text itself if there is none."""
    if "@" not in name:
        return name
    confirmed = EmailAddress.objects.filter(email=name.strip().lower(), verified=True)
    return confirmed.values_list("user__username", flat=True).first() or name


def wait_of(request: Any) -> int:
    """Return the seconds until a password of this request would be checked again; 0 if the limit did not refuse it."""
    seconds: int = getattr(request, "sign_in_wait_s", 0)
    return seconds
