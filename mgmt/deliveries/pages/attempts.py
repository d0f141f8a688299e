"""Delivery attempts: list, filters and export."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from mgmt.deliveries.attempt_views import attempt_view
from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.queries.attempts import OUTCOMES, AttemptFilter, AttemptLine, latest_attempts
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

MOST: Final = 100
_LIVE: Final = {"head": "pipes/base.html", "attempts": "deliveries/attempts.html"}
_COLUMNS: Final = (
    "at", "message_id", "position", "destination", "revision", "number", "outcome", "status", "reason", "address",
    "total_us", "split", "next_at", "gives_up_at", "answer",
)  # fmt: skip


@for_members
@require_safe
def attempts(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List the newest attempts. The URL has the filters; `format` exports the matches."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    wanted = _wanted(request)
    if (kind := request.GET.get("format", "")) in KINDS:
        lines = latest_attempts(pipe_id=pipe.id, most=MOST_ROWS, wanted=wanted)
        return export(kind, _rows(lines), _COLUMNS, name=f"attempts-{pipe.id}")
    before = request.GET.get("before", "")
    get_lines = once(lambda: latest_attempts(pipe_id=pipe.id, most=MOST + 1, wanted=wanted, before=_mark(before)))
    filters = {name: value for name, value in asdict(wanted).items() if value}
    context = pipe_context(pipe, "attempts") | {
        "outcomes": OUTCOMES,
        "causes": sorted(BY_CODE),
        "wanted": wanted,
        "filters": filters,
        "query": urlencode(filters),
        "before": before,
        "destinations": sorted(pipe.destinations.values_list("name", flat=True)),
        "get_attempts": once(lambda: attempt_view(get_lines()[:MOST])),
        "get_older": once(lambda: _older(get_lines(), filters)),
        "most_rows": MOST_ROWS,
        "curl": as_curl(f"pipes/{pipe.id}/attempts/"),
    }
    return show(request, "deliveries/attempts.html", context, tenant=pipe.tenant, live=_LIVE)


def _wanted(request: HttpRequest) -> AttemptFilter:
    """Return the filters of the URL; impossible values are ignored."""
    outcome, cause = request.GET.get("outcome", ""), request.GET.get("cause", "")
    return AttemptFilter(
        outcome=outcome if outcome in OUTCOMES else "",
        destination=_clean(request.GET.get("destination", "")),
        cause=cause if cause in BY_CODE else "",
        message=_clean(request.GET.get("message", "")),
    )


def _clean(text: str) -> str:
    return text.strip().replace("\x00", "")[:100]


def _older(lines: list[AttemptLine], filters: dict[str, str]) -> str:
    """Return the query of the next page; "" on the last one."""
    if len(lines) <= MOST:
        return ""
    last = lines[MOST - 1]
    return urlencode({**filters, "before": f"{int(last.at.timestamp() * 1_000_000)}-{last.id}"})


def _mark(before: str) -> tuple[datetime, int] | None:
    at_us, _, row_id = before.partition("-")
    if not (at_us.isdecimal() and row_id.isdecimal() and len(at_us) < 18 and len(row_id) < 18):
        return None
    return datetime.fromtimestamp(int(at_us) // 1_000_000, UTC).replace(microsecond=int(at_us) % 1_000_000), int(row_id)


def _rows(lines: list[AttemptLine]) -> Iterator[dict[str, Any]]:
    for line in lines:
        row = {name: getattr(line, name) for name in _COLUMNS}
        yield row | {"split": " ".join(f"{name.replace(' ', '_')}={us}" for name, us in line.split)}
