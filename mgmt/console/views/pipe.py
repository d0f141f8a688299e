"""The pipe page and its reading tabs: overview, attempts, revisions, one minute."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from dataplane.ledger.bins import OVERWRITTEN, Bin, Books, derive
from dataplane.ledger.trace import sightings
from dataplane.ledger.units import format_position
from dataplane.plan.outbound import address_of
from dataplane.spec import destination_of
from mgmt import access
from mgmt.console.editor.draft import readable
from mgmt.console.export import KINDS, MOST_ROWS, export
from mgmt.console.pages import as_curl, for_members, ingest_url, once, part_of, show, viewer_of
from mgmt.console.snippets import endpoint, send_snippets
from mgmt.console.told import shown_attempts
from mgmt.console.way import last_seen
from mgmt.console.wording import BINS
from mgmt.models import Pipe, PipeRevision
from mgmt.queries.first import first_of
from mgmt.queries.ledger import Minute, books_of
from mgmt.queries.minutes import MinuteLine, loss_table, minute_lines
from mgmt.queries.patterns import told_now
from mgmt.queries.pipes import rates_of, standings_of
from mgmt.queries.span import SPANS, Span, span_until, start_of
from mgmt.queries.ticks import is_silent
from mgmt.queries.timing import Timing, timing
from mgmt.schedule import PROVISION

MOST_MINUTES: Final = 60
MOST_ATTEMPTS_HERE: Final = 10
MOST_UNITS: Final = 200
TABS: Final = ("overview", "attempts", "dead", "held", "tail", "windows", "patterns", "revisions", "settings")
_LOSS_COLUMNS: Final = ("minute", "sealed_at", "accepted", *BINS, "unacked", "late")
_REVISION_COLUMNS: Final = ("number", "state", "state_reason", "created_at", "author", "spec")
_PARTS: Final = {
    "head": "pipe_base.html",
    "waiting": "pipe_waiting.html",
    **dict.fromkeys(("listening", "flow", "pie", "shares", "lag", "loss", "attempts"), "pipe.html"),
}


@dataclass(frozen=True)
class Flow:
    """The line from sources over nodes to destinations."""

    sources: list[str]
    steps: int
    transforms: int
    destinations: list[dict[str, str]]
    per_s: float


@dataclass(frozen=True)
class UnitLine:
    """A unit in a bin; `last_seen` of a lost one."""

    position: str
    destination: str
    child: int
    last_seen: str


def shared(pipe: Pipe, tab: str) -> dict[str, Any]:
    """What every tab of a pipe needs."""
    return {
        "pipe": pipe,
        "tab": tab,
        "standing": standings_of([pipe])[pipe.id],
        "get_unusual": once(lambda: list(told_now([pipe.id]))),
        "get_behind": once(partial(is_silent, PROVISION, timezone.now())),
    }


@for_members
@require_safe
def overview(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Is it all right, where does the time go, where is every message; `format` makes a file of the loss table."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    now = timezone.now()
    span = span_until(request.GET.get("range", ""), now)
    if (kind := request.GET.get("format", "")) in KINDS:
        table = loss_table(pipe_id=pipe.id, span=span, most=MOST_ROWS)
        return export(kind, map(_loss_row, table.lines), _LOSS_COLUMNS, name=f"minutes-{pipe.id}")
    get_timing = once(partial(timing, pipe_id=pipe.id, span=span))
    context = shared(pipe, _tab(request)) | {
        "span": span,
        "spans": list(SPANS),
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url()),
        "get_first": once(partial(first_of, pipe.id)),
        "get_flow": once(lambda: _flow(pipe, rates_of([pipe.id], now).get(pipe.id, 0.0))),
        "get_timing": get_timing,
        "get_series_rows": once(lambda: _series_rows(get_timing())),
        "get_loss": once(partial(loss_table, pipe_id=pipe.id, span=span, most=MOST_MINUTES)),
        "get_attempts": once(partial(shown_attempts, pipe.id, MOST_ATTEMPTS_HERE)),
        "several": len(newest_revision(pipe).spec["destinations"]) > 1,
        "curl": as_curl(request, f"pipes/{pipe.id}/"),
    }
    template, part = part_of(request, _PARTS) or ("pipe.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


@for_members
@require_safe
def revisions(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Every revision with its state, author and spec; `format` makes a file of them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    rows = list(pipe.revisions.select_related("author", "ramp"))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_revision_row, rows), _REVISION_COLUMNS, name=f"revisions-{pipe.id}")
    for row in rows:
        row.spec_text = readable(row.spec)  # type: ignore[attr-defined]
    context = shared(pipe, "revisions") | {
        "revisions": rows,
        "curl": as_curl(request, f"pipes/{pipe.id}/revisions/"),
    }
    return show(request, "revisions.html", context, tenant=pipe.tenant)


@for_members
@require_safe
def minute(request: HttpRequest, pipe_id: str, bucket: int) -> HttpResponseBase:
    """One minute: units by destination and bin, and the positions that a bin holds now, as a file too."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    chosen = request.GET.get("bin", "")
    if (kind := request.GET.get("format", "")) in KINDS and chosen in BINS:
        found, _ = _units(pipe.id, bucket, Bin(chosen), MOST_ROWS)
        rows = ({**asdict(unit), "bin": chosen} for unit in found)
        columns = ("position", "destination", "bin", *(("last_seen",) if chosen == Bin.LOST else ()))
        return export(kind, rows, columns, name=f"units-{pipe.id}-{bucket}")
    lines = minute_lines([pipe.id], Span("", bucket, bucket)).get(pipe.id, [])
    units, more = _units(pipe.id, bucket, Bin(chosen), MOST_UNITS) if chosen in BINS else ([], 0)
    context = shared(pipe, "overview") | {
        "bucket": bucket,
        "starts": start_of(bucket),
        "line": lines[0] if lines else None,
        "timing": timing(pipe_id=pipe.id, span=Span("", bucket, bucket)),
        "bins": list(BINS),
        "chosen": chosen if chosen in BINS else "",
        "meaning": BINS.get(chosen, ""),
        "units": units,
        "more": more,
    }
    return show(request, "minute.html", context, tenant=pipe.tenant)


