"""Audit log of the selected tenant: filters, pages and export. For owners."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from mgmt.audit.actions import ACTIONS
from mgmt.audit.presenters import entry_line, sentence_of
from mgmt.audit.queries import EntryFilter, audit_entries, member_names, older_than
from mgmt.audit.services import SYSTEM
from mgmt.ids import storable
from mgmt.models import AuditEntry, Pipe
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, once, selected_tenant, show, viewer_of

MOST: Final = 50
_COLUMNS: Final = (
    "id", "at", "sentence", "actor_kind", "actor", "token_id", "token_name", "address", "request_id", "action",
    "target_kind", "target_id", "target_name", "pipe_id", "before", "after",
)  # fmt: skip


@for_members
@require_safe
def audit_log(request: HttpRequest) -> HttpResponseBase:
    """List the changes in the selected tenant, or those of `pipe`, newest first; `format` exports the matches."""
    viewer, pipe = viewer_of(request), _pipe(request)
    tenant = access.get_tenant(viewer, pipe.tenant_id if pipe else selected_tenant(request).id, access.READ_AUDIT)
    wanted = _wanted(request, pipe)
    rows = audit_entries(tenant.id, wanted)
    if (kind := request.GET.get("format", "")) in KINDS:
        name = f"audit-log-kept-{settings.PENSTOCK_AUDIT_KEEP_D}-days"
        return export(kind, (_exported(row) for row in rows[:MOST_ROWS].iterator()), _COLUMNS, name=name)
    before = request.GET.get("before", "")
    get_rows = once(lambda: list(older_than(rows, _mark(before))[: MOST + 1]))
    filters = _filters(wanted)
    context = {
        "pipe": pipe,
        "wanted": wanted,
        "query": urlencode(filters),
        "before": before,
        "actors": once(lambda: dict.fromkeys((*member_names(tenant.id), SYSTEM, *filter(None, [wanted.actor])))),
        "actions": list(ACTIONS),
        "pipes": once(lambda: list(tenant.pipes.order_by("name").values_list("id", "name"))),
        "get_lines": once(lambda: [entry_line(row) for row in get_rows()[:MOST]]),
        "get_older": once(lambda: _older(get_rows(), filters)),
        "keep_d": settings.PENSTOCK_AUDIT_KEEP_D,
        "most_rows": MOST_ROWS,
        "curl": as_curl(f"tenants/{tenant.id}/audit-log/"),
    }
    return show(request, "audit/log.html", context, tenant=tenant)


def _pipe(request: HttpRequest) -> Pipe | None:
    """Return the pipe of the filter, whose tenant the page then shows; None without one."""
    asked = request.GET.get("pipe", "")
    return access.get_pipe(viewer_of(request), asked, access.READ_AUDIT) if asked else None


def _wanted(request: HttpRequest, pipe: Pipe | None) -> EntryFilter:
    """Return the filters of the URL; impossible values are ignored."""
    action = request.GET.get("action", "")
    return EntryFilter(
        actor=storable(request.GET.get("actor", "").strip())[:150],
        action=action if action in ACTIONS else "",
        pipe=pipe.id if pipe else "",
        since=_time(request.GET.get("since", "")),
        until=_time(request.GET.get("until", "")),
    )


def _filters(wanted: EntryFilter) -> dict[str, str]:
    """Return the set filters as they are in a URL."""
    set_ = {name: value for name, value in asdict(wanted).items() if value}
    return {name: f"{value:%Y-%m-%dT%H:%M}" if isinstance(value, datetime) else value for name, value in set_.items()}


def _time(text: str) -> datetime | None:
    """Return a time such as 2026-05-03T02:14, in UTC; None for other texts."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        return None


def _older(rows: list[AuditEntry], filters: Mapping[str, str]) -> str:
    """Return the query of the next page; "" on the last one."""
    if len(rows) <= MOST:
        return ""
    last = rows[MOST - 1]
    return urlencode({**filters, "before": f"{last.at.isoformat()}/{last.id}"})


def _mark(before: str) -> tuple[datetime, str] | None:
    at, _, id_ = before.partition("/")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (moment, storable(id_)) if moment.tzinfo else None


def _exported(row: AuditEntry) -> Mapping[str, Any]:
    found = {name: getattr(row, name) for name in _COLUMNS if name not in ("sentence", "before", "after")}
    sides = {name: json.dumps(getattr(row, name), ensure_ascii=False) for name in ("before", "after")}
    return found | sides | {"sentence": sentence_of(row)}
