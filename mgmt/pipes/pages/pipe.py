"""Read-only pages of a pipe: overview, revisions, one minute."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.ledger.bins import Bin
from dataplane.plan.outbound import address_of
from dataplane.spec import SpecError, destination_of
from mgmt import services
from mgmt.deliveries.attempt_views import attempt_views
from mgmt.deliveries.cause_wording import BINS
from mgmt.deliveries.queries.health import health_rows
from mgmt.ledger.queries.bucket_range import SPANS, BucketRange, span_until, start_of
from mgmt.ledger.queries.ledger import MinuteKey
from mgmt.ledger.queries.losses import LostMessage, MinuteLosses, all_lost, minute_losses
from mgmt.ledger.queries.minutes import MinuteLoss, loss_table, minute_line
from mgmt.ledger.queries.timing import Timing, timing
from mgmt.messages.units import units_in
from mgmt.models import Pipe, PipeRevision
from mgmt.pipes.editor.draft import readable
from mgmt.pipes.page_context import newest_revision, pipe_context
from mgmt.pipes.queries.first_delivery import first_delivery
from mgmt.pipes.queries.pipes import rates_of
from mgmt.sandbox import SandboxRefused
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, ingest_url, number_of, once, part_of, show, viewer_of
from mgmt.web.snippets import endpoint, send_snippets

MOST_MINUTES: Final = 60
MOST_ATTEMPTS_HERE: Final = 10
MOST_UNITS: Final = 200
TABS: Final = ("overview", "attempts", "dead", "held", "tail", "windows", "patterns", "revisions", "settings")
_LOSS_COLUMNS: Final = ("minute", "sealed_at", "accepted", *BINS, "unacked", "late", "loss_share")
_REVISION_COLUMNS: Final = ("number", "state", "state_reason", "created_at", "author", "spec")
_PARTS: Final = {
    "head": "pipes/base.html",
    "waiting": "pipes/waiting.html",
    **dict.fromkeys(("listening", "flow", "pie", "shares", "lag", "loss", "attempts"), "pipes/pipe.html"),
}


@dataclass(frozen=True)
class PipeDiagram:
    """Diagram from sources through nodes to destinations."""

    sources: list[str]
    steps: int
    transforms: int
    destinations: list[dict[str, Any]]
    per_s: float
    oldest_at: datetime | None


@for_members
@require_safe
def overview(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Show flow, delivery time by stage, lag and loss of a pipe; `format` exports the loss table."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    now = timezone.now()
    span = span_until(request.GET.get("range", ""), now)
    if (kind := request.GET.get("format", "")) in KINDS:
        table = loss_table(pipe_id=pipe.id, span=span, most=MOST_ROWS)
        return export(kind, map(_loss_row, table.lines), _LOSS_COLUMNS, name=f"minutes-{pipe.id}")
    get_timing = once(partial(timing, pipe_id=pipe.id, span=span))
    context = pipe_context(pipe, _tab(request)) | {
        "span": span,
        "now": now,
        "spans": list(SPANS),
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url(), sample=pipe.sample),
        "get_first": once(partial(first_delivery, pipe.id)),
        "get_flow": once(lambda: _flow(pipe, rates_of([pipe.id], now).get(pipe.id, 0.0))),
        "get_timing": get_timing,
        "get_series_rows": once(lambda: _series_rows(get_timing())),
        "get_loss": once(partial(loss_table, pipe_id=pipe.id, span=span, most=MOST_MINUTES)),
        "get_attempts": once(partial(attempt_views, pipe.id, MOST_ATTEMPTS_HERE)),
        "several": len(newest_revision(pipe).spec["destinations"]) > 1,
        "curl": as_curl(request, f"pipes/{pipe.id}/minutes/"),
    }
    template, part = part_of(request, _PARTS) or ("pipes/pipe.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


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
        "curl": as_curl(request, f"pipes/{pipe.id}/revisions/"),
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
            pipe=pipe, spec=spec, based_on=newest, author=viewer_of(request), must_change=True
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
        "line": line,
        "timing": timing(pipe_id=pipe.id, span=BucketRange("", bucket, bucket)),
        "bins": list(BINS),
        "chosen": chosen if chosen in BINS else "",
        "meaning": BINS.get(chosen, ""),
        "units": units,
        "more": more,
        "losses": _losses(line, MinuteKey(pipe.id, bucket), number_of(request.GET.get("after"))),
        "curl": as_curl(request, f"pipes/{pipe.id}/minutes/{bucket}/"),
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


def _flow(pipe: Pipe, per_s: float) -> PipeDiagram:
    spec: Mapping[str, Any] = newest_revision(pipe).spec
    states = dict(pipe.destinations.values_list("name", "state"))
    health = {row.destination.name: row for row in health_rows([pipe.id]).get(pipe.id, ())}
    return PipeDiagram(
        sources=list(spec["sources"]),
        steps=len(spec.get("normalize", [])),
        transforms=sum(len(steps) for steps in spec.get("transform", {}).values()),
        destinations=[
            {
                "name": name,
                "url": address_of(to),
                "host": urlsplit(to.url).netloc,
                "state": states.get(name, "active"),
                "health": health.get(name),
            }
            for name, one in spec["destinations"].items()
            for to in [destination_of(one)]
        ],
        per_s=per_s,
        oldest_at=min((row.oldest_at for row in health.values() if row.oldest_at), default=None),
    )


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
