"""Cells: verdict, processes, pipes and recent changes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from mgmt import services
from mgmt.cells.queries.control import cell_lines, control_actions, heartbeats_of, pipes_on
from mgmt.cells.queries.pipe_migrations import pipe_migrations
from mgmt.models import Cell, Tenant
from mgmt.web.rendering import for_staff, once, show, tenant_of, viewer_of

MOST_PIPES = 200
MOST_ACTIONS = 20
MOST_RELOCATIONS = 10


@for_staff
@require_http_methods(["GET", "HEAD", "POST"])
def cells(request: HttpRequest) -> HttpResponse:
    """List the cells with verdict, lanes and current change; a POST adds one."""
    if request.method != "POST":
        return _page_of_cells(request)
    name, partitions = (request.POST.get(field, "").strip() for field in ("name", "partitions"))
    try:
        count = _whole_number("partitions", partitions, "partitions; leave empty for the default")
        row = services.add_cell(name=name, by=viewer_of(request), now=timezone.now(), partitions=count)
    except services.InvalidValue as exc:
        typed = {"name": name, "partitions": partitions}
        return _page_of_cells(request, error=f"{exc.field}: {exc.reason}.", typed=typed)
    messages.success(request, f"Cell {row.id} is being created.", "fine")
    return redirect("console:cell", row.id)


def _page_of_cells(request: HttpRequest, *, error: str = "", typed: Mapping[str, str] | None = None) -> HttpResponse:
    now = timezone.now()
    context = {
        "tab": "cells",
        "now": now,
        "get_lines": once(partial(cell_lines, now)),
        "error": error,
        "typed": typed or {},
    }
    template, status = "cells/cells.html", 422 if error else 200
    return show(request, template, context, tenant=tenant_of(request), live={"list": template}, status=status)


@for_staff
@require_safe
def cell(request: HttpRequest, cell_id: str) -> HttpResponse:
    """Show one cell."""
    return page_of_cell(request, Cell.objects.get(id=cell_id.replace("\x00", "")))


@for_staff
@require_POST
def keep(request: HttpRequest, cell_id: str) -> HttpResponse:
    """Set the tenant of a dedicated cell, and its sleep time."""
    row, posted = Cell.objects.get(id=cell_id.replace("\x00", "")), request.POST
    tenant, sleep = posted.get("tenant", "").replace("\x00", ""), posted.get("sleep", "").strip()
    try:
        services.keep_cell_for(
            cell=row,
            tenant=Tenant.objects.get(id=tenant) if tenant else None,
            sleeps_after_s=_minutes_as_s(sleep),
            by=viewer_of(request),
            now=timezone.now(),
        )
    except services.InvalidValue as exc:
        kept = {"tenant": tenant, "sleep": sleep}
        return page_of_cell(request, row, keep_error=f"{exc.field}: {exc.reason}.", kept=kept)
    messages.success(request, "Saved.", "fine")
    return redirect("console:cell", row.id)


def _minutes_as_s(text: str) -> int | None:
    minutes = _whole_number("sleep", text, "minutes; leave empty for never")
    return None if minutes is None else minutes * 60


def _whole_number(field: str, text: str, of: str) -> int | None:
    """Return the number in an optional field; None if it is empty."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise services.InvalidValue(field, f"needs a whole number of {of}")
    return int(text)


def page_of_cell(
    request: HttpRequest,
    row: Cell,
    *,
    error: str = "",
    typed: Mapping[str, Any] | None = None,
    keep_error: str = "",
    kept: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Render a cell; `error` and `typed` are of the migration form, `keep_error` and `kept` of the dedication form."""
    now = timezone.now()
    context = {
        "tab": "cells",
        "cell": row,
        "now": now,
        "get_line": once(lambda: next(line for line in cell_lines(now) if line.cell.id == row.id)),
        "beats": once(lambda: list(heartbeats_of(row.id))),
        "pipes": once(lambda: list(pipes_on(row.id)[:MOST_PIPES])),
        "others": once(lambda: list(Cell.objects.exclude(id=row.id).order_by("id").values_list("id", flat=True))),
        "get_relocations": once(lambda: list(pipe_migrations(cell=row.id)[:MOST_RELOCATIONS])),
        "error": error,
        "typed": typed or {},
        "tenants": once(lambda: list(Tenant.objects.order_by("name", "id"))),
        "keep_error": keep_error,
        "kept": kept or {"tenant": row.dedicated_to_id or "", "sleep": str(row.sleeps_after_min or "")},
        "get_actions": once(lambda: list(control_actions(cell=row.id)[:MOST_ACTIONS])),
    }
    template, status = "cells/cell.html", 422 if error or keep_error else 200
    return show(request, template, context, tenant=tenant_of(request), live={"now": template}, status=status)
