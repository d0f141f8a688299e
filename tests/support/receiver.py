"""A destination in the test's own process: behaves as configured, and records every request."""

import asyncio
import hashlib
import ssl
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

from tests.support.behaviours import Behaviour, hang, status

HANG = hang


@dataclass(slots=True)
class Received:
    """One request: message id ("" of one that is no webhook), position as text ("" of a batch), SHA-256 of the body,
    time, headers, body, our response."""

    id: str
    position: str
    digest: str
    at_ns: int
    headers: dict[str, str]
    body: bytes
    answered: int = 0  # the status of a plain response


class Receiver:
    """HTTP server on a free port, or the one given. `answers[path]` is the status or the behaviour for a path (default
    204), `got[path]` the requests received. With `tls` it speaks TLS."""

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
        assert self._started.wait(10)

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
        try:
            while True:
                received, path = await self._take(reader)
                answer = self.answers.get(path, 204)
                behave = status(answer) if isinstance(answer, int) else answer
                if not await behave(writer, received):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _take(self, reader: asyncio.StreamReader) -> tuple[Received, str]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        id_ = headers.get("webhook-id", "")
        digest = hashlib.sha256(body).hexdigest()
        received = Received(id_, headers.get("penstock-position", ""), digest, time.time_ns(), headers, body)
        self.got[path].append(received)
        return received, path
