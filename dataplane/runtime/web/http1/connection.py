"""One connection of the HTTP/1.1 server: requests one after the other, within limits of size and time."""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable
from email.utils import formatdate
from typing import Any, Final, Protocol, cast

import httptools

from dataplane.runtime.web.errors import ClientGoneError, HttpError
from dataplane.runtime.web.http1.head import CONTINUE, ResponseHeaders, has_body, header_text, read_head, response_head
from dataplane.runtime.web.http1.request import Request

log = logging.getLogger(__name__)

HEAD_S: Final = 10.0  # for a head, from its first byte, and for the first byte of a new connection
IDLE_S: Final = 75.0  # between requests: more than the 60 s of nginx and AWS, which then close their connections first
BODY_S: Final = 30.0  # for a whole body
UNREAD_S: Final = 60.0  # for a client to take a response
LINGER_S: Final = 10.0  # for a client to close its half after the last response
DRAIN_LINGER_S: Final = 2.0  # the same while the server stops
MAX_HEAD_BYTES: Final = 32 * 1024  # and up to one slice more
MAX_FRAMING_BYTES: Final = 16 * 1024  # of chunks and trailers in a row; a byte of content pays for FRAMING_PER_BYTE
FRAMING_PER_BYTE: Final = 16
# The parser does not stop behind a request: of many small ones that a client sends at once, those of a slice are parsed
# before the first gets its response. The rest waits unparsed.
SLICE_BYTES: Final = 8 * 1024


class Application(Protocol):
    """Application of a server."""

    def __call__(self, request: Request) -> Awaitable[None]:
        """Handle one request: call its `respond` once. It may raise ClientGoneError, as reading the body does."""

    def error_response(self, error: HttpError) -> tuple[ResponseHeaders, bytes]:
        """Return headers and body of the response to a request that is not valid HTTP."""


class ServerState:
    """State of a server that its connections share.

    now_s: time of the event loop, and date: header of responses; `tick` updates both
    idle:  connections that wait for a head, or for their client to close; the longest idle first
    """

    def __init__(self, app: Application, max_connections: int) -> None:
        self.app = app
        self.loop = asyncio.get_running_loop()
        self.is_draining = False
        self.connections: set[Http1Connection] = set()
        self.idle: dict[Http1Connection, None] = {}
        self.refused = 0  # connections
        self.running = 0  # requests in the application, also those whose client is gone
        self.max_connections = max_connections
        self.tick()

    def tick(self) -> None:
        """Read the clocks. Call once a second: reading them for each request costs more."""
        self.now_s = self.loop.time()
        self.date = formatdate(usegmt=True)

    def admit(self, connection: "Http1Connection") -> bool:
        """Add a connection, if need be in place of the longest idle one; return False if there are too many."""
        if len(self.connections) >= self.max_connections:
            if not self.idle:
                self.refused += 1
                return False
            longest = next(iter(self.idle))
            longest.evict()
            self.forget(longest)
        self.connections.add(connection)
        self.idle[connection] = None
        return True

    def forget(self, connection: "Http1Connection") -> None:
        """Remove a connection that is closed."""
        self.connections.discard(connection)
        self.idle.pop(connection, None)


