"""Authentication of the API: an API token, a user name and password, or a browser's session with CSRF token."""

from typing import Any

from django.utils import timezone
from rest_framework.authentication import (
    BaseAuthentication,
    BasicAuthentication,
    SessionAuthentication,
    get_authorization_header,
)
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.request import Request

from mgmt.models import ApiToken, User
from mgmt.tenancy.authentication import wait_of
from mgmt.tenancy.queries import is_password_enough, tenant_ids_of
from mgmt.tenancy.row_scope import restrict_to
from mgmt.tenancy.services.rate_limits import hit, network_of
from mgmt.tenancy.services.sign_in_limits import PER_ADDRESS
from mgmt.tokens.authentication import TokenRefused, check_token
from mgmt.web.problems import ProblemError


class TokenProblemError(ProblemError, AuthenticationFailed):
    """The problem of a token that is not valid; the framework adds WWW-Authenticate."""


class TokenAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer pst_...`. The user of the request then has a grant."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's user; None for a request without a bearer token.

        A failed attempt counts against the limit of its address for wrong passwords. A valid token is accepted also
        over that limit: 160 random bits cannot be guessed, and others at the address may have failed.
        Raises TokenProblemError, Throttled.
        """
        scheme, _, text = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        address = request.META.get("REMOTE_ADDR", "")
        try:
            checked = check_token(text.strip().decode("latin-1"), address)
        except TokenRefused as exc:
            if wait_s := hit(PER_ADDRESS, network_of(address), timezone.now()):
                raise Throttled(wait_s) from exc
            raise TokenProblemError(exc.code, str(exc)) from exc
        restrict_to([checked.token.tenant_id])
        return checked.user, checked.token

    def authenticate_header(self, _request: Request) -> str:
        """Return the schemes that a request without credentials may use."""
        return 'Bearer realm="penstock", Basic realm="penstock"'


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
        restrict_to(tenant_ids_of(user))
        return user, auth
