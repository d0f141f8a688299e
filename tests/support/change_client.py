"""Client of a stream of changes: reads server-sent events from a socket until it is closed."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Self

WAIT_S: Final = 20.0


class StreamEvent(NamedTuple):
    """One server-sent event. `id`: the last one that the stream gave; `name`: "message" for a change."""

    id: str
    name: str
    data: Any


def parsed(lines: Iterator[bytes], last_id: str = "") -> Iterator[StreamEvent]:
    """Yield the events of a stream's lines, as the HTML standard parses them."""
    name, data = "message", list[str]()
    for line in lines:
        text = line.decode().rstrip("\n")
        field, _, value = text.partition(": ")
        match field:
            case "id":
                last_id = value
            case "event":
                name = value
            case "data":
                data.append(value)
            case "":
                if not text and data:
                    yield StreamEvent(last_id, name, json.loads("\n".join(data)))
                if not text:
                    name, data = "message", []


class ChangeClient:
    """One open stream of a table query service."""

    def __init__(self, port: int, target: str, token: str, last_event_id: str = "") -> None:
        """Open the stream. A refused request has another `status` than 200."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        headers = {"authorization": f"Bearer {token}"} | ({"last-event-id": last_event_id} if last_event_id else {})
        try:
            self._connection.connect()
            self._socket = self._connection.sock
            self._connection.request("GET", target, headers=headers)
            self._answer = self._connection.getresponse()
        except BaseException:
            self._connection.close()
            raise
        self.status = self._answer.status
        self.last_id = last_event_id
        self._events = parsed(iter(self._answer.readline, b""), last_event_id) if self.status == 200 else iter(())

    def next(self) -> StreamEvent:
        """Return the next event. Raises StopIteration at the end of the stream, TimeoutError if none arrives."""
        event = next(self._events)
        self.last_id = event.id
        return event

    def rows(self, count: int) -> list[tuple[str, Any]]:
        """Return key and row of the next changes, without other events."""
        found: list[tuple[str, Any]] = []
        while len(found) < count:
            event = self.next()
            if event.name == "message":
                found.append((event.data["key"], event.data["row"]))
        return found

    def until_caught_up(self) -> list[tuple[str, Any]]:
        """Return key and row of each change before the event `caught-up`."""
        found: list[tuple[str, Any]] = []
        while (event := self.next()).name != "caught-up":
            found.append((event.data["key"], event.data["row"]))
        return found

    def rest(self) -> list[StreamEvent]:
        """Return the events up to the end of the stream."""
        return list(self._events)

    def interrupt(self) -> None:
        """End the stream for a thread that waits for its next event."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Disconnect."""
        self._answer.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_unread(port: int, target: str, token: str) -> socket.socket:
    """Open a stream with a small receive buffer, from which nothing is read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {target} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n".encode())
    return client
