"""Live tail of a pipe: copies of its peek steps, as a page and, at the same URL, as server-sent events."""

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import Pipe, Topic
from mgmt.pipes.page_context import newest_revision, pipe_context
from mgmt.sandbox import FilterRefusedError, SandboxLimit, SandboxRefused
from mgmt.tail import TailCapacityError, TailCursor, TailFilter, TailQuotaError, seats, shown
from mgmt.tail.opening import EVENT_STREAM, MOST_COPIES, NO_CAPACITY, NOT_DEPLOYED, open_tail, tail_limits
from mgmt.tail.queries import newest_copies, peek_steps, tail_of
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, viewer_of

AGAIN_S: Final = 5


@dataclass(frozen=True)
class TailPage:
    """Initial content of the page; `trouble` says why it could not be read."""

    copies: list[dict[str, Any]]
    cursor: TailCursor | None = None
    trouble: str = ""


@for_members
@require_safe
def tail(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Show the newest copies that pass `filter`; for Accept: text/event-stream, stream from the cursor `after`."""
    viewer = viewer_of(request)
    pipe = access.get_pipe(viewer, pipe_id)
    text, topic = request.GET.get("filter", "").strip(), tail_of(pipe)
    filter_, refused, newest = TailFilter(text, f"user {viewer.pk}"), "", TailPage([])
    try:
        filter_.check()
        if EVENT_STREAM in request.headers.get("Accept", ""):
            return _stream(request, pipe, topic, text)
        newest = _newest(pipe, topic, filter_)
    except (FilterRefusedError, SandboxLimit) as exc:
        refused = str(exc).removesuffix(".")
    except SandboxRefused as exc:
        return _refusal(503, str(exc))
    if refused and EVENT_STREAM in request.headers.get("Accept", ""):
        return _refusal(422, refused)
    context = pipe_context(pipe, "tail") | {
        "text": text,
        "refused": refused,
        "shown": newest,
        "steps": peek_steps(newest_revision(pipe).spec),
        "is_live": topic is not None and not refused,
        "curl": as_curl(f"pipes/{pipe.id}/tail/"),
        "crowded": seats().why_full(**tail_limits(pipe, viewer)),
    }
    return show(request, "tail/tail.html", context, tenant=pipe.tenant, status=422 if refused else 200)


def _newest(pipe: Pipe, topic: Topic | None, filter_: TailFilter) -> TailPage:
    if topic is None:
        return TailPage([])
    try:
        copies, cursor = newest_copies(topic, pipe.id, filter_, MOST_COPIES)
    except RecordUnavailableError as exc:
        return TailPage([], trouble=str(exc))
    return TailPage([shown(copy) for copy in copies], cursor)


def _stream(request: HttpRequest, pipe: Pipe, topic: Topic | None, text: str) -> HttpResponseBase:
    if topic is None:
        return _refusal(503, NOT_DEPLOYED)
    after = request.headers.get("Last-Event-ID", "") or request.GET.get("after", "")
    try:
        return open_tail(pipe=pipe, topic=topic, viewer=viewer_of(request), condition=text, after=after)
    except TailQuotaError as exc:
        return _refusal(429, str(exc))
    except TailCapacityError:
        return _refusal(503, NO_CAPACITY)


def _refusal(status: int, why: str) -> HttpResponse:
    headers = {"Retry-After": str(AGAIN_S)} if status in (429, 503) else {}
    return HttpResponse(f"{why}\n", status=status, headers=headers, content_type="text/plain")
