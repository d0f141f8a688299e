"""Releases of the data plane: cells that run them, rollouts with their gates, roll out and roll back."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.cells.queries.releases import release_lines, rollout_lines
from mgmt.models import Release, Rollout
from mgmt.web.rendering import for_staff, once, show, tenant_of, viewer_of


@for_staff
@require_safe
def releases(request: HttpRequest) -> HttpResponse:
    """List releases and rollouts."""
    return _page(request)


@for_staff
@require_POST
def roll_out(request: HttpRequest, release: str) -> HttpResponse:
    """Request a rollout to every cell, and to ingest, with another release; with `repair`, to unstable ones, too."""
    row = Release.objects.get(id=release)
    try:
        is_repair = "repair" in request.POST
        services.request_rollout(release=row, author=viewer_of(request), now=timezone.now(), is_repair=is_repair)
    except services.ServiceError as exc:
        return _page(request, error=str(exc))
    messages.success(request, f"Rollout of {row.id} started with the canary.", "fine")
    return redirect("console:releases")


@for_staff
@require_POST
def roll_back(request: HttpRequest, number: int) -> HttpResponse:
    """Roll back a rollout: every cell that it changed, and ingest, gets its previous release."""
    row = Rollout.objects.get(id=min(number, 2**63 - 1))
    why = request.POST.get("reason", "").strip()
    if not why:
        return _page(request, error="reason: required for a rollback.")
    if services.roll_back(rollout=row, why=why, author=viewer_of(request), now=timezone.now()):
        messages.success(
            request,
            "Rolling back: what changed gets its previous release, the last cell first.",
            "fine",
        )
    return redirect("console:releases")


def _page(request: HttpRequest, *, error: str = "") -> HttpResponse:
    context = {
        "tab": "releases",
        "get_releases": once(release_lines),
        "get_rollouts": once(rollout_lines),
        "error": error,
    }
    template, status = "cells/releases.html", 422 if error else 200
    return show(request, template, context, tenant=tenant_of(request), live={"rollouts": template}, status=status)
