"""Home: undelivered messages by cause, and the pipes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.deliveries.queries.undelivered import UndeliveredCause
from mgmt.deliveries.undelivered_views import problem_line, problems_of
from mgmt.ledger.queries.bucket_range import span_until
from mgmt.messages.queries.message_search import is_message_name
from mgmt.models import Pipe
from mgmt.pipes.queries.pipes import PipeSummary, pipe_lines
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, part_of, show, tenant_of, viewer_of
from mgmt.web.sorting import SortOrder, arranged, order_of, page_after

MOST_PIPES: Final = 100
_PARTS: Final = {"undelivered": "pipes/home.html", "pipes": "pipes/home.html"}
_BY_NAME: Final = SortOrder("name")
_COLUMNS: Final[Mapping[str, Callable[[PipeSummary], Any]]] = {
    "name": lambda line: line.pipe.name,
    "in": lambda line: line.per_s,
    "lag": lambda line: line.lag_p95_us,
    "delivered": lambda line: line.delivered,
    "lost": lambda line: line.lost_sealed,
    "needs": lambda line: (line.needs_you, line.causes),
}
_FIGURES: Final = ("per_s", "lag_p95_us", "oldest_at", "delivered", "lost_sealed", "causes", "needs_you")
_FILE_COLUMNS: Final = ("pipe", "name", "state", "revision", *_FIGURES)


@for_members
@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """List the viewer's pipes in the selected tenant; `q` filters by name, or is the id or position of a message.

    `sort` is a column, `after` the cursor of a page, `format` exports all matches.
    """
    tenant, now, q = tenant_of(request), timezone.now(), request.GET.get("q", "").strip()
    if is_message_name(q):
        return redirect(f"{reverse('console:find')}?{urlencode({'q': q})}")
    pipes = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant).order_by("name")) if tenant else []
    found = [pipe for pipe in pipes if q.lower() in pipe.name.lower()]
    troubles = once(partial(problems_of, pipes, now))
    order = order_of(request.GET.get("sort", ""), _COLUMNS, _BY_NAME)
    get_lines = once(lambda: _lines(found, troubles(), now, order))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_row, get_lines()), _FILE_COLUMNS, name="pipes")
    after = request.GET.get("after", "")
    get_page = once(lambda: page_after(get_lines(), _id_of, after, MOST_PIPES))
    kept = {name: value for name, value in (("q", q), ("sort", request.GET.get("sort", ""))) if value}
    context = {
        "q": q,
        "now": now,
        "order": order,
        "after": after,
        "query": urlencode(kept),
        "has_pipes": bool(pipes),
        "get_troubles": once(lambda: [problem_line(trouble) for trouble in troubles()]),
        "get_trouble_sum": once(lambda: _sum(troubles())),
        "get_lines": once(lambda: get_page()[0]),
        "get_next": once(lambda: get_page()[1]),
        "curl": as_curl(request, f"tenants/{tenant.id}/pipes/" if tenant else "pipes/"),
    }
    template, part = part_of(request, _PARTS) or ("pipes/home.html", "")
    return show(request, template, context, tenant=tenant, part=part)


def _lines(pipes: list[Pipe], troubles: list[UndeliveredCause], now: datetime, order: SortOrder) -> list[PipeSummary]:
    lines = pipe_lines(pipes=pipes, troubles=troubles, span=span_until("1h", now), now=now) if pipes else []
    return arranged(lines, _COLUMNS[order.column], falls=order.falls)


def _id_of(line: PipeSummary) -> str:
    return line.pipe.id


def _row(line: PipeSummary) -> dict[str, object]:
    """Return a pipe's row of the export."""
    who = {"pipe": line.pipe.id, "name": line.pipe.name}
    standing = {"state": line.standing.kind, "revision": line.standing.revision}
    return who | standing | {name: getattr(line, name) for name in _FIGURES}


def _sum(troubles: list[UndeliveredCause]) -> dict[str, object]:
    return {
        "messages": sum(trouble.count for trouble in troubles),
        "since": min((trouble.since for trouble in troubles), default=None),
    }
