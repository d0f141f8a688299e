"""A live tail for tests/support/front_server.py: /tail/<pipe> streams, /viewers returns the number of viewers.

Reads PENSTOCK_KAFKA and PENSTOCK_TAIL_TOPIC.
"""

import os
from collections.abc import Callable, Iterable

from mgmt.tail import TailCursor, TailFilter, TailHub, TailStream

hub = TailHub(os.environ["PENSTOCK_KAFKA"])


def application(
    environ: dict[str, str], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Stream a tail, or return the number of viewers."""
    _, room, *rest = environ["PATH_INFO"].split("/")
    if room == "viewers":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [str(hub.viewers).encode()]
    start_response("200 OK", [("Content-Type", "text/event-stream")])
    topic = os.environ["PENSTOCK_TAIL_TOPIC"]
    return TailStream(hub, TailFilter(), topic=topic, generation=1, pipe=rest[0], after=TailCursor(1, -1))
