"""Who calls: a browser's session (with CSRF token), or a user's name and password by Basic auth."""

from typing import Any

from rest_framework.authentication import BasicAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.request import Request

from mgmt.api.problems import ProblemError
from mgmt.authentication import wait_of


class CsrfSessionAuthentication(SessionAuthentication):
    """The console's session; an unsafe method without the CSRF token is refused."""

    def enforce_csrf(self, request: Request) -> None:
        """Django's own check, with our code."""
        try:
            super().enforce_csrf(request)
        except PermissionDenied as exc:
            raise ProblemError("csrf-failed") from exc


class LimitedBasicAuthentication(BasicAuthentication):
    """Name and password, within the limits of mgmt.authentication."""

    www_authenticate_realm = "penstock"

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> Any:
        """Raises Throttled if nothing was checked because there were too many failures."""
        try:
            return super().authenticate_credentials(userid, password, request)
        except AuthenticationFailed:
            if seconds := wait_of(request):
                raise Throttled(seconds) from None
            raise
