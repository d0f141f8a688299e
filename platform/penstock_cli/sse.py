"""Server-sent events from the lines of a response. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class ServerSentEvent(NamedTuple):
    """One event. id: cursor of the stream after it; empty if it has none."""

    name: str
    data: str
    id: str


def server_sent_events(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """Yield the events of a stream; comments and unknown fields are left out."""
    name, data, id_ = "message", list[str](), ""
    for line in lines:
        if not line:
            if data:
                yield ServerSentEvent(name, "\n".join(data), id_)
            name, data, id_ = "message", [], ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                name = value
            case "data":
                data.append(value)
            case "id":
                id_ = value
