"""Event log of a pipe, for listeners that read every event once it is stored."""

import threading
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.units import format_position
from mgmt.messages.event_cursor import EventCursor, parse_event_cursor
from mgmt.messages.event_serializers import EVENT_LOG_EXAMPLE, EventLogOut
from mgmt.messages.queries.event_log import MOST_EVENTS, EventPage, LoggedEvent, RecordUnavailableError, events_after
from mgmt.models import Pipe
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, example, operation
from mgmt.web.pagination import number_in, refused, text_of, time_of
from mgmt.web.problems import ProblemError
from mgmt.web.throttling import ApiThrottle, EventReadThrottle

AFTER = OpenApiParameter(
    "after", str, description="`cursor` of the previous response. Only events after it are listed."
)
SINCE = OpenApiParameter(
    "since", datetime, description="Without `after`: the first events were stored at this time. Default: now."
)
SOURCE = OpenApiParameter("source", str, description="Only events of this source. Default: of all sources.")
LIMIT = OpenApiParameter("limit", int, description=f"Events in the response, 1 to {MOST_EVENTS}. Default: 100.")


# Reads at a time in one process: each takes a page thread for up to two seconds, and pages need threads, too.
_READS: Final = threading.BoundedSemaphore(3)


class EventsView(View):
    """Event log of a pipe."""

    throttle_classes = [ApiThrottle, EventReadThrottle]

    @operation(
        "list_events",
        parameters=[AFTER, SINCE, SOURCE, LIMIT],
        responses=answers(200, EventLogOut, "not-found", "unavailable"),
        examples=[example(EVENT_LOG_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List the events of a pipe in the order of the log, from a cursor on, as ingest stored them.

        The response does not wait for events: at the end of the log, ask again after a second. Bodies of one response
        have at most 4 MB and the read takes at most two seconds, so a response may be empty although `more` is true.
        Masked fields are masked. A user may send 120 of these requests per minute.
        """
        row, now = access.get_pipe(self.user, pipe), timezone.now()
        cursor, since = _start(request)
        limit = number_in(request, "limit", 100, least=1, most=MOST_EVENTS)
        page = _read(row, cursor, since=since or now, source=text_of(request, "source"), most=limit, now=now)
        body = {"results": list(map(_line, page.events)), "more": page.more, "gap": page.gap}
        return Response(EventLogOut(body | {"cursor": str(page.cursor)}).data)


def _start(request: Request) -> tuple[EventCursor | None, datetime | None]:
    """Return the cursor or the time from which to read. Raises ProblemError."""
    text, since = text_of(request, "after"), time_of(request, "since")
    cursor = parse_event_cursor(text)
    if text and cursor is None:
        raise refused("after", "needs the `cursor` of a response of this operation")
    if text and since:
        raise refused("since", "cannot be used with `after`")
    return cursor, since


def _read(pipe: Pipe, cursor: EventCursor | None, **selection: Any) -> EventPage:
    if not _READS.acquire(blocking=False):
        raise ProblemError("busy")
    try:
        return events_after(pipe, cursor, **selection)
    except RecordUnavailableError as exc:
        raise ProblemError("unavailable", f"The events cannot be read: {exc}.") from exc
    finally:
        _READS.release()


def _line(event: LoggedEvent) -> dict[str, object]:
    meta = event.meta
    return {
        "id": meta.id,
        "position": format_position(event.position),
        "source": meta.source,
        "revision": meta.revision,
        "accepted_at": datetime.fromtimestamp(meta.ingest_time_us / 1_000_000, timezone.get_default_timezone()),
        "headers": event.headers,
        "body": event.body,
        "is_masked": event.is_masked,
    }
