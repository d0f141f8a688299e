"""A server of HTTP/1.1 on loopback with an application that records its requests, and raw connections to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, Self, cast

import uvloop

from dataplane.runtime.web.errors import HttpError
from dataplane.runtime.web.http1.connection import ServerState
from dataplane.runtime.web.http1.head import ResponseHeaders
from dataplane.runtime.web.http1.request import Request
from dataplane.runtime.web.http1.server import HttpServer

WAIT_S: Final = 10.0


class Seen(NamedTuple):
    """A request as the application got it. `x`: header of this name, "" if it is missing."""

    method: str
    path: str
    body: bytes
    x: str = ""


class Recorder:
    """Application that reads each body and returns it. `act` handles paths of its own."""

    def __init__(self, act: dict[str, Callable[[Request], Awaitable[None]]] | None = None) -> None:
        self.seen: list[Seen] = []
        self.errors: list[str] = []
        self._act = act or {}

    async def __call__(self, request: Request) -> None:
        """Handle one request."""
        head = request.head
        if (act := self._act.get(head.path)) is not None:
            await act(request)
            return
        try:
            body = await request.body()
        except HttpError as error:
            request.respond(error.status, *self.error_response(error))
            return
        self.seen.append(Seen(head.method, head.path, body, head.headers.get("x", "")))
        request.respond(200, [("x-path", head.path)], body)

    def error_response(self, error: HttpError) -> tuple[ResponseHeaders, bytes]:
        """Return the text of the error."""
        self.errors.append(error.detail)
        return [], error.detail.encode()


class Large:
    """Handler of a path of Recorder: it responds with `size` bytes. `handled`: how often it was called."""

    def __init__(self, size: int) -> None:
        self.handled = 0
        self._size = size

    async def __call__(self, request: Request) -> None:
        """Handle one request."""
        self.handled += 1
        request.respond(200, [], b"x" * self._size)


class Gated:
    """Handler of a path of Recorder: it sets `begun` when it has the body of the request, and responds at `gate`."""

    def __init__(self, body: bytes | None = None) -> None:
        """body: of the response; None for that of the request."""
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self._body = body

    async def __call__(self, request: Request) -> None:
        """Handle one request."""
        body = await request.body()
        self.begun.set()
        await self.gate.wait()
        request.respond(200, [], body if self._body is None else self._body)


class Response(NamedTuple):
    """A response: status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """Raw connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._transport = cast(asyncio.Transport, writer.transport)  # the class that asyncio documents cannot read

    def send(self, data: bytes) -> Self:
        """Send bytes."""
        self.writer.write(data)
        return self

    def stop_reading(self) -> Self:
        """Take nothing of the responses from the kernel."""
        self._transport.pause_reading()
        return self

    def continue_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    async def response(self, method: str = "POST") -> Response:
        """Read one response."""
        async with asyncio.timeout(WAIT_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
            headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
            length = 0 if method == "HEAD" else int(headers.get("content-length", "0"))
            return Response(int(line.split()[1]), headers, await self.reader.readexactly(length))

    async def rest(self) -> bytes:
        """Read up to the end of the connection."""
        async with asyncio.timeout(WAIT_S):
            return await self.reader.read()


class Served:
    """The server. `state` is that of its connections."""

    def __init__(self, server: HttpServer, port: int) -> None:
        self.server, self.port = server, port
        self.state: ServerState = server._state
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        """Open a connection."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self._clients.append(client)
        return client

    def close(self) -> None:
        """Close all connections, from the clients' side."""
        for client in self._clients:
            client.writer.transport.abort()

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the limits of connections."""
        for connection in list(self.state.connections):
            connection.deadline_s -= seconds
            if connection.deadline_s < self.state.now_s:
                connection.expire()


@asynccontextmanager
async def serving(app: Any, max_connections: int = 100) -> AsyncIterator[Served]:
    """Serve an application on a free port."""
    server = HttpServer(app, max_connections)
    served = Served(server, await server.start("127.0.0.1", 0))
    try:
        yield served
    finally:
        served.close()
        await server.drain(0)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.005)


def run(story: Coroutine[Any, Any, None]) -> None:
    """Run a test on uvloop, as ingest does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story)


def chunked(path: str) -> bytes:
    """Return the head of a POST with a chunked body."""
    return f"POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".encode()


def post(path: str = "/", body: bytes = b"", *headers: str) -> bytes:
    """Return a POST."""
    lines = ["host: a", f"content-length: {len(body)}", *headers]
    return f"POST {path} HTTP/1.1\r\n".encode() + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body
