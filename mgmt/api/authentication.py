"""Who calls: a browser's session (with CSRF token), or a user's name and password by Basic auth."""

from typing import Any

from django.core.cache import cache
from rest_framework.authentication import BasicAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.request import Request
from rest_framework.throttling import AnonRateThrottle

from mgmt.api.problems import ProblemError

MAX_FAILURES = 10
FAILURE_WINDOW_S = 300


class CsrfSessionAuthentication(SessionAuthentication):
    """The console's session; an unsafe method without the CSRF token is refused."""

    def enforce_csrf(self, request: Request) -> None:
        """Django's own check, with our code."""
        try:
            super().enforce_csrf(request)
        except PermissionDenied as exc:
            raise ProblemError("csrf-failed") from exc


class LimitedBasicAuthentication(BasicAuthentication):
    """Name and password; after ten failures from one address for one name, both must wait."""

    www_authenticate_realm = "penstock"

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> Any:
        """Refuses before the password is hashed when there were too many failures."""
        key = f"basic-failures:{AnonRateThrottle().get_ident(request)}:{userid[:150].encode().hex()}"
        if cache.get(key, 0) >= MAX_FAILURES:
            raise Throttled(FAILURE_WINDOW_S)
        try:
            return super().authenticate_credentials(userid, password, request)
        except AuthenticationFailed:
            cache.add(key, 0, FAILURE_WINDOW_S)
            cache.incr(key)
            raise