def _tab(request: HttpRequest) -> str:
    """The head fragment is shared by all tabs and names the one it stands on."""
    tab = request.GET.get("tab", "")
    return tab if tab in TABS else "overview"


def newest_revision(pipe: Pipe) -> PipeRevision:
    """The live revision, or the newest of a pipe that has none yet."""
    return pipe.revisions.filter(state=PipeRevision.State.LIVE).first() or pipe.revisions.latest("number")


def _flow(pipe: Pipe, per_s: float) -> Flow:
    spec: Mapping[str, Any] = newest_revision(pipe).spec
    states = dict(pipe.destinations.values_list("name", "state"))
    return Flow(
        sources=list(spec["sources"]),
        steps=len(spec.get("normalize", [])),
        transforms=sum(len(steps) for steps in spec.get("transform", {}).values()),
        destinations=[
            {"name": name, "url": address_of(to), "host": urlsplit(to.url).netloc, "state": states.get(name, "active")}
            for name, one in spec["destinations"].items()
            for to in [destination_of(one)]
        ],
        per_s=per_s,
    )


def _series_rows(measured: Timing) -> list[tuple[Any, tuple[float | None, ...]]]:
    series = measured.series
    rows = zip(map(start_of, series.buckets), series.values, strict=True)
    return [row for row in rows if series.names]


def _revision_row(row: PipeRevision) -> dict[str, Any]:
    fields = {name: getattr(row, name) for name in _REVISION_COLUMNS}
    return fields | {"author": row.author.get_username() if row.author else ""}


def _loss_row(line: MinuteLine) -> dict[str, Any]:
    row = {"minute": line.starts, "sealed_at": line.sealed_at, "accepted": line.accepted}
    return row | {name: line.bins.get(name, 0) for name in BINS} | {"unacked": line.unacked, "late": line.late}


def _units(pipe_id: str, bucket: int, bin_: Bin, most: int) -> tuple[list[UnitLine], int]:
    """The first `most` units of a bin, and how many more there are; of lost ones with where they were seen last."""
    books = books_of([Minute(pipe_id, bucket)])[Minute(pipe_id, bucket)]
    account = derive(books)
    found: list[UnitLine] = []
    total = 0
    for where, bins in {"": account.upstream, **account.destinations}.items():
        total += len(bins[bin_])
        for position, child in islice(bins[bin_], most - len(found)):
            seen = _last_seen(books, position, child, where) if bin_ is Bin.LOST else ""
            found.append(UnitLine(format_position(position), where, max(child, 0), seen))
    return found, total - len(found)


def _last_seen(books: Books, position: int, child: int, where: str) -> str:
    if child == OVERWRITTEN:
        return "ACKed by ingest. Kafka lost it, and gave its place to another message."
    return last_seen(sightings(books, position, child, where))
