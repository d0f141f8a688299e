"""Enforcement of the second factor: a user who needs one and has none sees only the pages to set one up."""

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from dataplane.names import ERRORS_PATH
from mgmt.web.problems import problem_response

# Account pages, sign-out, theme, invitations, the portal of customers, and the public pages that explain errors.
_OPEN: Final = (
    "/account/", "/sign-in/", "/sign-out/", "/theme/", "/invitations/", "/portal/", "/api/v1/problems/", ERRORS_PATH,
)  # fmt: skip
_JSON: Final = ("/api/", "/registry/")


class RequireSecondFactor:
    """Middleware for sessions. The authentication backend computes the need with the user, without a further query."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any) -> HttpResponseBase | None:
        """Redirect to the account page, or return the problem second-factor-required to an API request."""
        user = request.user
        if request.path_info.startswith(_OPEN) or not getattr(user, "lacks_second_factor", False):
            return None
        if getattr(user, "sso_connection_id", ""):  # the identity provider asks for it
            return None
        if request.path_info.startswith(_JSON):
            return problem_response(request, "second-factor-required")
        return redirect("console:account")
