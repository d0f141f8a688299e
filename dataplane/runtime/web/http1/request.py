"""One HTTP/1.1 request: its head, and its body as it arrives."""

import asyncio
from typing import Final, Protocol

from dataplane.runtime.web.errors import ClientGoneError, HttpError
from dataplane.runtime.web.http1.head import RequestHead, ResponseHeaders

BUFFER_BYTES: Final = 64 * 1024  # of a body that nobody reads; the connection reads no more than about this


class RequestConnection(Protocol):
    """Connection of a request."""

    def want_body(self) -> None:
        """Continue reading: the application waits for the body."""

    def send(self, request: "Request", status: int, headers: ResponseHeaders, body: bytes) -> None:
        """Send the response of a request."""


class Request:
    """A request. Read its body with `body` or `chunk`, and call `respond` once.

    The connection appends to the body with `feed` until `complete`, or ends it with `fail`.
    """

    __slots__ = ("__weakref__", "_connection", "_failure", "_received", "_waiter", "_wants_all", "head", "is_complete")

    def __init__(self, head: RequestHead, connection: RequestConnection) -> None:
        self.head = head
        self.is_complete = False  # all of the body was received
        self._connection = connection
        self._received: bytes | bytearray = b""  # and not read
        self._failure: HttpError | ClientGoneError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._wants_all = False

    async def body(self) -> bytes:
        """Return the whole rest of the body, however large it is: check `head.content_length` before.

        Raises HttpError if the body is invalid or too slow, and ClientGoneError.
        """
        while not self.is_complete:
            await self._more(wants_all=True)
        return self._take()

    async def chunk(self) -> bytes:
        """Return the bytes of the body that have arrived, at least one; b"" at its end. Raises as `body` does."""
        while not (self._received or self.is_complete):
            await self._more(wants_all=False)
        return self._take()

    def respond(self, status: int, headers: ResponseHeaders, body: bytes) -> None:
        """Send the response. It is dropped if the client is gone."""
        self._connection.send(self, status, headers, body)

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if not self._received:
            self._received = data
        elif isinstance(self._received, bytearray):
            self._received += data
        else:
            self._received = bytearray(self._received) + data
        if not self._wants_all:
            self._wake()

    @property
    def buffered(self) -> int:
        """Return the bytes of the body that were received and not read."""
        return len(self._received)

    @property
    def is_unread(self) -> bool:
        """Return whether more was received than may be buffered while the application does not read."""
        return self._waiter is None and self.buffered > BUFFER_BYTES

    def complete(self) -> None:
        """Note that all of the body was received."""
        self.is_complete = True
        self._wake()

    def fail(self, failure: HttpError | ClientGoneError) -> None:
        """Drop the body, and raise an error where the application reads it, now or later; the first one counts."""
        if not self.is_complete and self._failure is None:
            self._failure, self._received = failure, b""
            self._wake()

    def _take(self) -> bytes:
        received, self._received = self._received, b""
        return bytes(received)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _more(self, *, wants_all: bool) -> None:
        if self._failure is None:
            self._waiter = asyncio.get_running_loop().create_future()
            self._wants_all = wants_all
            self._connection.want_body()
            try:
                await self._waiter
            finally:
                self._waiter, self._wants_all = None, False
        # The one that is kept is not raised: its traceback would refer to the request, and nothing would free them.
        if isinstance(self._failure, HttpError):
            raise HttpError(self._failure.status, self._failure.detail)
        if self._failure is not None:
            raise ClientGoneError
