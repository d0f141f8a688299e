"""The cells: how each is and why, what runs in it, what was placed on it, and what was done to it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.console.pages import for_staff, once, part_of, show, tenant_of
from mgmt.models import Cell
from mgmt.queries.control import cell_lines, control_actions, heartbeats_of, pipes_on
from mgmt.queries.relocations import relocations

MOST_PIPES = 200
MOST_ACTIONS = 20
MOST_RELOCATIONS = 10


@for_staff
@require_safe
def cells(request: HttpRequest) -> HttpResponse:
    """Every cell with its verdict, its lanes and who changes it."""
    now = timezone.now()
    template, part = part_of(request, {"list": "staff_cells.html"}) or ("staff_cells.html", "")
    context = {"tab": "cells", "now": now, "get_lines": once(partial(cell_lines, now))}
    return show(request, template, context, tenant=tenant_of(request), part=part)


@for_staff
@require_safe
def cell(request: HttpRequest, cell_id: str) -> HttpResponse:
    """One cell."""
    return page_of_cell(request, Cell.objects.get(id=cell_id.replace("\x00", "")))


def page_of_cell(
    request: HttpRequest, row: Cell, *, error: str = "", typed: Mapping[str, Any] | None = None
) -> HttpResponse:
    """The page; `error` and `typed` are those of its form."""
    now = timezone.now()
    template, part = part_of(request, {"now": "staff_cell.html"}) or ("staff_cell.html", "")
    context = {
        "tab": "cells",
        "cell": row,
        "now": now,
        "get_line": once(lambda: next(line for line in cell_lines(now) if line.cell.id == row.id)),
        "beats": once(lambda: list(heartbeats_of(row.id))),
        "pipes": once(lambda: list(pipes_on(row.id)[:MOST_PIPES])),
        "others": once(lambda: list(Cell.objects.exclude(id=row.id).order_by("id").values_list("id", flat=True))),
        "get_relocations": once(lambda: list(relocations(cell=row.id)[:MOST_RELOCATIONS])),
        "error": error,
        "typed": typed or {},
        "get_actions": once(lambda: list(control_actions(cell=row.id)[:MOST_ACTIONS])),
    }
    return show(request, template, context, tenant=tenant_of(request), part=part, status=422 if error else 200)
