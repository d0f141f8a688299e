"""Open streams of changes: their limits, the order in which they are read, and their ends."""

import asyncio
import logging
from collections import Counter
from typing import Final

from dataplane.runtime.web.asgi import Receive, Send
from dataplane.table_queries.change_stream import RETRY_MS, ChangeStream
from dataplane.table_queries.reader import TableReader
from dataplane.table_queries.requests import ChangeQuery, QueryRefusedError
from dataplane.tables.access_tokens import TableAccess
from dataplane.tables.query_protocol import HEARTBEAT_S, MOST_STREAMS, MOST_STREAMS_OF_TENANT

WATCH_S: Final = 0.2  # interval at which the tables of open streams are checked for changes
STOP_S: Final = 2.0  # time for clients to take the end of their streams when the server stops
MOST_BODY_BYTES: Final = 64 * 1024  # of a request, which has no meaning: more ends the stream
SEND_S: Final = 20.0  # a client that does not take an event within this time is disconnected
log = logging.getLogger(__name__)
REASONS: Final = ("client", "slow", "refused", "stopped", "failed")  # of the end of a stream
_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # otherwise a proxy such as nginx would buffer it
)


class OpenStreams:
    """Streams of this process. Used from one event loop.

    `page_turn`: lock under which pages are read. A turn of a stream costs as much as a page, so that streams and pages
    take turns, and rows are read between them. One task checks the tables of all streams for changes.
    """

    def __init__(self, reader: TableReader, page_turn: asyncio.Lock) -> None:
        self._reader, self._page_turn = reader, page_turn
        self._open: dict[ChangeStream, asyncio.Event] = {}
        self._connected: dict[ChangeStream, asyncio.Task[None]] = {}
        self._watcher: asyncio.Task[None] | None = None
        self._is_stopping = False
        self.ended = Counter(dict.fromkeys(REASONS, 0))
        self.sent = 0

    @property
    def count(self) -> int:
        """Number of open streams."""
        return len(self._open)

    def open(self, query: ChangeQuery, access: TableAccess) -> ChangeStream:
        """Return a new stream, which counts until `run` returns. Raises QueryRefusedError."""
        of_tenant = sum(one.access.tenant == access.tenant for one in self._open)
        if of_tenant >= MOST_STREAMS_OF_TENANT:
            wanted = f"needs fewer than {MOST_STREAMS_OF_TENANT} open streams of all tables: close one"
            raise QueryRefusedError(429, "too-many-streams", wanted)
        if self.count >= MOST_STREAMS or self._is_stopping:
            raise QueryRefusedError(503, "too-many-streams", "this host accepts no more streams now: retry")
        stream = ChangeStream(self._reader, query, access)
        self._open[stream] = asyncio.Event()
        return stream

    def stop(self) -> None:
        """End all streams, also those whose clients read nothing, and refuse further ones."""
        self._is_stopping = True
        asyncio.get_running_loop().call_later(STOP_S, self._disconnect_all)
        for woken in self._open.values():
            woken.set()

    async def run(self, stream: ChangeStream, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects, its token expires, its table is removed, or the server stops."""
        reason = "failed"
        following = asyncio.create_task(self._respond(stream, send))
        connected = self._connected[stream] = asyncio.create_task(_until_disconnected(receive))
        try:
            await asyncio.wait((following, connected), return_when=asyncio.FIRST_COMPLETED)
            reason = await following if following.done() else "stopped" if connected.cancelled() else "client"
        finally:
            following.cancel()
            connected.cancel()
            del self._open[stream], self._connected[stream]
            self.ended[reason] += 1

    def _disconnect_all(self) -> None:
        for connected in self._connected.values():
            connected.cancel()

    async def _respond(self, stream: ChangeStream, send: Send) -> str:
        """Send the whole response; return the reason of its end."""
        try:
            await _send(send, {"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            await _send_text(send, b"retry: %d\n\n" % RETRY_MS)
            reason = await self._follow(stream, send)
            await _send(send, {"type": "http.response.body", "body": b""})
        except TimeoutError:
            return "slow"
        return reason

    async def _follow(self, stream: ChangeStream, send: Send) -> str:
        """Send events until the stream has to end; return the reason. Raises TimeoutError for a slow client."""
        woken, loop = self._open[stream], asyncio.get_running_loop()
        beat_at = loop.time() + HEARTBEAT_S
        try:
            while not self._is_stopping:
                if self._watcher is None:
                    self._watcher = asyncio.create_task(self._watch())
                text = b""
                if stream.is_due:
                    async with self._page_turn:
                        await asyncio.sleep(0)  # requests that have arrived are begun now: rows are read, turns wait
                        before = stream.sent
                        text = stream.turn()
                        self.sent += stream.sent - before
                if not text and loop.time() >= beat_at:  # also while no change of many is one of this stream's
                    text = stream.heartbeat()
                if text:
                    await _send_text(send, text)
                    beat_at = loop.time() + HEARTBEAT_S
                if not stream.is_due:
                    await self._wait(woken, beat_at - loop.time())
        except QueryRefusedError as refusal:
            await _send_text(send, f": {refusal.detail}\n\n".encode())
            return "refused"
        await _send_text(send, b": the server is stopping\n\n")
        return "stopped"

    async def _wait(self, woken: asyncio.Event, most_s: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, most_s)):
                await woken.wait()
        except TimeoutError:
            return
        if not self._is_stopping:
            woken.clear()

    async def _watch(self) -> None:
        """Wake the streams whose tables have changed, while there is one."""
        try:
            while self._open:
                newest = self._reader.last_changes({stream.table for stream in self._open})
                for stream, woken in self._open.items():
                    stream.wake(newest.get(stream.table, -1))
                    if stream.is_due:
                        woken.set()
                await asyncio.sleep(WATCH_S)
        except Exception:
            log.exception("streams are not woken; restarting")
        finally:
            self._watcher = None  # the next stream, or the next heartbeat of one, starts another


async def _until_disconnected(receive: Receive) -> None:
    """Wait for the end of the connection, or of what is read of a body.

    The server reports the end of a connection here only: it accepts what is sent later, and drops it.
    """
    left = MOST_BODY_BYTES
    while left >= 0 and (message := await receive())["type"] != "http.disconnect":
        left -= len(message.get("body", b""))


async def _send_text(send: Send, text: bytes) -> None:
    await _send(send, {"type": "http.response.body", "body": text, "more_body": True})


async def _send(send: Send, message: dict[str, object]) -> None:
    """Send a message. Raises TimeoutError if the client does not take it in time."""
    async with asyncio.timeout(SEND_S):
        await send(message)
