"""Scale groups (lanes of a cell, ingest replicas): counts, load, last decision and policy."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from mgmt import services
from mgmt.cells.queries.capacity_tests import tested_cells
from mgmt.cells.queries.scaling import changes_of, scale_group_summaries, scale_group_summary
from mgmt.models import ScaleGroup
from mgmt.web.rendering import for_staff, once, show, tenant_of, viewer_of


@for_staff
@require_safe
def scaling(request: HttpRequest) -> HttpResponse:
    """List all scale groups."""
    context = {
        "tab": "scaling",
        "now": timezone.now(),
        "get_lines": once(scale_group_summaries),
        "get_rated": once(tested_cells),
    }
    template = "cells/scaling.html"
    return show(request, template, context, tenant=tenant_of(request), live={"list": template})


@for_staff
@require_http_methods(["GET", "HEAD", "POST"])
def scale_group(request: HttpRequest, cell: str, kind: str) -> HttpResponse:
    """Show one scale group with its policy and history; a POST sets the policy."""
    known = ScaleGroup.objects.select_related("cell")
    group = get_object_or_404(known, cell=cell, kind=kind)
    if request.method != "POST":
        return _page(request, group)
    try:
        _save(request, group)
    except services.InvalidValue as exc:
        return _page(request, group, error=f"{exc.field}: {exc.reason}.")
    messages.success(request, f"Policy of {group} saved. The number of {group.unit}s follows within seconds.", "fine")
    return redirect("console:scale_group", cell, kind)


def _save(request: HttpRequest, group: ScaleGroup) -> None:
    services.set_scale_policy(
        group=group,
        minimum=_whole(request, "minimum"),
        maximum=_whole(request, "maximum"),
        target=_number(request, "target") / 100,
        goal_s=_number(request, "goal"),
        by=viewer_of(request),
        now=timezone.now(),
    )


def _whole(request: HttpRequest, field: str) -> int:
    number = _number(request, field)
    if not number.is_integer():
        raise services.InvalidValue(field, f"needs a whole number, got {number:g}")
    return int(number)


def _number(request: HttpRequest, field: str) -> float:
    text = request.POST.get(field, "")
    try:
        return float(text)
    except ValueError as exc:
        raise services.InvalidValue(field, f"needs a number, got {text[:20]!r}") from exc


def _page(request: HttpRequest, group: ScaleGroup, *, error: str = "") -> HttpResponse:
    typed = {"minimum": group.minimum, "maximum": group.maximum, "target": f"{group.target * 100:g}"}
    context: dict[str, Any] = {
        "tab": "scaling",
        "line": scale_group_summary(group),
        "get_changes": once(partial(changes_of, group)),
        "typed": request.POST.dict() if error else typed | {"goal": f"{group.goal_s:g}"},
        "error": error,
    }
    return show(request, "cells/scale_group.html", context, tenant=tenant_of(request), status=422 if error else 200)
