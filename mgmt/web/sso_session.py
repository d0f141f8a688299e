"""Confinement of sessions that began by single sign-on: the provider of one tenant opens nothing of another."""

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from mgmt.models import User
from mgmt.sso.allauth_adapters import sso_connection_id_of
from mgmt.sso.queries import enabled_connection
from mgmt.tenancy.row_scope import restrict_to
from mgmt.web.problems import problem_response

# Here an account gets other means to sign in, other tenants or powers: none of this is the provider's to give.
_OWN_MEANS: Final = ("/account/", "/admin/", "/staff/", "/api/v1/staff/", "/invitations/", "/sso/link/")
_WHY: Final = (
    "You signed in by single sign-on. Sign out, then sign in with your password or a passkey, to change your account, "
    "accept an invitation or open staff pages."
)


class ConfineSsoSession:
    """Middleware that marks the user of such a session for mgmt.web.access, and refuses the pages of the account."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle one request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any) -> HttpResponseBase | None:
        """Mark the user; return 403 for a page that needs the account's own means."""
        if not isinstance(request.user, User) or not (connection_id := sso_connection_id_of(request)):
            return None
        request.user.sso_connection_id = connection_id
        connection = enabled_connection(id=connection_id)
        restrict_to([connection.tenant_id] if connection else [])
        if not request.path_info.startswith(_OWN_MEANS):
            return None
        if request.path_info.startswith("/api/"):
            return problem_response(request, "forbidden")
        return render(request, "sso/own_means.html", {"why": _WHY}, status=403)
