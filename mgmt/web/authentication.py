"""Authentication of the API: a browser's session with CSRF token, or a user name and password by Basic auth."""

from typing import Any

from rest_framework.authentication import BasicAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.request import Request

from mgmt.tenancy.authentication import wait_of
from mgmt.tenancy.queries import is_password_enough
from mgmt.web.problems import ProblemError


class CsrfSessionAuthentication(SessionAuthentication):
    """Authentication by the console's session; refuses an unsafe method without the CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        """Run Django's check. Raises ProblemError csrf-failed."""
        try:
            super().enforce_csrf(request)
        except PermissionDenied as exc:
            raise ProblemError("csrf-failed") from exc


class LimitedBasicAuthentication(BasicAuthentication):
    """Basic authentication within the attempt limits of mgmt.tenancy.authentication."""

    www_authenticate_realm = "penstock"

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> Any:
        """Check the credentials. A password alone is refused for an account that needs or has a second factor.

        Raises Throttled if too many attempts failed, in which case nothing was checked; ProblemError
        second-factor-required.
        """
        try:
            user, auth = super().authenticate_credentials(userid, password, request)
        except AuthenticationFailed:
            if seconds := wait_of(request):
                raise Throttled(seconds) from None
            raise
        if not is_password_enough(user):
            raise ProblemError("second-factor-required")
        return user, auth
