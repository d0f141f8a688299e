"""The live tail of a pipe: what its peek steps show, as a page and, at the same address, as a stream of events."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.pages import for_members, show, viewer_of
from mgmt.console.views.pipe import newest_revision, shared
from mgmt.models import Pipe, Topic, User
from mgmt.queries.quotas import quotas_for
from mgmt.queries.records import RecordsAway
from mgmt.queries.tail import newest_copies, peek_steps, tail_of
from mgmt.sandbox import FilterRefusedError, SandboxLimit, SandboxRefused
from mgmt.tail import (
    Cursor,
    Stream,
    TailFilter,
    TailFullError,
    TailQuotaError,
    hub,
    parse_cursor,
    seats,
    shown,
)

MOST: Final = 50
EVENT_STREAM: Final = "text/event-stream"
AGAIN_S: Final = 5


@dataclass(frozen=True)
class Shown:
    """What is there when the page opens; `trouble` says why that could not be read."""

    copies: list[dict[str, Any]]
    cursor: Cursor | None = None
    trouble: str = ""


@for_members
@require_safe
def tail(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """The newest copies that pass `filter`; for who accepts a stream, one that begins behind the cursor `after`."""
    viewer = viewer_of(request)
    pipe = access.get_pipe(viewer, pipe_id)
    text, topic = request.GET.get("filter", "").strip(), tail_of(pipe)
    filter_, refused, newest = TailFilter(text, f"user {viewer.pk}"), "", Shown([])
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
    context = shared(pipe, "tail") | {
        "text": text,
        "refused": refused,
        "shown": newest,
        "steps": peek_steps(newest_revision(pipe).spec),
        "is_live": topic is not None and not refused,
        "crowded": seats().why_full(**_limits(pipe, viewer_of(request))),
    }
    return show(request, "tail.html", context, tenant=pipe.tenant, status=422 if refused else 200)


def _newest(pipe: Pipe, topic: Topic | None, filter_: TailFilter) -> Shown:
    if topic is None:
        return Shown([])
    try:
        copies, cursor = newest_copies(topic, pipe.id, filter_, MOST)
    except RecordsAway as exc:
        return Shown([], trouble=str(exc))
    return Shown([shown(copy) for copy in copies], cursor)


def _stream(request: HttpRequest, pipe: Pipe, topic: Topic | None, text: str) -> HttpResponseBase:
    if topic is None:
        return _refusal(503, "The pipe is not placed on a cell yet.")
    after = parse_cursor(request.headers.get("Last-Event-ID", "") or request.GET.get("after", ""))
    try:
        seat = seats().take(**_limits(pipe, viewer_of(request)))
    except TailQuotaError as exc:
        return _refusal(429, str(exc))
    filter_, generation = TailFilter(text, f"tail {uuid4().hex}"), topic.generation
    try:
        stream = Stream(
            hub(), filter_, topic=topic.name, generation=generation, pipe=pipe.id, after=after, on_close=seat.leave
        )
    except TailFullError:
        seat.leave()
        return _refusal(503, "As many look on as this server has room for. Try again when somebody has left.")
    close_old_connections()  # the stream asks Postgres nothing, and would keep its connection for minutes
    response = StreamingHttpResponse(stream, content_type=EVENT_STREAM)
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # or a proxy such as nginx would keep it back
    return response


def _limits(pipe: Pipe, viewer: User) -> dict[str, Any]:
    """How many live tails the tenant, and the viewer, may have open."""
    quotas = quotas_for(pipe.tenant_id)
    most, most_per_user = quotas.live_tails, quotas.live_tails_per_user
    return {"tenant": pipe.tenant_id, "user": str(viewer.pk), "most": most, "most_per_user": most_per_user}


def _refusal(status: int, why: str) -> HttpResponse:
    headers = {"Retry-After": str(AGAIN_S)} if status in (429, 503) else {}
    return HttpResponse(f"{why}\n", status=status, headers=headers, content_type="text/plain")