class Http1Connection(asyncio.Protocol):
    """Connection of a client. `deadline_s` is the time at which `expire` is to be called."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.deadline_s = math.inf
        self._transport: Any = None
        self._parser: Any = None
        self._task: asyncio.Task[None] | None = None
        self._current: Request | None = None  # the application handles it; no response was sent
        self._receiving: Request | None = None  # its body is not complete
        self._queue: deque[Request | HttpError] = deque()  # pipelined ones behind the current one
        self._held = b""  # received and not parsed
        self._is_eof = False  # the client sends no more
        self._is_last = False  # nothing is parsed any more
        self._head_error: HttpError | None = None
        self._is_closing = False  # the last response was sent
        self._lingers = False  # until the client closes its half
        self._is_read_paused = False
        self._is_write_paused = False
        # of the parser
        self._is_in_head = False
        self._head_bytes = 0
        self._framing_bytes = 0
        self._target = b""
        self._lines: list[tuple[str, str]] = []
        self._awaits_continue = False
        self._is_upgrade = False  # the parser will stop behind the head
        self._is_resumed = False  # the parser reads a head of ours

    # -- called by asyncio ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self._transport = transport
        if not self._state.admit(self):
            self._transport.abort()
            return
        self._parser = httptools.HttpRequestParser(self)
        self.deadline_s = self._state.now_s + HEAD_S

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, or hold or drop them."""
        if self._held:
            self._held += data
        else:
            self._feed(data)

    def eof_received(self) -> bool:
        """Note that the client sends no more; return whether responses are still to be sent."""
        self._is_eof = True
        incomplete = self._receiving
        if incomplete is not None and not self._held and not self._is_last:
            incomplete.fail(ClientGoneError())
        return any(request is not incomplete or self._is_last for request in (self._current, *self._queue) if request)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Forget the connection. The application finishes its request; the response is dropped."""
        self._is_last = self._is_closing = True
        if self._receiving is not None:
            self._receiving.fail(ClientGoneError())
        self._queue.clear()
        self._held = b""
        self._parser = self._receiving = self._current = None  # parser and connection refer to each other
        self._state.forget(self)

    def pause_writing(self) -> None:
        """Begin no request while the client does not take a response."""
        self._is_write_paused = True
        self.deadline_s = self._state.now_s + UNREAD_S

    def resume_writing(self) -> None:
        """Continue with the next request."""
        self._is_write_paused = False
        if self._current is None and not self._is_closing:
            self._proceed()

    # -- called by the server ------------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Close the connection, or refuse a body that is too slow: the deadline has passed."""
        if self._lingers and self._transport.get_write_buffer_size():
            self._lingers, self.deadline_s = False, self._state.now_s + UNREAD_S  # it is still reading the response
        elif self._is_closing or self._is_write_paused:
            self.abort()
        elif self._current is None:
            self.close()
        else:
            self.deadline_s = math.inf
            if self._receiving is self._current:
                self._refuse(HttpError(408, f"needs the whole body within {BODY_S:.0f} s"))

    def hasten(self) -> None:
        """Close an idle connection; shorten the time for a client to close its half: the server stops."""
        if self._lingers:
            self.deadline_s = min(self.deadline_s, self._state.now_s + DRAIN_LINGER_S)
        elif not self._is_closing:
            self.close()

    def evict(self) -> None:
        """Close the connection in favour of a new one; at once if its client does not read."""
        if self._transport.get_write_buffer_size():
            self.abort()
        else:
            self.close()

    def close(self) -> None:
        """Close the connection as soon as everything is sent."""
        self._is_last = self._is_closing = True
        self.deadline_s = self._state.now_s + UNREAD_S
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_last = self._is_closing = True
        self._transport.abort()

    # -- called by requests --------------------------------------------------------------------------------------------

    def want_body(self) -> None:
        """Continue reading: the application waits for the body of the current request."""
        if self._awaits_continue and self._receiving is self._current:
            self._awaits_continue = False
            self._transport.write(CONTINUE)
        self._resume_reading()

    def send(self, request: Request, status: int, headers: ResponseHeaders, body: bytes) -> None:
        """Send the response of the current request, and continue with the next one."""
        if self._current is not request or self._is_closing:
            return  # the client is gone
        head = request.head
        keep_alive = head.keep_alive and request.is_complete and not self._state.is_draining
        self._write(head.method, status, headers, body, keep_alive=keep_alive, is_http10=head.is_http10)
        self._current = None
        if keep_alive:
            self._proceed()
        else:
            self._end()

    # -- called by the parser ------------------------------------------------------------------------------------------

    def on_url(self, part: bytes) -> None:
        """Begin a head, or append to its request target."""
        if self._is_in_head:
            self._target += part
        elif not self._is_resumed:
            self._target, self._lines = part, []
            self._is_in_head, self._head_bytes = True, 0
            if self._current is None and not self._is_write_paused:
                self.deadline_s = self._state.now_s + HEAD_S

    def on_header(self, name: bytes, value: bytes) -> None:
        """Append a header; those behind a chunked body are ignored."""
        if self._is_in_head:
            self._lines.append((name.decode("ascii").lower(), header_text(value)))

    def on_headers_complete(self) -> None:
        """Begin the request, or queue it behind the current one. Raises HttpError if its head is invalid."""
        if self._is_resumed:
            self._is_resumed = False
            return
        self._is_in_head, self._framing_bytes = False, 0
        parser = self._parser
        version, keep_alive = parser.get_http_version(), parser.should_keep_alive()
        try:
            head = read_head(parser.get_method(), self._target, version, self._lines, keep_alive=keep_alive)
        except HttpError as error:
            self._head_error = HttpError(error.status, error.detail)  # httptools raises an error of its own
            raise
        self._is_upgrade = parser.should_upgrade()
        self._awaits_continue = head.expects
        self._receiving = request = Request(head, self)
        if self._current is None and not self._is_write_paused:
            self._begin(request)
        else:
            self._queue.append(request)

    def on_body(self, data: bytes) -> None:
        """Append to the body."""
        request = cast(Request, self._receiving)
        self._awaits_continue = False
        self._framing_bytes = max(0, self._framing_bytes - FRAMING_PER_BYTE * len(data))
        request.feed(data)
        if request.is_unread:
            self._pause_reading()

    def on_message_complete(self) -> None:
        """End the request, unless the parser has not read its body: the one behind a head with Upgrade."""
        if self._is_upgrade:
            return
        request, self._receiving = cast(Request, self._receiving), None
        request.complete()
        if request is self._current:
            self.deadline_s = math.inf
        if not request.head.keep_alive:
            self._is_last = True

    # ------------------------------------------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        """Parse bytes up to a request that has to wait; hold the rest, or drop it behind the last request."""
        if len(data) <= SLICE_BYTES and not self._queue and not self._is_last:
            self._parse(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), SLICE_BYTES):
            if self._is_last:
                return
            if self._queue:
                self._held += data[start:]
                self._pause_reading()
                return
            self._parse(view[start : start + SLICE_BYTES])

    def _parse(self, data: bytes | memoryview) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            (end,) = upgrade.args
        except httptools.HttpParserError as exc:
            if not self._is_last:  # bytes behind the last request are ignored
                self._refuse(self._head_error or HttpError(400, f"needs valid HTTP/1.1: {exc}"))
            return
        else:
            self._check_sizes(len(data))
            return
        self._resume(bytes(data[end:]))

    def _check_sizes(self, count: int) -> None:
        """Limit what a client sends besides content."""
        if self._is_in_head:
            self._head_bytes += count
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HttpError(431, f"needs at most {MAX_HEAD_BYTES} bytes of request line and headers"))
        elif self._receiving is not None and self._receiving.head.content_length is None:
            self._framing_bytes += count
            if self._framing_bytes > MAX_FRAMING_BYTES:
                self._refuse(HttpError(400, "needs larger chunks, with fewer extensions and trailers"))

    def _resume(self, rest: bytes) -> None:
        """Read the body of a request that asks for another protocol; that is ignored (RFC 9110, 7.8).

        The parser has stopped behind the head. A new one gets a head with the same framing, then the rest.
        """
        length = cast(Request, self._receiving).head.content_length
        framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        self._is_upgrade, self._is_resumed = False, True
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(f"POST / HTTP/1.1\r\n{framing}\r\n\r\n".encode())
        self._feed(rest)

    def _refuse(self, error: HttpError) -> None:
        """Parse no more, and respond with an error: to the request that is being received, else to the next one."""
        self._is_last = True
        if self._receiving is not None:
            self._receiving.fail(error)
            return
        self._queue.append(error)
        if self._current is None:
            self._proceed()

    def _begin(self, request: Request) -> None:
        self._current = request
        self._state.idle.pop(self, None)
        self.deadline_s = math.inf if request.is_complete else self._state.now_s + BODY_S
        self._task = self._state.loop.create_task(self._run(request))

    async def _run(self, request: Request) -> None:
        self._state.running += 1
        try:
            await self._state.app(request)
        except ClientGoneError:
            pass
        except Exception:
            log.exception("request failed")
        finally:
            self._state.running -= 1
        if self._current is request and not self._is_closing:  # there was no response
            self._current = None
            self._end()

    def _proceed(self) -> None:
        """Begin the next request, or wait for it."""
        if self._is_write_paused:
            self.deadline_s = self._state.now_s + UNREAD_S
            return  # resume_writing calls again
        if self._queue:
            following = self._queue.popleft()
            if isinstance(following, HttpError):
                headers, body = self._state.app.error_response(following)
                self._write("", following.status, headers, body, keep_alive=False, is_http10=False)
                self._end()
                return
            self._begin(following)
        if self._held and not self._queue:
            held, self._held = self._held, b""
            self._feed(held)
        if self._is_closing:
            return
        if not self._held:
            self._resume_reading()
            if self._receiving is not None and self._is_eof:
                self._receiving.fail(ClientGoneError())
        if self._current is None and not self._queue:
            self._wait()

    def _wait(self) -> None:
        """Wait for the next request, unless there will be none."""
        if self._is_last or self._is_eof:
            self._end()
        else:
            self.deadline_s = self._state.now_s + (HEAD_S if self._is_in_head else IDLE_S)
            self._state.idle[self] = None

    def _write(
        self, method: str, status: int, headers: ResponseHeaders, body: bytes, *, keep_alive: bool, is_http10: bool
    ) -> None:
        date = self._state.date
        head = response_head(status, headers, len(body), date, keep_alive=keep_alive, is_http10=is_http10)
        self._transport.write(head + body if has_body(method, status) else head)

    def _end(self) -> None:
        """Close the connection after the last response.

        A client that still sends would lose the response: its kernel drops what it has not read if the connection is
        closed meanwhile (RFC 9112, 9.6). So only our half is closed, and what comes is dropped until the client closes.
        """
        if self._receiving is not None:
            self._receiving.fail(ClientGoneError())
        self._receiving = self._parser = None
        self._queue.clear()
        self._held = b""
        if self._is_eof:
            self.close()
            return
        self._is_last = self._is_closing = self._lingers = True
        self._state.idle[self] = None
        self.deadline_s = self._state.now_s + (DRAIN_LINGER_S if self._state.is_draining else LINGER_S)
        self._transport.write_eof()
        self._resume_reading()

    def _pause_reading(self) -> None:
        if not self._is_read_paused:
            self._is_read_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_read_paused:
            self._is_read_paused = False
            self._transport.resume_reading()
