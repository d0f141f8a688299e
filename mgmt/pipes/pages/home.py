"""Home: summary of a time range, undelivered messages by cause, and the pipes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.deliveries.queries.health import health_rows
from mgmt.deliveries.queries.undelivered import UndeliveredCause, recent_failures
from mgmt.deliveries.undelivered_views import ProblemLine, problem_line, problems_of
from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, span_until
from mgmt.ledger.queries.trends import Trend, trends_of
from mgmt.messages.queries.message_search import is_message_name
from mgmt.pipes.queries.pipes import PipeSummary, pipe_lines
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, show, tenant_of, viewer_of
from mgmt.web.sorting import SortOrder, arranged, order_of, page_after

MOST_PIPES: Final = 50
FAILURE_PARTS: Final = 12  # of the last hour
RANGES: Final[Mapping[str, str]] = {"1h": "1 h", "6h": "6 h", "24h": "24 h"}
_LIVE: Final = dict.fromkeys(("summary", "undelivered", "pipes"), "pipes/home.html")
_BY_NAME: Final = SortOrder("name")
_COLUMNS: Final[Mapping[str, Callable[[PipeSummary], Any]]] = {
    "name": lambda line: line.pipe.name,
    "in": lambda line: line.per_s,
    "lag": lambda line: line.lag_p95_us,
    "delivered": lambda line: line.delivered,
    "lost": lambda line: line.lost_sealed,
    "needs": lambda line: (line.needs_you, line.undelivered),
}
_FIGURES: Final = (
    "per_s", "lag_p95_us", "oldest_at", "delivered", "delivered_share", "lost_sealed", "undelivered", "causes",
    "needs_you",
)  # fmt: skip
_FILE_COLUMNS: Final = ("pipe", "name", "state", "revision", *_FIGURES)


@dataclass(frozen=True)
class HomeSummary:
    """Numbers of the summary line and the totals of all pipes. `per_s`: events accepted per second in the last minute.

    needs_you, retrying: number of causes that need a person, and of those that are retried
    """

    needs_you: int
    retrying: int
    undelivered: int
    per_s: float
    trend: Trend


@for_members
@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """List the viewer's pipes in the selected tenant; `q` filters by name, or is the id or position of a message.

    `range` is the time range of the figures, `sort` a column, `after` the cursor of a page, `format` exports all
    matches.
    """
    tenant, now, q = tenant_of(request), timezone.now(), request.GET.get("q", "").strip()
    if is_message_name(q):
        return redirect(f"{reverse('console:find')}?{urlencode({'q': q})}")
    pipes = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant).order_by("name")) if tenant else []
    chosen = request.GET.get("range", "")
    span = span_until(chosen if chosen in RANGES else DEFAULT_SPAN, now)
    troubles = once(partial(problems_of, pipes, now))
    order = order_of(request.GET.get("sort", ""), _COLUMNS, _BY_NAME)
    ids = [pipe.id for pipe in pipes]
    health = once(partial(health_rows, ids))
    get_trends = once(lambda: trends_of(ids, span, chain.from_iterable(health().values())))
    get_all = once(
        lambda: (
            pipe_lines(pipes=pipes, troubles=troubles(), trends=get_trends().by_pipe, health=health(), now=now)
            if pipes
            else []
        )
    )
    get_lines = once(lambda: _matching(get_all(), q, order))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_row, get_lines()), _FILE_COLUMNS, name="pipes")
    after = request.GET.get("after", "")
    get_page = once(lambda: page_after(get_lines(), _id_of, after, MOST_PIPES))
    of_range = {} if span.name == DEFAULT_SPAN else {"range": span.name}
    kept = of_range | ({"q": q} if q else {})
    sort = {"sort": str(order)} if order != _BY_NAME else {}
    context = {
        "q": q,
        "now": now,
        "span": span,
        "ranges": [(name, urlencode(sort | ({"q": q} if q else {}) | {"range": name})) for name in RANGES],
        "heads": {"lag": f"Lag p95 ({RANGES[span.name]})", "delivered": f"Delivered ({RANGES[span.name]})"},
        "range_query": urlencode(of_range),
        "order": order,
        "kept": kept,
        "after": after,
        "query": urlencode(kept | sort),
        "has_pipes": bool(pipes),
        "get_pipe_count": lambda: len(pipes),
        "get_summary": once(lambda: _summary(troubles(), get_all(), get_trends().total)),
        "get_troubles": once(lambda: _problem_lines(troubles(), now)),
        "get_links": once(lambda: _links(troubles())),
        "get_trouble_sum": once(lambda: _sum(troubles())),
        "get_lines": once(lambda: get_page()[0]),
        "get_next": once(lambda: get_page()[1]),
        "curl": as_curl(request, f"tenants/{tenant.id}/pipes/" if tenant else "pipes/"),
    }
    return show(request, "pipes/home.html", context, tenant=tenant, live=_LIVE)


def _matching(lines: list[PipeSummary], q: str, order: SortOrder) -> list[PipeSummary]:
    found = [line for line in lines if q.lower() in line.pipe.name.lower()]
    return arranged(found, _COLUMNS[order.column], descending=order.descending)


def _summary(troubles: list[UndeliveredCause], lines: list[PipeSummary], total: Trend) -> HomeSummary:
    needs_you = sum(1 for trouble in troubles if trouble.needs_you)
    return HomeSummary(
        needs_you=needs_you,
        retrying=len(troubles) - needs_you,
        undelivered=sum(trouble.count for trouble in troubles),
        per_s=sum(line.per_s for line in lines),
        trend=total,
    )


def _problem_lines(troubles: list[UndeliveredCause], now: datetime) -> list[ProblemLine]:
    recent = recent_failures(troubles, span_until("1h", now), FAILURE_PARTS) if troubles else []
    return [problem_line(trouble, parts) for trouble, parts in zip(troubles, recent, strict=True)]


def _links(troubles: list[UndeliveredCause]) -> dict[str, str]:
    """Return by pipe where its undelivered messages are explained: the page of its cause, or the list of all causes."""
    links: dict[str, str] = {}
    for trouble in troubles:
        links[trouble.pipe_id] = "#undelivered" if trouble.pipe_id in links else problem_line(trouble).link
    return links


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
