"""Signing in and out, and the two switches of the top bar: theme and tenant."""

from django import forms
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from mgmt import access, services
from mgmt.console.pages import THEME_COOKIE, THEMES, choose_tenant, theme_of, viewer_of
from mgmt.console.throttle import WINDOW_S, forget_sign_ins, too_many_sign_ins

_BACKEND = "django.contrib.auth.backends.ModelBackend"
_YEAR_S = 365 * 86_400


class SignInForm(forms.Form):
    """Name and password."""

    username = forms.CharField(
        label="User name",
        max_length=150,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "username", "autofocus": True}),
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
    """The sign-in page. A wrong name and a wrong password get the same words."""
    target = _safe_next(request)
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    refused, status = "", 200
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["username"]
        if too_many_sign_ins(name=name, address=request.META.get("REMOTE_ADDR", "")):
            refused, status = f"Too many attempts. Wait {WINDOW_S // 60} minutes, then try again.", 429
        elif user := authenticate(request, username=name, password=form.cleaned_data["password"]):
            forget_sign_ins(name=name)
            login(request, user)
            return redirect(target)
        else:
            refused, status = "No account has this name and password. Names are case-sensitive.", 403
    context = {"form": form, "next": target, "refused": refused, "theme": theme_of(request)}
    return render(request, "sign_in.html", context, status=status)


@never_cache
@require_GET
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """A sign-in link: works once, for a day, so that a box and a test can sign in without a password."""
    user = services.user_for_sign_in_token(token=token)
    if user is None:
        context = {"form": SignInForm(), "next": "/", "refused": _SPENT_LINK, "theme": theme_of(request)}
        return render(request, "sign_in.html", context, status=403)
    login(request, user, backend=_BACKEND)
    return redirect("console:home")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("console:sign_in")


@require_POST
def switch_theme(request: HttpRequest) -> HttpResponse:
    """The other theme, for browsers without JavaScript; with it the page does the same by itself."""
    chosen = THEMES[0] if theme_of(request) == THEMES[1] else THEMES[1]
    response = redirect(_back(request))
    response.set_cookie(THEME_COOKIE, chosen, max_age=_YEAR_S, samesite="Lax")
    return response


@login_required
@require_POST
def switch_tenant(request: HttpRequest) -> HttpResponse:
    """Look at another of the viewer's tenants."""
    wanted = request.POST.get("tenant", "")
    known = {tenant.id: tenant for tenant in access.tenants_of(viewer_of(request))}
    if wanted in known:
        choose_tenant(request, known[wanted])
    return redirect("console:home")


_SPENT_LINK = "This link was used already, or it is too old. Ask for a new one, or sign in with your password."


def _safe_next(request: HttpRequest) -> str:
    target = request.POST.get("next") or request.GET.get("next") or "/"
    return target if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()) else "/"


def _back(request: HttpRequest) -> str:
    referrer = request.headers.get("Referer", "")
    return referrer if url_has_allowed_host_and_scheme(referrer, {request.get_host()}, request.is_secure()) else "/"
