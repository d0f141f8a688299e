"""Live tail of a pipe: the newest copies of its peek steps, or a stream of server-sent events."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import Pipe, Topic
from mgmt.sandbox import FilterRefusedError
from mgmt.tail import TailCapacityError, TailFilter, TailQuotaError, parse_cursor, shown
from mgmt.tail.opening import EVENT_STREAM, MOST_COPIES, NO_CAPACITY, NOT_DEPLOYED, open_tail
from mgmt.tail.queries import newest_copies, tail_of
from mgmt.tail.serializers import TAIL_EXAMPLE, TailOut
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import Answers, answers, example, operation
from mgmt.web.pagination import refused, text_of
from mgmt.web.problems import ProblemError
from mgmt.web.throttling import ApiThrottle, BrokerReadThrottle

FILTER = OpenApiParameter(
    "filter",
    str,
    description="Condition over `body` and `meta`, such as `body.order.total > 100`. Only copies that pass are sent.",
)
AFTER = OpenApiParameter("after", str, description="Cursor after which the stream begins, like `Last-Event-ID`.")
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID", str, OpenApiParameter.HEADER, description="Cursor after which the stream begins, before `after`."
)


class EventStreamRenderer(JSONRenderer):
    """Renderer that accepts `text/event-stream`. Only problems are rendered with it, as JSON: the stream is not."""

    media_type = EVENT_STREAM


def _answers() -> Answers:
    found = answers(200, TailOut, "not-found", "unavailable", "too-many-tails", "too-expensive")
    return found | {(200, EVENT_STREAM): OpenApiResponse(str, description="Success.")}


class TailView(View):
    """Live tail of a pipe."""

    renderer_classes = [JSONRenderer, EventStreamRenderer]
    throttle_classes = [ApiThrottle, BrokerReadThrottle]

    @operation(
        "tail_pipe",
        parameters=[FILTER, AFTER, LAST_EVENT_ID],
        responses=_answers(),
        examples=[example(TAIL_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> HttpResponseBase:
        """Return the newest copies of the pipe's peek steps; for `Accept: text/event-stream`, stream new ones.

        Each `copy` event has a copy, and its cursor as `id`. A `standing` event each second has the cursor and the
        counts of copies that were shown, left out (over 20 per second) or missed. The stream ends after two minutes;
        connect again with `Last-Event-ID` to continue after the last event. `gap` is true if copies in between are no
        longer kept. A user and a tenant may have as many streams open as their quotas allow.
        """
        row = access.get_pipe(self.user, pipe)
        condition, after, topic = text_of(request, "filter").strip(), self._cursor(request), tail_of(row)
        filter_ = TailFilter(condition, f"user {self.user.pk}")
        try:
            filter_.check()
            if request.accepted_renderer.media_type == EVENT_STREAM:
                return self._stream(row, topic, condition, after)
            return Response(TailOut(_newest(row, topic, filter_)).data)
        except FilterRefusedError as exc:
            raise refused("filter", str(exc).removesuffix(".")) from exc

    def _stream(self, pipe: Pipe, topic: Topic | None, condition: str, after: str) -> HttpResponseBase:
        if topic is None:
            raise ProblemError("unavailable", NOT_DEPLOYED)
        try:
            return open_tail(pipe=pipe, topic=topic, viewer=self.user, condition=condition, after=after)
        except TailQuotaError as exc:
            raise ProblemError("too-many-tails", str(exc)) from exc
        except TailCapacityError as exc:
            raise ProblemError("busy", NO_CAPACITY) from exc

    def _cursor(self, request: Request) -> str:
        """Return the cursor of the request. Raises ProblemError for a text that is none."""
        for name, text in (
            ("Last-Event-ID", request.headers.get("Last-Event-ID", "")),
            ("after", text_of(request, "after")),
        ):
            if text and parse_cursor(text) is None:
                raise refused(name, "needs the `id` of an event of this stream")
            if text:
                return text
        return ""


def _newest(pipe: Pipe, topic: Topic | None, filter_: TailFilter) -> dict[str, Any]:
    if topic is None:
        return {"cursor": None, "results": []}
    try:
        copies, cursor = newest_copies(topic, pipe.id, filter_, MOST_COPIES)
    except RecordUnavailableError as exc:
        raise ProblemError("unavailable", f"The live tail cannot be read: {exc}.") from exc
    return {"cursor": str(cursor) if cursor else None, "results": [shown(copy) for copy in copies]}
