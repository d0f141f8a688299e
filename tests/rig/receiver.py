"""A destination in the test's own process: answers as it is told, and notes every request that came."""

import asyncio
import hashlib
import threading
import time
from collections import defaultdict
from typing import NamedTuple

HANG = 0  # as a status: take the request, never answer


class Received(NamedTuple):
    """One request: message id, position (as text), SHA-256 of the body, when, and the headers in lower case."""

    id: str
    position: str
    digest: str
    at_ns: int
    headers: dict[str, str]


class Receiver:
    """Listens on a free port. `answers[path]` is the status for a path (204 unless said), `got[path]` what came."""

    def __init__(self) -> None:
        self.answers: dict[str, int] = {}
        self.got: defaultdict[str, list[Received]] = defaultdict(list)
        self.bodies: dict[str, bytes] = {}  # by message id
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._thread.start()
        assert self._started.wait(10)

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        """Listen no more."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                status = await self._take(reader)
                if status == HANG:
                    await reader.read()  # until the other side gives up
                    break
                length = "" if status == 204 else "content-length: 0\r\n"
                writer.write(f"HTTP/1.1 {status} X\r\n{length}\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _take(self, reader: asyncio.StreamReader) -> int:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        id_ = headers["webhook-id"]
        digest = hashlib.sha256(body).hexdigest()
        self.got[path].append(Received(id_, headers["penstock-position"], digest, time.time_ns(), headers))
        self.bodies[id_] = body
        return self.answers.get(path, 204)
