"""Home: summary of a time range, undelivered messages by cause, and the pipes, which have a page of their own, too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple
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
from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, BucketRange, span_until
from mgmt.ledger.queries.trends import Trend, Trends, trends_of
from mgmt.messages.queries.message_search import is_message_name
from mgmt.models import DestinationHealth, Pipe
from mgmt.pipes.queries.pipes import PipeSummary, pipe_lines, rates_of
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


class PipeChoice(NamedTuple):
    """The pipes that a page lists: the `most` after the cursor `after`, of those whose names contain `q`."""

    q: str
    order: SortOrder
    after: str
    most: int


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


class HomeFigures:
    """Figures of home, each read once, by the first part of the page that shows it.

    Sorting by name needs no figures, so only the pipes of one page are read one by one, and the others as a sum.
    """

    def __init__(self, pipes: Sequence[Pipe], span: BucketRange, now: datetime, choice: PipeChoice) -> None:
        """`pipes`: all of the tenant, by name."""
        self._pipes, self._span, self._now, self._choice = pipes, span, now, choice

    @cached_property
    def troubles(self) -> list[UndeliveredCause]:
        """Causes of undelivered messages of all pipes."""
        return problems_of(list(self._pipes), self._now)

    @cached_property
    def summary(self) -> HomeSummary:
        """Numbers of the summary line."""
        needs_you = sum(1 for trouble in self.troubles if trouble.needs_you)
        return HomeSummary(
            needs_you=needs_you,
            retrying=len(self.troubles) - needs_you,
            undelivered=sum(trouble.count for trouble in self.troubles),
            per_s=sum(self._rates.values()),
            trend=self._trends.total,
        )

    @cached_property
    def page(self) -> tuple[Sequence[PipeSummary], str]:
        """Lines of the page, and the cursor of the next one."""
        if self._choice.order.column == _BY_NAME.column:
            return self._lines, self._chosen[1]
        return page_after(self._lines, lambda line: line.pipe.id, self._choice.after, self._choice.most)

    @cached_property
    def _chosen(self) -> tuple[Sequence[Pipe], str]:
        """Pipes whose lines are needed: those of the page, or all that match if the order depends on figures."""
        choice = self._choice
        matching = [pipe for pipe in self._pipes if choice.q.lower() in pipe.name.lower()]
        if choice.order.column != _BY_NAME.column:
            return matching, ""
        in_order = arranged(matching, lambda pipe: pipe.name, descending=choice.order.descending)
        return page_after(in_order, lambda pipe: pipe.id, choice.after, choice.most)

    @cached_property
    def _lines(self) -> list[PipeSummary]:
        lines = pipe_lines(
            pipes=self._chosen[0],
            troubles=self.troubles,
            trends=self._trends.by_pipe,
            health=self._health,
            rates=self._rates,
        )
        order = self._choice.order
        return arranged(lines, _COLUMNS[order.column], descending=order.descending)

    @cached_property
    def _trends(self) -> Trends:
        chosen = dict.fromkeys(pipe.id for pipe in self._chosen[0])
        others = [pipe.id for pipe in self._pipes if pipe.id not in chosen]
        return trends_of(list(chosen), self._span, chain.from_iterable(self._health.values()), others)

    @cached_property
    def _health(self) -> Mapping[str, Sequence[DestinationHealth]]:
        return health_rows([pipe.id for pipe in self._pipes])

    @cached_property
    def _rates(self) -> Mapping[str, float]:
        return rates_of([pipe.id for pipe in self._pipes], self._now)


@for_members
@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """Show the summary, the undelivered messages and the pipes of the selected tenant."""
    return _pipes_page(request, is_home=True)


@for_members
@require_safe
def pipes(request: HttpRequest) -> HttpResponseBase:
    """List the pipes of the selected tenant."""
    return _pipes_page(request, is_home=False)


def _pipes_page(request: HttpRequest, *, is_home: bool) -> HttpResponseBase:
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
    order = order_of(request.GET.get("sort", ""), _COLUMNS, _BY_NAME)
    if (kind := request.GET.get("format", "")) in KINDS:
        every = HomeFigures(pipes, span, now, PipeChoice(q, order, "", len(pipes)))
        return export(kind, map(_row, every.page[0]), _FILE_COLUMNS, name="pipes")
    after = request.GET.get("after", "")
    figures = HomeFigures(pipes, span, now, PipeChoice(q, order, after, MOST_PIPES))
    of_range = {} if span.name == DEFAULT_SPAN else {"range": span.name}
    kept = of_range | ({"q": q} if q else {})
    sort = {"sort": str(order)} if order != _BY_NAME else {}
    context = {
        "is_home": is_home,
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
        "figures": figures,
        "get_troubles": once(lambda: _problem_lines(figures.troubles, now)),
        "get_links": once(lambda: _links(figures.troubles, "" if is_home else reverse("console:home"))),
        "get_trouble_sum": once(lambda: _sum(figures.troubles)),
        "curl": as_curl(f"tenants/{tenant.id}/pipes/" if tenant else "pipes/"),
    }
    return show(request, "pipes/home.html", context, tenant=tenant, live=_LIVE)


def _problem_lines(troubles: list[UndeliveredCause], now: datetime) -> list[ProblemLine]:
    recent = recent_failures(troubles, span_until("1h", now), FAILURE_PARTS) if troubles else []
    return [problem_line(trouble, parts) for trouble, parts in zip(troubles, recent, strict=True)]


def _links(troubles: list[UndeliveredCause], home: str) -> dict[str, str]:
    """Return by pipe where its undelivered messages are explained: the page of its cause, or the list of all causes.

    home: URL of the page with that list; "" on that page
    """
    links: dict[str, str] = {}
    for trouble in troubles:
        links[trouble.pipe_id] = f"{home}#undelivered" if trouble.pipe_id in links else problem_line(trouble).link
    return links


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
