"""Releases of the data plane: which cell runs which, rollouts and their gates; asking for one, or for its end."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.console.pages import for_staff, once, part_of, show, tenant_of, viewer_of
from mgmt.models import Release, Rollout
from mgmt.queries.releases import release_lines, rollout_lines


@for_staff
@require_safe
def releases(request: HttpRequest) -> HttpResponse:
    """What there is, and what is under way."""
    return _page(request, part_of(request, {"rollouts": "staff_releases.html"}))


@for_staff
@require_POST
def roll_out(request: HttpRequest, release: str) -> HttpResponse:
    """Asks for a release on every cell that has another one."""
    row = Release.objects.get(id=release)
    try:
        services.request_rollout(release=row, author=viewer_of(request), now=timezone.now())
    except services.Refused as exc:
        return _page(request, error=str(exc))
    messages.success(request, f"Release {row.id} is on its way, the canary first.", "fine")
    return redirect("console:releases")


@for_staff
@require_POST
def roll_back(request: HttpRequest, number: int) -> HttpResponse:
    """Turns a rollout: every cell that it touched gets back what it had."""
    row = Rollout.objects.get(id=min(number, 2**63 - 1))
    why = request.POST.get("reason", "").strip()
    if not why:
        return _page(request, error="reason: needs some words, others will ask why.")
    if services.roll_back(rollout=row, why=why, author=viewer_of(request), now=timezone.now()):
        messages.success(request, "Every cell that was touched gets back what it had, the last one first.", "fine")
    return redirect("console:releases")


def _page(request: HttpRequest, fragment: tuple[str, str] | None = None, *, error: str = "") -> HttpResponse:
    template, part = fragment or ("staff_releases.html", "")
    context = {
        "tab": "releases",
        "get_releases": once(release_lines),
        "get_rollouts": once(rollout_lines),
        "error": error,
    }
    return show(request, template, context, tenant=tenant_of(request), part=part, status=422 if error else 200)
