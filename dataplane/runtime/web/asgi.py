"""Read request bodies and send short responses over ASGI, within limits of size and time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dataplane.runtime.web.errors import ClientGoneError

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiHeaders = Sequence[tuple[bytes, bytes]]

PLAIN_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")


class BodyRefusedError(Exception):
    """The body is refused. `status` is the HTTP status, `code` a stable name, the text says what the client can do."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


class BodyRule(Struct, frozen=True):
    """Limits of size and time for a request body.

    A body may take `patience_s` seconds, plus the time of its bytes at `least_bytes_per_s`: this serves slow
    connections, but not clients that trickle bytes to keep a connection open.
    """

    most_bytes: int
    patience_s: float = 10.0
    least_bytes_per_s: float = 50_000.0


class ByteBudget:
    """Limit of the bytes of all request bodies that the process holds at once. Used from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.held_bytes = 0

    def take(self, count: int) -> None:
        """Count bytes that were read. Raises BodyRefusedError (503) if they exceed the limit; they stay counted."""
        self.held_bytes += count
        if self.held_bytes > self._most_bytes:
            raise BodyRefusedError(503, "busy", "The server is busy. Try again in a few seconds.")

    def give_back(self, count: int) -> None:
        """Release bytes that are no longer held."""
        self.held_bytes -= count


class BodyReader:
    """Reader of one request body, chunk by chunk, under a BodyRule."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive, rule: BodyRule) -> None:
        """Raise BodyRefusedError (413) if the declared length exceeds the limit."""
        self._receive, self._rule = receive, rule
        self._began_s = asyncio.get_running_loop().time()
        self.read_bytes = 0
        self.is_over = False
        declared = next((value for name, value in headers if name == b"content-length"), b"0")
        if int(declared) > rule.most_bytes:
            raise self._too_large()

    async def chunk(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises BodyRefusedError (408, 413) and ClientGoneError."""
        rule = self._rule
        while not self.is_over:
            deadline_s = self._began_s + rule.patience_s + self.read_bytes / rule.least_bytes_per_s
            message = await self._message(deadline_s)
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            self.is_over = not message.get("more_body", False)
            if data := message.get("body", b""):
                self.read_bytes += len(data)
                if self.read_bytes > rule.most_bytes:
                    raise self._too_large()
                return bytes(data)
        return b""

    async def _message(self, deadline_s: float) -> Message:
        """Return the next message. Raises BodyRefusedError (408) at the deadline.

        `asyncio.timeout` would leave exceptions whose frames refer to each other. The server keeps a connection open as
        long as anything refers to its `receive`, here until the next garbage collection.
        """
        message = asyncio.ensure_future(self._receive())
        try:
            await asyncio.wait([message], timeout=deadline_s - asyncio.get_running_loop().time())
            if message.done():
                return message.result()
        finally:
            message.cancel()
            del message  # the traceback of its error has this frame
        detail = f"The request body arrived too slowly. Send the whole body within {self._rule.patience_s:g} seconds."
        raise BodyRefusedError(408, "body-slow", detail)

    def _too_large(self) -> BodyRefusedError:
        return BodyRefusedError(413, "body-too-large", f"The body may have at most {self._rule.most_bytes} bytes.")


async def read_body(reader: BodyReader, budget: ByteBudget) -> bytes:
    """Read a whole body; its bytes stay counted in the budget until the caller releases them with `give_back`.

    Raises BodyRefusedError and ClientGoneError; then nothing stays counted.
    """
    body = bytearray()
    try:
        while data := await reader.chunk():
            body += data
            budget.take(len(data))
    except BaseException:
        budget.give_back(len(body))
        raise
    return bytes(body)


async def answer(send: Send, status: int, headers: AsgiHeaders, body: bytes) -> None:
    """Send a complete response."""
    head = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
