"""Control audit: every action of a controller, and every pause by a person, with author and reason."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from mgmt.cells.queries.control import control_actions
from mgmt.models import Cell, ControlAction
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import for_staff, number_of, once, show, tenant_of

PER_PAGE: Final = 100
FILTERS: Final = ("controller", "cell", "outcome")
_COLUMNS: Final = ("id", "at", "controller", "action", "outcome", "refusal", "cell_id", "pipe_id", "reason", "by")


@for_staff
@require_safe
def audit(request: HttpRequest) -> HttpResponseBase:
    """List audit entries, newest first; `before` is the cursor."""
    asked = {name: request.GET.get(name, "").replace("\x00", "") for name in FILTERS}
    rows = control_actions(**asked)
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, (_exported(row) for row in rows[:MOST_ROWS]), _COLUMNS, name="control-actions")
    if before := number_of(request.GET.get("before")):
        rows = rows.filter(id__lt=before)
    filters = {name: value for name, value in asked.items() if value}
    context = {
        "tab": "audit",
        "asked": asked,
        "query": urlencode(filters),
        "before": before,
        "controllers": ControlAction.CONTROLLERS,
        "outcomes": ControlAction.Outcome.choices,
        "cells": once(lambda: list(Cell.with_ingest.order_by("id").values_list("id", flat=True))),
        "get_rows": once(lambda: list(rows[:PER_PAGE])),
        "get_older": once(lambda: _older(rows, filters)),
    }
    template = "cells/audit.html"
    return show(request, template, context, tenant=tenant_of(request), live={"list": template})


def _older(rows: QuerySet[ControlAction], filters: Mapping[str, str]) -> str:
    """Return the query of the next page; "" on the last one."""
    beyond = list(rows.values_list("id", flat=True)[PER_PAGE - 1 : PER_PAGE + 1])
    return urlencode({**filters, "before": beyond[0]}) if len(beyond) == 2 else ""


def _exported(row: ControlAction) -> Mapping[str, Any]:
    return {name: getattr(row, name) for name in _COLUMNS[:-1]} | {"by": row.author.username if row.author else ""}
