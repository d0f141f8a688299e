"""Controllers: pauses, leases, pause and resume."""

from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.cells.history import History
from mgmt.cells.queries.board import TASK_OF
from mgmt.cells.queries.control import controller_lines, history_of
from mgmt.cells.queries.overdue_tasks import overdue_tasks
from mgmt.models import Cell, ControlAction, Controller, Pause, TaskRun
from mgmt.web.rendering import for_staff, number_of, once, show, tenant_of, viewer_of

SPANS: Final[dict[str, timedelta | None]] = {
    "1 h": timedelta(hours=1),
    "4 h": timedelta(hours=4),
    "1 d": timedelta(days=1),
    "until ended": None,
}


@for_staff
@require_safe
def controllers(request: HttpRequest) -> HttpResponse:
    """List the controllers with their pauses and leases."""
    return _page(request)


@for_staff
@require_safe
def history(request: HttpRequest, name: str) -> HttpResponse:
    """Show the changes and refusals of one controller, newest first, with repeated refusals folded."""
    if name not in Controller.values:
        raise Http404
    asked = request.GET.get("outcome", "")
    outcome = asked if asked in ControlAction.Outcome.values else ""
    before = number_of(request.GET.get("before"))
    get_history = once(partial(history_of, name, outcome=outcome, before=before))
    context = {
        "tab": "controllers",
        "name": name,
        "label": Controller(name).label,
        "now": timezone.now(),
        "outcome": outcome,
        "outcomes": ControlAction.Outcome.choices,
        "before": before,
        "get_run": once(lambda: TaskRun.objects.filter(task=TASK_OF[name]).first()),
        "get_history": get_history,
        "get_older": once(lambda: _older(get_history(), outcome)),
    }
    template = "cells/controller.html"
    return show(request, template, context, tenant=tenant_of(request), live={"list": template})


def _older(found: History, outcome: str) -> str:
    """Return the query of the next page; "" on the last one."""
    filters = {"outcome": outcome} if outcome else {}
    return urlencode(filters | {"before": found.next_before}) if found.next_before else ""


@for_staff
@require_POST
def pause(request: HttpRequest) -> HttpResponse:
    """Pause a controller on one cell or on all cells."""
    now, posted = timezone.now(), request.POST
    span = SPANS.get(posted.get("for", ""), SPANS["1 h"])
    try:
        row = services.pause_controller(
            controller=posted.get("controller", ""),
            cell=Cell.with_ingest.get(id=posted["cell"].replace("\x00", "")) if posted.get("cell") else None,
            reason=posted.get("reason", ""),
            until=now + span if span else None,
            by=viewer_of(request),
            now=now,
        )
    except services.InvalidValue as exc:
        return _page(request, error=f"{exc.field}: {exc.reason}.", typed=posted.dict())
    except services.ServiceError as exc:
        return _page(request, error=str(exc), typed=posted.dict())
    messages.success(request, f"{str(row).capitalize()}. The current change is finished first.", "fine")
    return redirect("console:staff")


@for_staff
@require_POST
def end(request: HttpRequest, number: int) -> HttpResponse:
    """End a pause."""
    row = Pause.objects.get(id=min(number, 2**63 - 1))
    if services.resume_controller(pause=row, by=viewer_of(request), now=timezone.now()):
        messages.success(request, f"{row.get_controller_display().capitalize()} resumed.", "fine")
    return redirect("console:staff")


def _page(
    request: HttpRequest,
    *,
    error: str = "",
    typed: dict[str, Any] | None = None,
) -> HttpResponse:
    context = {
        "tab": "controllers",
        "get_lines": once(partial(controller_lines, timezone.now())),
        "get_silent": once(partial(overdue_tasks, timezone.now())),
        "cells": once(lambda: list(Cell.with_ingest.order_by("id").values_list("id", flat=True))),
        "controllers": Controller.choices,
        "spans": list(SPANS),
        "error": error,
        "typed": typed or {},
    }
    template, status = "cells/controllers.html", 422 if error else 200
    return show(request, template, context, tenant=tenant_of(request), live={"list": template}, status=status)
