"""Quotas of tenants: usage, and the limits that staff set."""

from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dataplane.tables.quotas import KINDS
from mgmt import services
from mgmt.models import Tenant
from mgmt.quotas.queries import changes_of_quota, quota_lines, tenant_lines
from mgmt.web.rendering import for_staff, once, show, tenant_of, viewer_of

MOST_TENANTS: Final = 200
MOST_CHANGES: Final = 20


@for_staff
@require_safe
def quotas(request: HttpRequest) -> HttpResponse:
    """List the tenants with usage and limits."""
    get_lines = once(partial(tenant_lines, timezone.now()))
    context = {
        "tab": "quotas",
        "kinds": len(KINDS),
        "get_lines": once(lambda: get_lines()[:MOST_TENANTS]),
        "get_more": once(lambda: len(get_lines()[MOST_TENANTS:])),
    }
    return show(request, "quotas/quotas.html", context, tenant=tenant_of(request))


@for_staff
@require_http_methods(["GET", "HEAD", "POST"])
def tenant_quota(request: HttpRequest, tenant_id: str) -> HttpResponse:
    """Show and set the quotas of one tenant, with the changes so far."""
    about = Tenant.objects.get(id=tenant_id.replace("\x00", ""))
    if request.method != "POST":
        return _page(request, about)
    try:
        limits = {name: _limit(name, request.POST.get(name, "").strip()) for name in KINDS}
        reason, by = request.POST.get("reason", ""), viewer_of(request)
        services.set_quota(tenant=about, limits=limits, reason=reason, by=by, now=timezone.now())
    except services.InvalidValue as exc:
        return _page(request, about, refused=exc)
    messages.success(request, f"Saved. Ingest applies the new quotas of {about.name} within seconds.", "fine")
    return redirect("console:tenant_quota", about.id)


def _limit(name: str, text: str) -> int | None:
    digits = text.replace(" ", "").replace("_", "")
    if digits and not (digits.isascii() and digits.isdecimal() and len(digits) < 18):
        raise services.InvalidValue(name, f"needs a whole number, got {text[:20]!r}")
    return int(digits) if digits else None


def _page(request: HttpRequest, about: Tenant, *, refused: services.InvalidValue | None = None) -> HttpResponse:
    lines, typed = quota_lines(about, timezone.now()), request.POST
    kept = {line.kind.name: str(line.limit) if line.own else "" for line in lines}
    defaults = settings.PENSTOCK_QUOTAS
    context: dict[str, Any] = {
        "tab": "quotas",
        "about": about,
        "fields": [
            (line, typed.get(name, "") if refused else kept[name], getattr(defaults, name))
            for line in lines
            for name in (line.kind.name,)
        ],
        "reason": typed.get("reason", "") if refused else "",
        "wrong": refused.field if refused else "",
        "error": _words(refused) if refused else "",
        "get_changes": once(lambda: changes_of_quota(about)[:MOST_CHANGES]),
    }
    return show(request, "quotas/tenant.html", context, tenant=tenant_of(request), status=422 if refused else 200)


def _words(refused: services.InvalidValue) -> str:
    kind = KINDS.get(refused.field)
    return f"{kind.label if kind else refused.field.capitalize()}: {refused.reason}."
