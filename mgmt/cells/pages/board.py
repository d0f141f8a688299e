"""Status board for staff, and the list of lost messages of all tenants."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.alerts.queries.common_causes import CommonCause
from mgmt.cells.problems import Problem
from mgmt.cells.queries.board import LOSS_RANGE, Board, board
from mgmt.ledger.queries.all_losses import MOST_EXPORTED, AllLosses, LossLine, all_losses, cursor_of
from mgmt.ledger.queries.bucket_range import span_until
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import for_staff, once, show, tenant_of, viewer_of
from mgmt.web.staff_links import StaffLinks, staff_links

RANGES: Final = ("1h", "6h", "24h")
MOST_LINKS: Final = 10  # alerts of a common cause that the board links to
_COLUMNS: Final = (
    "tenant", "pipe", "pipe_id", "minute", "lost", "due", "loss_percent", "node", "node_lost", "node_loss_percent",
)  # fmt: skip


@for_staff
@require_safe
def status_board(request: HttpRequest) -> HttpResponse:
    """Show what is broken, since when, who is affected and what to do."""
    get_board, links = once(partial(board, timezone.now())), staff_links(viewer_of(request))
    context = {
        "tab": "board",
        "get_board": get_board,
        "get_problems": once(lambda: [(one, _url(one)) for one in get_board().problems]),
        "get_causes": once(lambda: [(one, _alert_links(one, links)) for one in get_board().causes]),
        "get_oldest_url": once(lambda: _oldest_url(get_board(), links)),
        "most_links": MOST_LINKS,
    }
    template = "cells/board.html"
    return show(request, template, context, tenant=tenant_of(request), live={"board": template})


@for_staff
@require_safe
def losses(request: HttpRequest) -> HttpResponseBase:
    """List the sealed minutes of all tenants that lost messages; `range` is the period, `before` the cursor."""
    chosen = request.GET.get("range", "")
    span = span_until(chosen if chosen in RANGES else LOSS_RANGE, timezone.now())
    before = cursor_of(request.GET.get("before", ""))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, _rows(all_losses(span, before=before, most=MOST_EXPORTED)), _COLUMNS, name="losses")
    get_losses, links = once(partial(all_losses, span, before=before)), staff_links(viewer_of(request))
    context = {
        "tab": "losses",
        "span": span,
        "before": before,
        "ranges": [(name, urlencode({"range": name})) for name in RANGES],
        "query": urlencode({"range": span.name}),
        "get_losses": get_losses,
        "get_lines": once(lambda: [(line, _minute_url(line, links)) for line in get_losses().lines]),
        "get_older": once(lambda: _older(get_losses(), span.name)),
    }
    template = "cells/losses.html"
    return show(request, template, context, tenant=tenant_of(request), live={"list": template})


def _url(problem: Problem) -> str:
    return reverse(f"console:{problem.route}", args=problem.args) + (f"#{problem.anchor}" if problem.anchor else "")


def _alert_links(cause: CommonCause, links: StaffLinks) -> list[tuple[str, str]]:
    """Return name and link of the first alerts of a common cause."""
    return [
        (f"{one.tenant}: {one.pipe} / {one.destination}", links.to_alert(one.id, one.pipe_id, one.tenant_id))
        for one in cause.alerts[:MOST_LINKS]
    ]


def _oldest_url(found: Board, links: StaffLinks) -> str:
    pipe = found.oldest.destination.pipe if found.oldest else None
    return links.to_pipe(pipe.id, pipe.tenant_id) if pipe else ""


def _minute_url(line: LossLine, links: StaffLinks) -> str:
    return links.to_minute(line.pipe.id, line.bucket, line.pipe.tenant_id)


def _older(found: AllLosses, name: str) -> str:
    """Return the query of the next page; "" on the last one."""
    return urlencode({"range": name, "before": found.next_before}) if found.next_before else ""


def _rows(found: AllLosses) -> Iterator[dict[str, Any]]:
    for line in found.lines:
        worst = line.worst
        yield {
            "tenant": line.pipe.tenant.name,
            "pipe": line.pipe.name,
            "pipe_id": line.pipe.id,
            "minute": line.starts,
            "lost": line.loss.lost,
            "due": line.loss.due,
            "loss_percent": round(100 * line.loss.share, 4),
            "node": worst.node if worst else "",
            "node_lost": worst.lost if worst else None,
            "node_loss_percent": round(100 * worst.share, 4) if worst else None,
        }
