"""Opening of a live tail as server-sent events, for the console and the API."""

from typing import Any, Final
from uuid import uuid4

from django.db import close_old_connections
from django.http import StreamingHttpResponse

from mgmt.models import Pipe, Topic, User
from mgmt.quotas.queries import quotas_for
from mgmt.tail import TailCapacityError, TailFilter, TailStream, hub, parse_cursor, seats

EVENT_STREAM: Final = "text/event-stream"
MOST_COPIES: Final = 50  # the newest ones, for a viewer that does not stream
NOT_DEPLOYED: Final = "The pipe has not been deployed yet."
NO_CAPACITY: Final = "This server has reached its limit of live tails. Try again later."


def open_tail(*, pipe: Pipe, topic: Topic, viewer: User, condition: str, after: str) -> StreamingHttpResponse:
    """Return the stream of a pipe's copies that pass the condition, which must have been checked.

    after: cursor after which to begin; for any other text the stream begins with new copies
    Raises TailQuotaError if the viewer or the tenant has as many as its quota allows, TailCapacityError.
    """
    seat = seats().take(**tail_limits(pipe, viewer))
    filter_, cursor = TailFilter(condition, f"tail {uuid4().hex}"), parse_cursor(after)
    try:
        stream = TailStream(
            hub(),
            filter_,
            topic=topic.name,
            generation=topic.generation,
            pipe=pipe.id,
            after=cursor,
            on_close=seat.leave,
        )
    except TailCapacityError:
        seat.leave()
        raise
    close_old_connections()  # the stream makes no queries, and would hold its connection for minutes
    response = StreamingHttpResponse(stream, content_type=EVENT_STREAM)
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # otherwise a proxy such as nginx would buffer it
    return response


def tail_limits(pipe: Pipe, viewer: User) -> dict[str, Any]:
    """Return the limits of open live tails of the tenant and of the viewer, as `Seats` takes them."""
    quotas = quotas_for(pipe.tenant_id)
    most, most_per_user = quotas.live_tails, quotas.live_tails_per_user
    return {"tenant": pipe.tenant_id, "user": str(viewer.pk), "most": most, "most_per_user": most_per_user}
