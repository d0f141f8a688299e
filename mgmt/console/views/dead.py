"""Dead letters: what waits by destination and cause, the list with its filters and export."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.causes import BY_CODE
from mgmt.console.export import KINDS, MOST_ROWS, export
from mgmt.console.lines import Content, HeapLine, dead_line, heap_line, readable_body
from mgmt.console.pages import as_curl, for_members, number_of, once, part_of, show, viewer_of
from mgmt.console.views.choosing import WITHINS, filters_of, ids_of, since_of
from mgmt.console.views.moves import latest_moves
from mgmt.console.views.pipe import shared
from mgmt.models import DeadLetter, Move, OffsetSet, Pipe
from mgmt.queries.delivery import dead_letters
from mgmt.queries.places import waiting
from mgmt.queries.records import RecordsAway, read_record

MOST: Final = 100
_PARTS: Final = {"heaps": "dead.html", "letters": "dead.html", "moves": "moves.html"}
_COLUMNS: Final = (
    "at", "message_id", "key", "destination", "node", "cause", "detail", "attempts", "revision", "answer",
)  # fmt: skip


@for_members
@require_safe
def dead(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """What ended without being delivered, the newest first; the filters stand in the URL."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    now, filters = timezone.now(), filters_of(request.GET)
    if (kind := request.GET.get("format", "")) in KINDS:
        rows = _letters(pipe, filters, now)[:MOST_ROWS]
        return export(kind, map(_row, rows.iterator()), _COLUMNS, name=f"dead-letters-{pipe.id}")
    before = number_of(request.GET.get("before", ""))
    get_rows = once(lambda: list(_letters(pipe, filters, now, before)[: MOST + 1]))
    context = shared(pipe, "dead") | {
        "now": now,
        "filters": filters,
        "query": urlencode(filters),
        "withins": list(WITHINS),
        "before": before,
        "causes": sorted(BY_CODE),
        "destinations": sorted(pipe.destinations.values_list("name", flat=True)),
        "get_lines": once(lambda: [dead_line(row) for row in get_rows()[:MOST]]),
        "get_older": once(lambda: get_rows()[MOST - 1].id if len(get_rows()) > MOST else 0),
        "get_heaps": once(partial(_heaps, pipe, filters)),
        "get_moves": once(partial(latest_moves, pipe, Move.What.REDRIVE)),
        "most_rows": MOST_ROWS,
        "curl": as_curl(request, f"pipes/{pipe.id}/dead-letters/"),
    }
    template, part = part_of(request, _PARTS) or ("dead.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


@for_members
@require_safe
def dead_letter(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """One dead letter: what happened, the message as it lies in its topic, and the answer that came."""
    row = access.get_letter(viewer_of(request), pipe_id, number)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    context = shared(pipe, "dead") | {
        "line": dead_line(row),
        "get_content": once(partial(_content, row)),
        "curl": as_curl(request, f"pipes/{pipe.id}/dead-letters/{row.id}/"),
    }
    return show(request, "dead_letter.html", context, tenant=pipe.tenant)


def _letters(pipe: Pipe, filters: Mapping[str, str], now: datetime, before: int = 0) -> QuerySet[DeadLetter]:
    rows = dead_letters(
        pipe=pipe,
        destination=filters.get("destination"),
        cause=filters.get("cause", ""),
        key=filters.get("key", ""),
        since=since_of(filters, now),
    )
    if ids := ids_of(filters):
        rows = rows.filter(message_id__in=ids)
    return rows.filter(id__lt=before) if before else rows


def _content(row: DeadLetter) -> Content:
    try:
        record = read_record(row.topic, row.partition, row.offset, pipes=(row.pipe_id,))
    except RecordsAway as exc:
        return Content(reason=f"The message cannot be shown: {exc}.")
    if record.is_reference:
        return Content(reason="The message is too large to be kept with its dead letter. Its own page shows it.")
    return Content(record.headers, readable_body(record.body), len(record.body), record.body_bytes)


def _heaps(pipe: Pipe, filters: Mapping[str, str]) -> list[HeapLine]:
    found = waiting(pipe_ids=[pipe.id], destination=filters.get("destination", ""))
    cause = filters.get("cause", "")
    return [heap_line(one) for one in found if one.kind == OffsetSet.Kind.DEAD and cause in ("", one.cause)]


def _row(letter: DeadLetter) -> dict[str, Any]:
    return {name: getattr(letter, name) for name in _COLUMNS}
