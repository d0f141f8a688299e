"""Sign-in, sign-out, and selection of theme and tenant."""

from math import ceil
from urllib.parse import urlencode

from allauth.account.internal.flows.login import perform_login, perform_password_login
from allauth.account.models import Login
from django import forms
from django.contrib.auth import authenticate, logout
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from mgmt import services
from mgmt.tenancy.authentication import wait_of
from mgmt.tenancy.services import rate_limits
from mgmt.tenancy.services.rate_limits import CountedTry, network_of
from mgmt.tenancy.services.sign_in_limits import LINKS_PER_ADDRESS
from mgmt.web import access
from mgmt.web.rendering import THEME_COOKIE, THEMES, choose_tenant, theme_of, viewer_of

_YEAR_S = 365 * 86_400


class SignInForm(forms.Form):
    """User name or e-mail address, and password."""

    username = forms.CharField(
        label="User name or e-mail",
        max_length=254,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "username webauthn", "autofocus": True}),
    )
    password = forms.CharField(
        label="Password",
        max_length=1_000,
        strip=False,
        widget=forms.PasswordInput({"class": "form-control", "autocomplete": "current-password"}),
    )


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Serve the sign-in page. An unknown name and a wrong password give the same response in the same time.

    After the password, django-allauth asks for the second factor of an account that has one.
    """
    target = _safe_next(request)
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    refused, status, wait_s = "", 200, 0
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["username"]
        if user := authenticate(request, username=name, password=form.cleaned_data["password"]):
            found = {"username": user.get_username()}
            answer: HttpResponse = perform_password_login(request, found, Login(user=user, redirect_url=target))
            return answer
        wait_s = wait_of(request)
        refused, status = (too_many(wait_s), 429) if wait_s else (_WRONG, 403)
    context = {"form": form, "next": target, "refused": refused, "theme": theme_of(request)}
    response = render(request, "tenancy/sign_in.html", context, status=status)
    if wait_s:
        response["Retry-After"] = str(wait_s)
    return response


@never_cache
@require_GET
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by a link that works once, for a day: a box and tests need no password.

    The second factor of an account that has one is still needed.
    """
    now, address = timezone.now(), network_of(request.META.get("REMOTE_ADDR", ""))
    wait_s = rate_limits.wait_s([CountedTry(LINKS_PER_ADDRESS, address)], now)
    user = None if wait_s else services.user_for_sign_in_token(token=token)
    if user is None:
        if not wait_s:
            rate_limits.hit(LINKS_PER_ADDRESS, address, now)
        refused, status = (too_many(wait_s), 429) if wait_s else (_SPENT_LINK, 403)
        context = {"form": SignInForm(), "next": "/", "refused": refused, "theme": theme_of(request)}
        return render(request, "tenancy/sign_in.html", context, status=status)
    answer: HttpResponse = perform_login(request, Login(user=user, redirect_url=reverse("console:home")))
    return answer


@require_http_methods(["GET", "POST"])
def staff_sign_in(request: HttpRequest) -> HttpResponse:
    """Replace the admin site's sign-in page, so that only one page checks passwords."""
    if request.user.is_authenticated:
        raise PermissionDenied("This page is for staff. Sign in with a staff account.")
    return redirect(f"{reverse('console:sign_in')}?{urlencode({'next': request.GET.get('next', '/admin/')})}")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("console:sign_in")


@require_POST
def switch_theme(request: HttpRequest) -> HttpResponse:
    """Toggle the theme for browsers without JavaScript; with JavaScript, the page does this itself."""
    chosen = THEMES[0] if theme_of(request) == THEMES[1] else THEMES[1]
    response = redirect(_back(request))
    response.set_cookie(THEME_COOKIE, chosen, max_age=_YEAR_S, samesite="Lax")
    return response


@login_required
@require_POST
def switch_tenant(request: HttpRequest) -> HttpResponse:
    """Select another of the viewer's tenants."""
    wanted = request.POST.get("tenant", "")
    known = {tenant.id: tenant for tenant in access.tenants_of(viewer_of(request))}
    if wanted in known:
        choose_tenant(request, known[wanted])
    return redirect("console:home")


_SPENT_LINK = "This link was already used or has expired. Ask for a new one, or sign in with your password."
_WRONG = "No account has this name and password. Names are case-sensitive."


def too_many(wait_s: int) -> str:
    """Return the text for a client that is over a limit of attempts."""
    minutes = ceil(wait_s / 60)
    return f"Too many attempts. Wait {minutes} minute{'' if minutes == 1 else 's'}, then try again."


def _safe_next(request: HttpRequest) -> str:
    target = request.POST.get("next") or request.GET.get("next") or "/"
    return target if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()) else "/"


def _back(request: HttpRequest) -> str:
    referrer = request.headers.get("Referer", "")
    return referrer if url_has_allowed_host_and_scheme(referrer, {request.get_host()}, request.is_secure()) else "/"
