"""A live tail for tests/rig/front_server.py: /tail/<pipe> streams, /viewers says how many look on.

Reads PENSTOCK_KAFKA and PENSTOCK_TAIL_TOPIC.
"""

import os
from collections.abc import Callable, Iterable

from mgmt.tail import Cursor, Hub, Stream, TailFilter

hub = Hub(os.environ["PENSTOCK_KAFKA"])


def application(
    environ: dict[str, str], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """The WSGI application."""
    _, room, *rest = environ["PATH_INFO"].split("/")
    if room == "viewers":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [str(hub.viewers).encode()]
    start_response("200 OK", [("Content-Type", "text/event-stream")])
    topic = os.environ["PENSTOCK_TAIL_TOPIC"]
    return Stream(hub, TailFilter(), topic=topic, generation=1, pipe=rest[0], after=Cursor(1, -1))
