"""Proxy in front of ingest that loses the answer of one request, refuses the next one, and passes all others."""

import asyncio
import http.client
import json
import time
from typing import Final, NamedTuple

from loadgen.scripted import Received, Receiver

EVENTS: Final = "/v1/events"
RETRY_AFTER_S: Final = 1
LOST, REFUSED = 1, 2  # numbers of the requests


class FrontRequest(NamedTuple):
    """A request of a sender: its arrival by a monotonic clock, and the ids of its CloudEvents."""

    at_s: float
    ids: list[str]
    media_type: str


class FlakyFront:
    """The first request is stored but gets no answer; the second one gets 503 and `Retry-After: 1`."""

    def __init__(self, port: int) -> None:
        """`port`: of ingest."""
        self.requests: list[FrontRequest] = []
        self._port = port
        self._receiver = Receiver()
        self._receiver.answers[EVENTS] = self._behave
        self.url = self._receiver.url("")

    def close(self) -> None:
        self._receiver.close()

    async def _behave(self, writer: asyncio.StreamWriter, received: Received) -> bool:
        ids = [one["id"] for one in json.loads(received.body)]
        self.requests.append(FrontRequest(time.monotonic(), ids, received.headers["content-type"]))
        number = len(self.requests)
        if number == REFUSED:
            writer.write(b"HTTP/1.1 503 X\r\nretry-after: %d\r\ncontent-length: 2\r\n\r\n{}" % RETRY_AFTER_S)
            await writer.drain()
            return True
        answer = await asyncio.get_running_loop().run_in_executor(None, self._forward, received)
        if number == LOST:
            writer.transport.abort()
            return False
        writer.write(answer)
        await writer.drain()
        return True

    def _forward(self, received: Received) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            sent = {name: received.headers[name] for name in ("authorization", "content-type")}
            connection.request("POST", EVENTS, received.body, sent)
            answer = connection.getresponse()
            body = answer.read()
            retry = f"retry-after: {after}\r\n" if (after := answer.getheader("retry-after")) else ""
            head = f"HTTP/1.1 {answer.status} X\r\ncontent-type: application/json\r\n{retry}"
            return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        finally:
            connection.close()
