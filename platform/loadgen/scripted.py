"""In-process HTTP destination: it behaves as configured for each path, and records every request."""

import asyncio
import hashlib
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from loadgen.sender import READ_BYTES
from loadgen.wire import ParsedRequest, RequestParser


@dataclass(slots=True)
class Received:
    """One request; `id` is "" if it is not a webhook, `position` "" for a batch, `digest` the SHA-256 of the body."""

    id: str
    position: str
    digest: str
    at_ns: int
    headers: dict[str, str]
    body: bytes
    answered: int = 0  # the status of a plain response

    @classmethod
    def of(cls, request: ParsedRequest) -> "Received":
        """Make the record of a request that has just arrived."""
        pairs = (line.partition(":") for line in request.head.decode("latin-1").split("\r\n")[1:])
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        id_, position = headers.get("webhook-id", ""), headers.get("penstock-position", "")
        return cls(id_, position, hashlib.sha256(request.body).hexdigest(), time.time_ns(), headers, request.body)


Behaviour = Callable[[asyncio.StreamWriter, Received], Awaitable[bool]]  # answers; False ends the connection


def status(code: int, headers: str = "", body: bytes = b"") -> Behaviour:
    """Answer with this status. `headers`: whole lines with their line ends."""
    length = "" if code == 204 else f"content-length: {len(body)}\r\n"
    answer = f"HTTP/1.1 {code} X\r\n{headers}{length}\r\n".encode() + body

    async def behave(writer: asyncio.StreamWriter, received: Received) -> bool:
        received.answered = code
        writer.write(answer)
        await writer.drain()
        return True

    return behave


class Receiver:
    """HTTP server on a free port, or the one given; with `tls` it speaks TLS.

    answers: status or behaviour for each path, 204 by default
    got: requests received for each path
    """

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, int | Behaviour] = {}
        self.got: defaultdict[str, list[Received]] = defaultdict(list)
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self.port = port
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tls = tls
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._thread.start()
        if not self._started.wait(10):
            raise TimeoutError(f"the receiver does not listen on port {port}")

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        """Stop listening."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda *_: None)  # connections break on purpose here
        starting = asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024, ssl=self._tls)
        server = self._loop.run_until_complete(starting)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()  # do not wait for data that could not be written
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        parser, stays_open = RequestParser(), True
        try:
            while stays_open and (data := await reader.read(READ_BYTES)):
                requests, more, stays_open = parser.feed(data)
                for request in requests:
                    if not await self._behave(writer, request):
                        return
                writer.write(more)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _behave(self, writer: asyncio.StreamWriter, request: ParsedRequest) -> bool:
        received, path = Received.of(request), request.path
        self.got[path].append(received)
        answer = self.answers.get(path, 204)
        return await (status(answer) if isinstance(answer, int) else answer)(writer, received)
