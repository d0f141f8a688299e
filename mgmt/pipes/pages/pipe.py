"""Read-only pages of a pipe: overview, revisions, one minute."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.ledger.bins import Bin
from dataplane.spec import SpecError
from mgmt import services
from mgmt.alerts.queries.alerts import OPEN, alerts_within
from mgmt.deliveries.attempt_views import attempt_views
from mgmt.deliveries.cause_wording import BINS
from mgmt.deliveries.queries.health import oldest_waiting
from mgmt.deliveries.queries.message_selection import waiting
from mgmt.deliveries.queries.slowest import MOST_READ, measure_for, slowest_messages
from mgmt.deliveries.queries.throughput import DELIVERIES_KEPT_H, deliveries_by_minute
from mgmt.ledger.queries.bucket_range import SPANS, BucketRange, bucket_at, start_of
from mgmt.ledger.queries.ledger import MinuteKey
from mgmt.ledger.queries.losses import LostMessage, MinuteLosses, all_lost, minute_losses
from mgmt.ledger.queries.minutes import (
    JUDGED,
    LossTable,
    MinuteLoss,
    loss_table,
    loss_table_of,
    minute_line,
    minute_lines,
)
from mgmt.ledger.queries.timing import Timing, timing, timing_of, timing_rows
from mgmt.messages.units import units_in
from mgmt.models import Alert, Destination, DestinationHealth, Pipe, PipeRevision
from mgmt.pipes.editor.draft import readable
from mgmt.pipes.graph import GraphFacts, PipeGraph, pipe_graph
from mgmt.pipes.page_context import newest_revision, pipe_context
from mgmt.pipes.pages.pipe_view import pipe_view
from mgmt.pipes.plots import (
    PlotFacts,
    PlotMark,
    PlotPoint,
    alert_marks,
    plot_points,
    ramp_marks,
    revision_marks,
    scaling_marks,
)
from mgmt.pipes.queries.events import ramp_steps_within, revisions_live_within, scalings_within
from mgmt.pipes.queries.first_delivery import first_delivery
from mgmt.pipes.queries.pipes import rates_of
from mgmt.sandbox import SandboxRefused
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, ingest_url, number_of, once, show, viewer_of
from mgmt.web.snippets import endpoint, send_snippets

MOST_MINUTES: Final = 60
MOST_ATTEMPTS_HERE: Final = 10
MOST_UNITS: Final = 200
TABS: Final = (
    "overview", "attempts", "dead", "replays", "shadows", "rejections", "held", "tail", "windows", "sequence",
    "patterns", "revisions", "settings",
)  # fmt: skip
# Outcomes of the plot with their colours in tokens.css.
PLOT_OUTCOMES: Final = tuple(zip(JUDGED, ("fine", "on-it", "hop-held", "needs-you", "ink"), strict=True))
_LOSS_COLUMNS: Final = ("minute", "sealed_at", "accepted", *BINS, "unacked", "late", "loss_share")
_REVISION_COLUMNS: Final = ("number", "state", "state_reason", "created_at", "author", "spec")
_LIVE: Final = {
    "head": "pipes/base.html",
    "waiting": "pipes/waiting.html",
    **dict.fromkeys(
        ("listening", "flow", "plots", "pie", "slowest", "shares", "lag", "loss", "attempts"), "pipes/pipe.html"
    ),
}


class LedgerReads(NamedTuple):
    """Reads of a range that several blocks of the page share; each runs once in a request."""

    span: BucketRange
    timing: Callable[[], Timing]
    loss: Callable[[], LossTable]
    alerts: Callable[[], list[Alert]]
    destinations: Callable[[], list[Destination]]
    deliveries: Callable[[], Mapping[str, Mapping[int, int]]]


def ledger_reads(pipe: Pipe, axis: BucketRange, spans: Sequence[BucketRange], now: datetime) -> list[LedgerReads]:
    """Return the lazy reads of each span; all are within `axis`, whose rows are read once. Deliveries are up to now."""
    first, last = min(axis.first, bucket_at(now) - 1), bucket_at(now)
    rows = once(partial(timing_rows, pipe_id=pipe.id, span=axis))
    minutes = once(lambda: minute_lines([pipe.id], axis).get(pipe.id, []))
    destinations = once(lambda: list(pipe.destinations.select_related("health")))
    deliveries = once(partial(deliveries_by_minute, pipe_id=pipe.id, first=first, last=last))

    def of(span: BucketRange) -> LedgerReads:
        since, until = _period(span)
        return LedgerReads(
            span=span,
            timing=once(lambda: timing_of(rows(), span, _health(destinations()))),
            loss=once(lambda: loss_table_of(minutes(), span, span.minutes)),
            alerts=once(partial(alerts_within, pipe_id=pipe.id, since=since, until=until)),
            destinations=destinations,
            deliveries=deliveries,
        )

    return [of(span) for span in spans]


@for_members
@require_safe
def overview(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Show the graph, plots, delivery time by stage, lag and loss of a pipe; `format` exports the loss table.

    `from` and `to` select minutes, `stage` a stage of which the slowest messages are listed.
    """
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    now = timezone.now()
    view = pipe_view(request, now)
    span = view.span
    if (kind := request.GET.get("format", "")) in KINDS:
        table = loss_table(pipe_id=pipe.id, span=span, most=MOST_ROWS)
        return export(kind, map(_loss_row, table.lines), _LOSS_COLUMNS, name=f"minutes-{pipe.id}")
    of_axis, *selected = ledger_reads(pipe, view.axis, list(dict.fromkeys((view.axis, span))), now)
    read = selected[0] if selected else of_axis
    get_revision = once(partial(newest_revision, pipe))
    context = pipe_context(pipe, _tab(request)) | {
        "span": span,
        "now": now,
        "spans": list(SPANS),
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url(), sample=pipe.sample),
        "get_first": once(partial(first_delivery, pipe.id)),
        "get_graph": once(lambda: _graph(pipe, get_revision(), read, now)),
        "view": view,
        "get_slowest": once(partial(slowest_messages, pipe_id=pipe.id, span=span, measure=measure_for(view.stage))),
        "most_read": MOST_READ,
        "plot_minutes": len(view.axis.groups()[0]),
        "plot_outcomes": PLOT_OUTCOMES,
        "get_points": once(partial(_points, of_axis, now)),
        "get_marks": once(partial(_marks, pipe, of_axis)),
        "get_timing": read.timing,
        "get_series_rows": once(lambda: _series_rows(read.timing())),
        "get_loss": read.loss,
        "most_minutes": f":{MOST_MINUTES}",
        "get_attempts": once(partial(attempt_views, pipe.id, MOST_ATTEMPTS_HERE)),
        "get_several": once(lambda: len(get_revision().spec["destinations"]) > 1),
        "curl": as_curl(f"pipes/{pipe.id}/minutes/"),
    }
    return show(request, "pipes/pipe.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_safe
def revisions(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List the revisions with state, author and spec; `format` exports them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    rows = list(pipe.revisions.select_related("author", "ramp"))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_revision_row, rows), _REVISION_COLUMNS, name=f"revisions-{pipe.id}")
    for row in rows:
        row.spec_text = readable(row.spec)  # type: ignore[attr-defined]
    context = pipe_context(pipe, "revisions") | {
        "revisions": rows,
        "current": services.current_revision(pipe).number,
        "curl": as_curl(f"pipes/{pipe.id}/revisions/"),
    }
    return show(request, "pipes/revisions.html", context, tenant=pipe.tenant)


