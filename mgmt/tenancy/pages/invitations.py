"""Page of an invitation link: a new person creates an account, an existing user joins. It needs no sign-in."""

from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final

from allauth.account.internal.flows.login import perform_login, perform_password_login
from allauth.account.models import Login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from mgmt import services
from mgmt.models import Invitation, User
from mgmt.tenancy.row_scope import add_tenant
from mgmt.tenancy.services import rate_limits
from mgmt.tenancy.services.rate_limits import CountedTry, TryLimit, network_of
from mgmt.tenancy.services.sign_up import has_account
from mgmt.web.rendering import choose_tenant, theme_of, unlisted

LINKS: Final = TryLimit("invitation link: address", 30, timedelta(minutes=5))
SIGN_UPS: Final = TryLimit("sign-up: address", 30, timedelta(minutes=5))


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def accept_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation; only the POST accepts it, because mail scanners open links.

    Invalid links count against the client's network.
    """
    now, address = timezone.now(), network_of(request.META.get("REMOTE_ADDR", ""))
    wait_s = rate_limits.wait_s([CountedTry(LINKS, address)], now)
    invitation = None if wait_s else services.invitation_of_token(token=token, now=now)
    if invitation is None:
        if not wait_s:
            rate_limits.hit(LINKS, address, now)
        return _page(request, None, status=429 if wait_s else 404, wait_s=wait_s)
    add_tenant(invitation.tenant_id)
    return _accept(request, invitation, now) if request.method == "POST" else _page(request, invitation)


def _accept(request: HttpRequest, invitation: Invitation, now: datetime) -> HttpResponse:
    try:
        if isinstance(request.user, User):
            return _join(request, invitation, request.user, now)
        if wait_s := rate_limits.hit(SIGN_UPS, network_of(request.META.get("REMOTE_ADDR", "")), now):
            return _page(request, None, status=429, wait_s=wait_s)
        return _sign_up(request, invitation, now)
    except services.InvalidValue as exc:
        typed = {"username": request.POST.get("username", ""), "error": exc.reason, "error_at": exc.field}
        return _page(request, invitation, typed, status=422)
    except services.InvitationInvalidError as exc:
        return _page(request, invitation, {"refused": str(exc)}, status=409)


def _join(request: HttpRequest, invitation: Invitation, user: User, now: datetime) -> HttpResponse:
    services.accept_invitation(invitation=invitation, user=user, now=now)
    _welcome(request, invitation)
    return redirect("console:home")


def _sign_up(request: HttpRequest, invitation: Invitation, now: datetime) -> HttpResponse:
    """Create the account. With a passkey instead of a password, django-allauth's next page makes the passkey."""
    by_passkey = "passkey" in request.POST
    password = None if by_passkey else request.POST.get("password", "")
    user = services.sign_up(
        invitation=invitation, username=request.POST.get("username", ""), password=password, now=now
    )
    _welcome(request, invitation)
    sign_in = Login(user=user, redirect_url=reverse("console:home"), signup=True)
    answer: HttpResponse
    if by_passkey:
        sign_in.state["passkey_signup"] = True
        answer = perform_login(request, sign_in)
    else:
        answer = perform_password_login(request, {"username": user.get_username()}, sign_in)
    return answer


def _welcome(request: HttpRequest, invitation: Invitation) -> None:
    choose_tenant(request, invitation.tenant)
    messages.success(request, f"You are now a member of {invitation.tenant.name}.", "fine")


def _page(
    request: HttpRequest,
    invitation: Invitation | None,
    more: dict[str, Any] | None = None,
    *,
    status: int = 200,
    wait_s: int = 0,
) -> HttpResponse:
    context = {
        "invitation": invitation,
        "wait_minutes": ceil(wait_s / 60),
        "has_account": invitation is not None and has_account(invitation.email),
        "theme": theme_of(request),
        **(more or {}),
    }
    response = unlisted(render(request, "tenancy/invitation.html", context, status=status))
    if wait_s:
        response["Retry-After"] = str(wait_s)
    return response
