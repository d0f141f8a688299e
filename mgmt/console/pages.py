"""How a page or one of its fragments is answered: who looks, in which tenant, with which rights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Final, TypeVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from mgmt import access, services
from mgmt.console.snippets import api_curl
from mgmt.models import Tenant, User
from mgmt.queries.bell import opened_alerts
from mgmt.sandbox import SandboxRefused

THEME_COOKIE: Final = "penstock_theme"
THEMES: Final = ("light", "dark")
_TENANT_KEY: Final = "tenant"
_T = TypeVar("_T")
_View = Callable[..., HttpResponseBase]


@dataclass(frozen=True)
class May:
    """What the viewer may do in the tenant: one rule for routes and for the buttons that lead to them."""

    create: bool  # pipes
    edit: bool  # revisions, keys, secrets
    close: bool
    pause: bool  # and resume
    steer: bool  # a ramp: hold, resume, roll back
    move: bool  # release, redrive, abort
    handle: bool  # alerts
    credential: bool
    test: bool  # test requests
    channels: bool
    tables: bool  # look-up tables and their rows


def for_members(view: _View) -> _View:
    """Signed-in people only; another tenant's row answers 404 as a missing one does, too low a role 403 with why."""

    @wraps(view)
    @login_required
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except ObjectDoesNotExist as exc:
            raise Http404 from exc
        except access.Forbidden as exc:
            raise PermissionDenied(str(exc)) from exc
        except SandboxRefused as exc:
            return render(request, "not_now.html", {"why": str(exc)}, status=503)

    return guarded


def for_staff(view: _View) -> _View:
    """Signed-in staff only; for anybody else there is no such page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not viewer_of(request).is_staff:
            raise Http404
        return view(request, *args, **kwargs)

    return for_members(guarded)


def viewer_of(request: HttpRequest) -> User:
    """The signed-in user; views that call this require one."""
    user = request.user
    if not isinstance(user, User):
        raise TypeError("needs a signed-in user: the view lacks login_required")
    return user


def tenant_of(request: HttpRequest) -> Tenant | None:
    """The tenant chosen in this session, else the viewer's first; None for somebody without any."""
    tenants = list(access.tenants_of(viewer_of(request)))
    chosen = request.session.get(_TENANT_KEY)
    return next((tenant for tenant in tenants if tenant.id == chosen), tenants[0] if tenants else None)


def choose_tenant(request: HttpRequest, tenant: Tenant) -> None:
    """Remember the tenant for the rest of the session."""
    request.session[_TENANT_KEY] = tenant.id


def show(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    tenant: Tenant | None,
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or the named fragment of it if `part` says so."""
    role = access.role_in(viewer_of(request), tenant.id) if tenant else None
    full = {
        "tenant": tenant,
        "tenants": once(lambda: list(access.tenants_of(viewer_of(request)))),
        "role_label": role or "",
        "may": may_of(role),
        "theme": theme_of(request),
        "fragment": bool(part),
        "get_opened": once(lambda: opened_alerts(tenant.id) if tenant else 0),
        **context,
    }
    response = render(request, f"{template}#{part}" if part else template, full, status=status)
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    response["Cache-Control"] = "no-store"  # pages hold a tenant's figures, and some of them a secret
    return response


def do_and_say(request: HttpRequest, deed: Callable[[], object], words: str) -> None:
    """Do it; the next page says so in these words, or says why it was refused."""
    try:
        deed()
        messages.success(request, words, "fine")
    except (services.Refused, services.InvalidValue) as exc:
        messages.error(request, str(exc), "bad")


def part_of(request: HttpRequest, known: Mapping[str, str]) -> tuple[str, str] | None:
    """The (template, fragment) that htmx asks for; None if the whole page is meant."""
    name = request.GET.get("part", "")
    return (known[name], name) if "HX-Request" in request.headers and name in known else None


def may_of(role: str | None) -> May:
    """The rights of a role, by the table that the API asks too."""
    return May(
        create=access.may(role, access.CREATE_PIPE),
        edit=access.may(role, access.PUBLISH_REVISION),
        close=access.may(role, access.CLOSE_PIPE),
        pause=access.may(role, access.PAUSE),
        steer=access.may(role, access.STEER_RAMP),
        move=access.may(role, access.MOVE_MESSAGES),
        handle=access.may(role, access.HANDLE_ALERT),
        credential=access.may(role, access.SET_CREDENTIAL),
        test=access.may(role, access.SEND_TEST),
        channels=access.may(role, access.CHANGE_CHANNELS),
        tables=access.may(role, access.CHANGE_LOOKUPS),
    )


def theme_of(request: HttpRequest) -> str:
    """The chosen theme; empty leaves it to the system."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def number_of(text: str | None) -> int:
    """The number that a query or a form carries; 0 for anything else, and for what no row's number can be."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 18 else 0


def once(read: Callable[[], _T]) -> Callable[[], _T]:
    """A reading that a template may call several times and that is done at most once, and only if it is called."""
    return cache(read)


def ingest_url() -> str:
    """Where customers post events."""
    return str(settings.PENSTOCK_INGEST_URL)


def as_curl(request: HttpRequest, path: str, body: Mapping[str, Any] | None = None) -> str:
    """What the page does, as a call to the REST API by the same user."""
    return api_curl(web_url=settings.PENSTOCK_WEB_URL, user=viewer_of(request).get_username(), path=path, body=body)