@for_members
@require_POST
def revert(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Publish the spec of an earlier revision as the next one; the editor opens if it needs more than that."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PUBLISH_REVISION)
    spec = access.get_revision(viewer_of(request), pipe_id, number).spec
    newest = pipe.revisions.latest("number").number
    try:
        revision = services.publish_revision(
            pipe=pipe,
            spec=spec,
            based_on=newest,
            author=viewer_of(request),
            must_change=True,
            action="revision.reverted",
        )
    except services.CredentialNeededError as exc:
        messages.error(request, str(exc), extra_tags="bad")
        return redirect(f"{reverse('console:edit_pipe', args=[pipe.id])}?from={number}")
    except (services.ServiceError, SpecError, SandboxRefused) as exc:
        messages.error(request, str(exc), extra_tags="bad")
        return redirect("console:revisions", pipe.id)
    messages.success(request, f"Revision {revision.number} has the spec of revision {number}.", extra_tags="fine")
    return redirect("console:revisions", pipe.id)


@for_members
@require_safe
def minute(request: HttpRequest, pipe_id: str, bucket: int) -> HttpResponseBase:
    """Show one minute: outcomes now and at the seal, losses by node, the positions in a bin.

    `format` exports the positions of the bin, or without a bin the loss table; `after` is the first lost message shown.
    """
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    chosen = request.GET.get("bin", "")
    if (kind := request.GET.get("format", "")) in KINDS:
        return _minute_export(kind, pipe.id, bucket, chosen)
    line = minute_line(pipe.id, bucket)
    units, more = units_in(pipe.id, bucket, Bin(chosen), MOST_UNITS) if chosen in BINS else ([], 0)
    context = pipe_context(pipe, "overview") | {
        "bucket": bucket,
        "starts": start_of(bucket),
        "ends": start_of(bucket + 1),
        "line": line,
        "timing": timing(pipe_id=pipe.id, span=BucketRange("", bucket, bucket)),
        "bins": list(BINS),
        "chosen": chosen if chosen in BINS else "",
        "meaning": BINS.get(chosen, ""),
        "units": units,
        "more": more,
        "losses": _losses(line, MinuteKey(pipe.id, bucket), number_of(request.GET.get("after"))),
        "curl": as_curl(f"pipes/{pipe.id}/minutes/{bucket}/"),
    }
    return show(request, "pipes/minute.html", context, tenant=pipe.tenant)


def _minute_export(kind: str, pipe_id: str, bucket: int, chosen: str) -> HttpResponseBase:
    if chosen in BINS:
        found, _ = units_in(pipe_id, bucket, Bin(chosen), MOST_ROWS)
        rows = ({**asdict(unit), "bin": chosen} for unit in found)
        columns = ("position", "destination", "bin", *(("last_seen",) if chosen == Bin.LOST else ()))
        return export(kind, rows, columns, name=f"units-{pipe_id}-{bucket}")
    nodes = [one.node for one in minute_line(pipe_id, bucket).loss.nodes]
    lost = islice(all_lost(MinuteKey(pipe_id, bucket)), MOST_ROWS)
    columns = ("position", "child", "destination", "last_seen", *nodes)
    return export(kind, (_lost_row(one, nodes) for one in lost), columns, name=f"losses-{pipe_id}-{bucket}")


def _lost_row(one: LostMessage, nodes: Sequence[str]) -> dict[str, Any]:
    row = {"position": one.position, "child": one.child, "destination": one.destination, "last_seen": one.last_seen}
    return row | {node: "seen" if node in one.seen else "" for node in nodes}


def _losses(line: MinuteLoss, minute: MinuteKey, after: int) -> MinuteLosses | None:
    """Return the lost messages of a minute; None without a query if none was lost."""
    return minute_losses([minute], first=after)[minute] if line.loss.lost else None


def _tab(request: HttpRequest) -> str:
    """Return the tab of the request; the head fragment is shared by all tabs."""
    tab = request.GET.get("tab", "")
    return tab if tab in TABS else "overview"


def _period(span: BucketRange) -> tuple[datetime, datetime]:
    """Return the first and the last moment of a range."""
    return start_of(span.first), start_of(span.last + 1) - timedelta(microseconds=1)


def _graph(pipe: Pipe, revision: PipeRevision, read: LedgerReads, now: datetime) -> PipeGraph:
    return pipe_graph(
        GraphFacts(
            pipe_id=pipe.id,
            spec=revision.spec,
            now=now,
            per_s=rates_of([pipe.id], now).get(pipe.id, 0.0),
            rows=read.destinations(),
            deliveries=read.deliveries(),
            waiting=waiting(pipe_ids=[pipe.id]),
            alerts=[one for one in read.alerts() if one.state in OPEN],
            timing=read.timing(),
            lines=read.loss().lines,
            oldest_at=_oldest_waiting(read),
        )
    )


def _points(read: LedgerReads, now: datetime) -> list[PlotPoint]:
    facts = PlotFacts(
        lines={line.bucket: line for line in read.loss().lines},
        lags={point.bucket: point for point in read.timing().lags},
        deliveries=read.deliveries(),
        kept_since=bucket_at(now - timedelta(hours=DELIVERIES_KEPT_H)) + 1,
        oldest_at=_oldest_waiting(read),
        now=now,
    )
    return plot_points(read.span, facts)


def _oldest_waiting(read: LedgerReads) -> datetime | None:
    return oldest_waiting(_health(read.destinations()))


def _health(destinations: Iterable[Destination]) -> list[DestinationHealth]:
    return [row.health for row in destinations if hasattr(row, "health")]


def _marks(pipe: Pipe, read: LedgerReads) -> list[PlotMark]:
    """Return the events of the range, oldest first."""
    since, until = _period(read.span)
    found = [
        *revision_marks(pipe.id, revisions_live_within(pipe, since, until)),
        *ramp_marks(pipe.id, ramp_steps_within(pipe, since, until), since),
        *scaling_marks(scalings_within(pipe, since, until)),
        *alert_marks(pipe.id, read.alerts(), since, until),
    ]
    return sorted(found, key=lambda mark: mark.at)


def _series_rows(measured: Timing) -> list[tuple[Any, tuple[float | None, ...]]]:
    series = measured.series
    rows = zip(map(start_of, series.buckets), series.values, strict=True)
    return [row for row in rows if series.names]


def _revision_row(row: PipeRevision) -> dict[str, Any]:
    fields = {name: getattr(row, name) for name in _REVISION_COLUMNS}
    return fields | {"author": row.author.get_username() if row.author else ""}


def _loss_row(line: MinuteLoss) -> dict[str, Any]:
    row = {"minute": line.starts, "sealed_at": line.sealed_at, "accepted": line.accepted}
    own = {"unacked": line.unacked, "late": line.late, "loss_share": line.loss.share}
    return row | {name: line.bins.get(name, 0) for name in BINS} | own
