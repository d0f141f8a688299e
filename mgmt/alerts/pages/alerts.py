"""Alerts, one per destination and kind of failure: list, details, and the actions on one."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.spec import SpecError
from mgmt import services
from mgmt.alerts.queries.alerts import alerts_of, open_alerts_by_need
from mgmt.deliveries.presenters import FIXES, AlertDetails, alert_details, alert_line
from mgmt.deliveries.queries.message_selection import waiting
from mgmt.models import Alert, OffsetSet, Tenant
from mgmt.pipes.page_context import pipe_context
from mgmt.pipes.queries.resuming import is_live_since
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import (
    act_and_report,
    as_curl,
    for_members,
    for_staff,
    once,
    selected_tenant,
    show,
    viewer_of,
)

MOST: Final = 100
SNOOZES: Final = {"1 h": 3_600, "4 h": 14_400, "1 d": 86_400, "7 d": 604_800}
STATES: Final = {"open": "Open", "resolved": "Resolved"}
_LIVE: Final = {"head": "pipes/base.html", "now": "alerts/alert.html"}
_COLUMNS: Final = (
    "id", "pipe_id", "destination", "cause", "state", "suspended", "count", "opened_at", "last_at", "resolved_at",
    "resolution",
)  # fmt: skip


@for_members
@require_safe
def alerts(request: HttpRequest) -> HttpResponseBase:
    """List the tenant's alerts, unacknowledged ones first."""
    tenant = selected_tenant(request)
    state = request.GET.get("state", "")
    state = state if state in STATES else "open"
    rows = _rows(request, tenant, state)
    if (kind := request.GET.get("format", "")) in KINDS:
        found = ({name: getattr(row, name) for name in _COLUMNS} for row in rows[:MOST_ROWS])
        return export(kind, found, _COLUMNS, name=f"alerts-{tenant.id}")
    context = {
        "state": state,
        "views": list(STATES.items()),
        "most": MOST,
        "get_alerts": once(lambda: [alert_line(row) for row in rows[:MOST]]),
        "curl": as_curl("alerts/"),
    }
    return show(request, "alerts/alerts.html", context, tenant=tenant, live={"list": "alerts/alerts.html"})


@for_members
@require_safe
def alert(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Show one alert: what happened, a sample and the possible actions."""
    row = access.get_alert(viewer_of(request), pipe_id, alert_id)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    context = pipe_context(pipe, "alerts") | {
        "get_alert": once(partial(_shown, row, timezone.now())),
        "get_spread_refusal": once(lambda: services.why_not_spread(pipe)),
        "is_staff": viewer_of(request).is_staff,
        "snoozes": list(SNOOZES),
        "curl": as_curl(f"pipes/{pipe.id}/alerts/{row.id}/"),
    }
    return show(request, "alerts/alert.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_POST
def acknowledge_alert(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Acknowledge an alert."""
    by = viewer_of(request)
    return _done(
        request,
        pipe_id,
        alert_id,
        lambda row: services.acknowledge_alert(alert=row, by=by, now=timezone.now()),
        "Alert acknowledged. It stays in the list until it is resolved.",
    )


@for_members
@require_POST
def snooze_alert(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Snooze an alert; it reopens afterwards unless it is resolved."""
    wanted = request.POST.get("for", "")
    wanted = wanted if wanted in SNOOZES else next(iter(SNOOZES))
    now = timezone.now()
    until = now + timedelta(seconds=SNOOZES[wanted])
    return _done(
        request,
        pipe_id,
        alert_id,
        lambda row: services.snooze_alert(alert=row, until=until, now=now, by=viewer_of(request)),
        f"Alert snoozed for {wanted}. It reopens afterwards unless it is resolved.",
    )


@for_members
@require_POST
def resolve_alert(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Resolve an alert by hand."""
    by = viewer_of(request)
    return _done(
        request,
        pipe_id,
        alert_id,
        lambda row: services.resolve_alert(alert=row, by=by, now=timezone.now()),
        "Alert resolved. A new failure opens a new alert.",
    )


@for_members
@require_POST
def probe_alert(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Send one message as a probe; if it is accepted, the rest is released automatically."""
    by = viewer_of(request)
    return _done(
        request,
        pipe_id,
        alert_id,
        lambda row: services.probe_alert(alert=row, by=by, now=timezone.now()),
        "Sending one message. If it is accepted, the rest is released automatically.",
    )


@for_members
@require_POST
def spread_keys(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Publish a revision that distributes the events of each key over all partitions."""
    access.get_alert(viewer_of(request), pipe_id, alert_id, access.PUBLISH_REVISION)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    try:
        number = services.spread_keys(pipe=pipe, by=viewer_of(request)).number
    except (services.ServiceError, SpecError) as exc:
        messages.error(request, str(exc), "bad")
        return redirect("console:alert", pipe_id, alert_id)
    words = f"Revision {number} spreads the keys over all partitions. To undo it, revert to the earlier revision."
    messages.success(request, words, "fine")
    return redirect("console:alert", pipe_id, alert_id)


@for_staff
@require_POST
def move_to_own_cell(request: HttpRequest, pipe_id: str, alert_id: str) -> HttpResponse:
    """Request the migration of the alert's pipe to a cell of its own."""
    by, pipe = viewer_of(request), access.get_pipe(viewer_of(request), pipe_id)
    return _done(
        request,
        pipe_id,
        alert_id,
        lambda row: services.move_to_own_cell(pipe=pipe, reason=f"alert {row.cause}", by=by, now=timezone.now()),
        "Migration to a cell of its own requested. The page of the pipe's cell shows the progress.",
    )


def _done(
    request: HttpRequest, pipe_id: str, alert_id: str, action: Callable[[Alert], Any], words: str
) -> HttpResponse:
    """Run an action on the alert, report its result and redirect to the alert."""
    row = access.get_alert(viewer_of(request), pipe_id, alert_id, access.HANDLE_ALERT)
    act_and_report(request, partial(action, row), words)
    return redirect("console:alert", pipe_id, alert_id)


def _rows(request: HttpRequest, tenant: Tenant, state: str) -> QuerySet[Alert]:
    ids = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant).values_list("id", flat=True))
    if state == "resolved":
        return alerts_of(pipe_ids=ids, state=Alert.State.RESOLVED)
    return open_alerts_by_need(pipe_ids=ids).select_related("pipe")


def _shown(row: Alert, now: datetime) -> AlertDetails:
    of_pipe = waiting(pipe_ids=[row.pipe_id], destination=row.destination)
    found = [one for one in of_pipe if one.destination == row.destination]  # "": held before the steps, or dead in them
    held = sum(one.count for one in found if one.kind == OffsetSet.Kind.HELD)
    causes = {one.cause for one in found} if not row.cause_of_dead_letters else {row.cause_of_dead_letters}
    dead = sum(one.count for one in found if one.kind == OffsetSet.Kind.DEAD and one.cause in causes)
    is_fixed = row.cause in FIXES and is_live_since(pipe_id=row.pipe_id, moment=row.last_at)
    return alert_details(row, held=held, dead=dead, now=now, is_fixed=is_fixed)
