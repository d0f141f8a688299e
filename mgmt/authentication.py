"""The one place that checks passwords: every check goes through this backend, and so through the limits.

Sign-in page, API and whatever calls django.contrib.auth.authenticate next: none of them can forget to count.
"""

from typing import Any, Final

import structlog
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from mgmt.models import User
from mgmt.services.sign_in_limits import attempt_of, note_failure, note_success, wait_for_attempt_s

DEVICE_COOKIE: Final = "penstock_device"
BACKEND: Final = "mgmt.authentication.LimitedBackend"
log = structlog.get_logger(__name__)


class LimitedBackend(ModelBackend):
    """Django's own accounts, within the limits of mgmt.services.sign_in_limits."""

    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the user; None for a wrong name, a wrong password or an account that is not active.

        Over a limit nothing is checked, whatever the account, and the request says for how long: `wait_of(request)`.
        """
        if username is None or password is None:
            return None
        username, now = username.replace("\0", "\ufffd"), timezone.now()
        meta, cookies = getattr(request, "META", {}), getattr(request, "COOKIES", {})
        attempt = attempt_of(
            username=username, address=meta.get("REMOTE_ADDR", ""), device=cookies.get(DEVICE_COOKIE, "")
        )
        if seconds := wait_for_attempt_s(attempt, now):
            if request is not None:
                request.sign_in_wait_s = seconds
            log.warning("sign-in over its limit", address=attempt.address, wait_s=seconds)
            raise PermissionDenied  # asks no other backend
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None:
            note_failure(attempt, now)
        else:
            note_success(attempt)
        return user


def wait_of(request: Any) -> int:
    """Return for how many seconds no password is checked for this request any more; 0 if none was refused unchecked."""
    seconds: int = getattr(request, "sign_in_wait_s", 0)
    return seconds
