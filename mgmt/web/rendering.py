"""Rendering of pages and fragments for a viewer, in a tenant, with the permissions of the viewer's role."""

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
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers

from mgmt import services
from mgmt.alerts.queries.alerts import open_alert_count
from mgmt.models import Tenant, User
from mgmt.sandbox import SandboxRefused
from mgmt.tenancy.row_scope import open_to_staff
from mgmt.web import access
from mgmt.web.navigation import rail
from mgmt.web.snippets import api_curl

THEME_COOKIE: Final = "penstock_theme"
THEMES: Final = ("light", "dark")
_TENANT_KEY: Final = "tenant"
_T = TypeVar("_T")
_View = Callable[..., HttpResponseBase]


@dataclass(frozen=True)
class Permissions:
    """Permissions of the viewer in the tenant; routes and their buttons use the same rule."""

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
    schemas: bool  # subjects of the schema registry and their versions
    share: bool  # the event catalogue, with people outside the tenant
    tokens: bool  # of all users, and service accounts
    audit: bool  # read the audit log
    members: bool  # invite, change roles, remove
    sso: bool  # single sign-on


def for_members(view: _View) -> _View:
    """Require a signed-in user: another tenant's row gives 404 like a missing one, too low a role 403 with why."""

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
            return render(request, "web/not_now.html", {"why": str(exc)}, status=503)

    return guarded


def for_staff(view: _View) -> _View:
    """Require a staff user; anybody else gets 404."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not viewer_of(request).is_staff:
            raise Http404
        open_to_staff()
        return view(request, *args, **kwargs)

    return for_members(guarded)


def viewer_of(request: HttpRequest) -> User:
    """Return the signed-in user. Raises TypeError if there is none: the view lacks `login_required`."""
    user = request.user
    if not isinstance(user, User):
        raise TypeError("needs a signed-in user: the view lacks login_required")
    return user


def tenant_of(request: HttpRequest) -> Tenant | None:
    """Return the tenant selected in this session, else the viewer's first; None for a user without tenants."""
    tenants = list(access.tenants_of(viewer_of(request)))
    chosen = request.session.get(_TENANT_KEY)
    return next((tenant for tenant in tenants if tenant.id == chosen), tenants[0] if tenants else None)


def selected_tenant(request: HttpRequest) -> Tenant:
    """Return the tenant that `tenant_of` returns. Raises Tenant.DoesNotExist for a user without tenants."""
    tenant = tenant_of(request)
    if tenant is None:
        raise Tenant.DoesNotExist
    return tenant


def choose_tenant(request: HttpRequest, tenant: Tenant) -> None:
    """Store the selected tenant in the session."""
    request.session[_TENANT_KEY] = tenant.id


def show(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    tenant: Tenant | None,
    part: str = "",
    live: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page, or its fragment `part` if that is not empty, or those of `live` that a refresh requests.

    live: blocks that a viewer's browser refreshes, by name, each with its template; one request names several
    """
    blocks = _requested_blocks(request, live or {})
    viewer = viewer_of(request)
    role = access.role_in(viewer, tenant.id) if tenant else None
    get_opened = once(lambda: open_alert_count(tenant.id) if tenant else 0)
    count_pipes = context.get("get_pipe_count") or (lambda: access.pipes_of(viewer).filter(tenant=tenant).count())
    full = {
        "tenant": tenant,
        "tenants": once(lambda: list(access.tenants_of(viewer))),
        "get_tenants_behind_sso": once(lambda: list(access.tenants_behind_sso(viewer))),
        "role_label": role or "",
        "may": permissions_of(role),
        "theme": theme_of(request),
        "fragment": bool(part or blocks),
        "refreshes_head": "head" in (live or {}),
        "get_opened": get_opened,
        "get_rail": once(
            lambda: rail(
                request.path,
                has_tenant=tenant is not None,
                is_staff=viewer.is_staff,
                may_audit=access.may(role, access.READ_AUDIT),
                may_sso=access.may(role, access.MANAGE_SSO),
                pipe_count=count_pipes,
                open_alerts=get_opened,
            )
        ),
        **context,
    }
    if blocks:
        response = HttpResponse("".join(render_to_string(block, full, request) for block in blocks), status=status)
    else:
        response = render(request, f"{template}#{part}" if part else template, full, status=status)
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    response["Cache-Control"] = "no-store"  # pages contain data of a tenant, some also a secret
    return response


def _requested_blocks(request: HttpRequest, live: Mapping[str, str]) -> list[str]:
    """Return the templates of the live blocks that a refresh requests; empty for a whole page."""
    if "HX-Request" not in request.headers:
        return []
    names = dict.fromkeys(request.GET.get("part", "").split(","))
    return [f"{live[name]}#{name}" for name in names if name in live]


def act_and_report(request: HttpRequest, action: Callable[[], object], words: str) -> None:
    """Run an action and queue `words` as a flash message, or the error text if it was refused."""
    try:
        action()
        messages.success(request, words, "fine")
    except (services.ServiceError, services.InvalidValue) as exc:
        messages.error(request, str(exc), "bad")


def unlisted(response: HttpResponse) -> HttpResponse:
    """Ask caches and search engines to keep no copy of a public page whose address is not for everybody."""
    response["Cache-Control"] = "no-store"
    response["X-Robots-Tag"] = "noindex"
    return response


def permissions_of(role: str | None) -> Permissions:
    """Return the permissions of a role, from the same table as the API."""
    return Permissions(
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
        schemas=access.may(role, access.REGISTER_SCHEMA),
        share=access.may(role, access.SHARE_CATALOGUE),
        tokens=access.may(role, access.MANAGE_TOKENS),
        audit=access.may(role, access.READ_AUDIT),
        members=access.may(role, access.MANAGE_MEMBERS),
        sso=access.may(role, access.MANAGE_SSO),
    )


def theme_of(request: HttpRequest) -> str:
    """Return the selected theme; "" means that of the operating system."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def number_of(text: str | None) -> int:
    """Parse the number of a query or form field; 0 for anything else and for numbers of 18 or more digits."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 18 else 0


def once(read: Callable[[], _T]) -> Callable[[], _T]:
    """Return a lazy, cached `read`: a template may call it several times, and it runs at most once."""
    return cache(read)


def ingest_url() -> str:
    """Return the base URL for events."""
    return str(settings.PENSTOCK_INGEST_URL)


def as_curl(path: str, body: Mapping[str, Any] | None = None, *, method: str = "", token: str = "") -> str:
    """Return the curl command for the REST call that matches a page; without `token` it reads the environment's."""
    return api_curl(web_url=settings.PENSTOCK_WEB_URL, path=path, body=body, method=method, token=token)
