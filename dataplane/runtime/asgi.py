"""Reading a request's body and sending short answers over ASGI, within bounds of bytes and of time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, Final

from msgspec import Struct

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

PLAIN_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")


class BodyRefusedError(Exception):
    """The body is not read to its end. `status` is what to answer, `code` a stable name, the text says what to do."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


class ClientGoneError(Exception):
    """The client closed the connection before its body was read: there is nobody to answer."""


class BodyRule(Struct, frozen=True):
    """How much of a body is read, and how long it may take.

    A body has `patience_s` seconds, and as many more as its bytes take at `least_bytes_per_s`: slow lines are served,
    clients that trickle bytes to hold a connection are not.
    """

    most_bytes: int
    patience_s: float = 10.0
    least_bytes_per_s: float = 50_000.0


class ByteBudget:
    """Bytes of bodies that the process holds at one time, all requests together. Used from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.held_bytes = 0

    def take(self, count: int) -> None:
        """Count bytes that were read. Raises BodyRefusedError (503) if there is no room for them."""
        self.held_bytes += count
        if self.held_bytes > self._most_bytes:
            raise BodyRefusedError(503, "busy", "The server holds too many request bodies. Try again in a few seconds.")

    def give_back(self, count: int) -> None:
        """Count bytes that are no longer held."""
        self.held_bytes -= count


class BodyReader:
    """The body of one request, chunk by chunk, under a rule."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive, rule: BodyRule) -> None:
        """Raises BodyRefusedError (413) if the declared length is too large already."""
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
            try:
                async with asyncio.timeout_at(deadline_s):
                    message = await self._receive()
            except TimeoutError:
                detail = f"The body came too slowly: it must arrive within {rule.patience_s:g} s."
                raise BodyRefusedError(408, "body-slow", detail) from None
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            self.is_over = not message.get("more_body", False)
            if data := message.get("body", b""):
                self.read_bytes += len(data)
                if self.read_bytes > rule.most_bytes:
                    raise self._too_large()
                return bytes(data)
        return b""

    def _too_large(self) -> BodyRefusedError:
        return BodyRefusedError(413, "body-too-large", f"The body may have {self._rule.most_bytes} bytes.")


async def read_body(reader: BodyReader, budget: ByteBudget) -> bytes:
    """Read a whole body; its bytes stay counted in the budget until the caller gives them back.

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


async def answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole answer."""
    head = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
