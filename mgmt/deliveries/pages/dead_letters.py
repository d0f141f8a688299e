"""Dead letters: groups by destination and cause, list, filters and export."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.pages.message_selection import WITHINS, filters_of, ids_of, since_of
from mgmt.deliveries.pages.redrives import latest_redrives
from mgmt.deliveries.presenters import (
    DeadLetterGroup,
    DeadLetterLine,
    MessageContent,
    dead_letter_group,
    dead_letter_line,
    readable_body,
)
from mgmt.deliveries.queries.delivery import dead_letters, states_after_redrive, without_redrive
from mgmt.deliveries.queries.message_selection import waiting
from mgmt.messages.queries.records import RecordUnavailableError, read_record
from mgmt.models import DeadLetter, OffsetSet, Pipe, Redrive
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, number_of, once, show, viewer_of

MOST: Final = 100
_LIVE: Final = {
    "head": "pipes/base.html",
    "heaps": "deliveries/dead_letters.html",
    "letters": "deliveries/dead_letters.html",
    "moves": "deliveries/redrives.html",
}
_COLUMNS: Final = (
    "at", "message_id", "key", "destination", "node", "cause", "detail", "attempts", "revision", "answer",
)  # fmt: skip


@for_members
@require_safe
def dead(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List dead letters, newest first. The URL has the filters; `format` exports the matches."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    now, filters = timezone.now(), filters_of(request.GET)
    if (kind := request.GET.get("format", "")) in KINDS:
        rows = _letters(pipe, filters, now)[:MOST_ROWS]
        return export(kind, map(_row, rows.iterator()), _COLUMNS, name=f"dead-letters-{pipe.id}")
    before = number_of(request.GET.get("before", ""))
    get_rows = once(lambda: list(_letters(pipe, filters, now, before)[: MOST + 1]))
    context = pipe_context(pipe, "dead") | {
        "now": now,
        "filters": filters,
        "query": urlencode(filters),
        "withins": list(WITHINS),
        "before": before,
        "causes": sorted(BY_CODE),
        "destinations": sorted(pipe.destinations.values_list("name", flat=True)),
        "get_lines": once(lambda: _lines(get_rows()[:MOST])),
        "get_older": once(lambda: get_rows()[MOST - 1].id if len(get_rows()) > MOST else 0),
        "get_heaps": once(partial(_heaps, pipe, filters)),
        "get_moves": once(partial(latest_redrives, pipe, Redrive.What.REDRIVE)),
        "most_rows": MOST_ROWS,
        "curl": as_curl(f"pipes/{pipe.id}/dead-letters/"),
    }
    return show(request, "deliveries/dead_letters.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_safe
def dead_letter(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Show one dead letter: its details, the stored message and the destination's response."""
    row = access.get_dead_letter(viewer_of(request), pipe_id, number)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    context = pipe_context(pipe, "dead") | {
        "line": _lines([row])[0],
        "get_content": once(partial(_content, row)),
        "curl": as_curl(f"pipes/{pipe.id}/dead-letters/{row.id}/"),
    }
    return show(request, "deliveries/dead_letter.html", context, tenant=pipe.tenant)


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


def _lines(rows: Sequence[DeadLetter]) -> list[DeadLetterLine]:
    states = states_after_redrive(rows)
    return [dead_letter_line(row, states.get(row.id, "")) for row in rows]


def _content(row: DeadLetter) -> MessageContent:
    try:
        record = read_record(row.topic, row.partition, row.offset, pipes=(row.pipe_id,))
    except RecordUnavailableError as exc:
        return MessageContent(reason=f"The message cannot be shown: {exc}.")
    if record.is_reference:
        return MessageContent(
            reason="The message is too large to be stored with its dead letter. See the page of the message."
        )
    return MessageContent(record.headers, readable_body(record.body), len(record.body), record.body_bytes)


def _heaps(pipe: Pipe, filters: Mapping[str, str]) -> list[DeadLetterGroup]:
    redrivable = [one for one in waiting(pipe_ids=[pipe.id]) if one.kind == OffsetSet.Kind.DEAD]
    found = [dead_letter_group(one) for one in redrivable]
    found += [dead_letter_group(one, redrivable=False) for one in without_redrive(pipe=pipe, redrivable=redrivable)]
    where, cause = filters.get("destination", ""), filters.get("cause", "")
    return [one for one in found if where in ("", one.fact.destination) and cause in ("", one.fact.cause)]


def _row(letter: DeadLetter) -> dict[str, Any]:
    return {name: getattr(letter, name) for name in _COLUMNS}
