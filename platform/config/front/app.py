"""The ASGI application in front of Django: probes, bounded bodies, then one of a bounded number of threads.

No thread waits for a client: a page's thread gets the whole body and returns the whole response; slow clients wait on
the event loop. Probes are answered even while every thread is busy.
"""

import asyncio
import io
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Final, cast

import structlog

from config.front.wsgi import Environ, WsgiAnswer, WsgiApp, call, environ_of
from config.metrics_server import REFUSALS
from dataplane.runtime.web.asgi import (
    PLAIN_TEXT,
    AsgiHeaders,
    BodyReader,
    BodyRefusedError,
    BodyRule,
    ByteBudget,
    Receive,
    Scope,
    Send,
    answer,
    read_body,
)
from dataplane.runtime.web.errors import ClientGoneError

log = structlog.get_logger(__name__)

PAGE_THREADS: Final = 12  # each may hold one of the sixteen connections of the pool
UPLOAD_THREADS: Final = 2
MOST_WAITING: Final = 100  # requests with a complete body that wait for a page's thread
HELD_BYTES: Final = 128 * 1024 * 1024  # of bodies, all requests together
SEND_S: Final = 30.0  # for one piece of a response; a client that reads none of it is disconnected
PIECE_BYTES: Final = 64 * 1024
RETRY_AFTER_S: Final = 2
PAGE_BODY: Final = BodyRule(2 * 1024 * 1024)  # DATA_UPLOAD_MAX_MEMORY_SIZE, plus room for multipart
UPLOAD_BODY: Final = BodyRule(513 * 1024 * 1024)  # mgmt.lookups.row_files.MAX_UPLOAD_BYTES, plus room for multipart
FORM_BODY: Final = BodyRule(512 * 1024)  # a SAML response: anybody can send one
_FORMS: Final = re.compile(r"/sso/[^/]+/saml/acs/")
_UPLOADS: Final = re.compile(r"/(api/v1/lookup-tables|tables)/[^/]+/upload/")
Refuse = Callable[[str, str, str], tuple[AsgiHeaders, bytes]]


class Front:
    """The ASGI application.

    why_not_ready:  returns why the process cannot serve pages, "" if it can
    stream_threads: threads for event streams
    refusal:        renders the response to a refused request, from its path, a code and a detail
    after_call:     called after each call of the application, in the same thread
    """

    def __init__(
        self,
        app: WsgiApp,
        *,
        why_not_ready: Callable[[], Awaitable[str]],
        stream_threads: int,
        refusal: Refuse,
        after_call: Callable[[], None] = lambda: None,
        page_body: BodyRule = PAGE_BODY,
        upload_body: BodyRule = UPLOAD_BODY,
    ) -> None:
        self._app, self._why_not_ready, self._refusal = app, why_not_ready, refusal
        self._after_call = after_call
        self._page_body, self._upload_body = page_body, upload_body
        self._pages = ThreadPoolExecutor(PAGE_THREADS, thread_name_prefix="page")
        self._uploads = ThreadPoolExecutor(UPLOAD_THREADS, thread_name_prefix="upload")
        self._streams = ThreadPoolExecutor(stream_threads, thread_name_prefix="stream")
        self._budget = ByteBudget(HELD_BYTES)
        self._waiting = self._uploading = 0
        self._streaming: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self.active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        self.active += 1
        try:
            match scope["path"]:
                case "/livez":
                    await answer(send, 200, [PLAIN_TEXT], b"ok\n")
                case "/readyz":
                    reason = await self._why_not_ready()
                    await answer(send, 503 if reason else 200, [PLAIN_TEXT], f"{reason or 'ok'}\n".encode())
                case _:
                    await self._request(scope, receive, send)
        except ClientGoneError:
            pass
        except BodyRefusedError as exc:
            await self._refuse(scope, send, exc)
        except Exception:
            log.exception("request failed outside Django", method=scope["method"])
            raise  # the server answers 500, or ends the connection if an answer has begun
        finally:
            self.active -= 1

    def stop(self) -> None:
        """End the streams, also those about to begin: they would run for minutes, and their browsers reconnect."""
        self._stopping = True
        for task in self._streaming:
            task.cancel()

    def close(self) -> None:
        """Shut the thread pools down; they take no more work."""
        for pool in (self._pages, self._uploads, self._streams):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST" and _UPLOADS.fullmatch(scope["path"]):
            await self._upload(scope, receive, send)
            return
        rule = FORM_BODY if _FORMS.fullmatch(scope["path"]) else self._page_body
        body = await read_body(BodyReader(scope["headers"], receive, rule), self._budget)
        try:
            found = await self._in_page_thread(scope, body)
            await self._send(found, receive, send)
        finally:
            self._budget.give_back(len(body))

    async def _in_page_thread(self, scope: Scope, body: bytes) -> WsgiAnswer:
        if self._waiting >= PAGE_THREADS + MOST_WAITING:
            raise _busy()
        self._waiting += 1
        try:
            found: WsgiAnswer = await _run(self._pages, self._call, environ_of(scope, io.BytesIO(body), len(body)))
            return found
        finally:
            self._waiting -= 1

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application read the body as it arrives, so that it can check access first; in an upload thread."""
        if self._uploading >= UPLOAD_THREADS:
            raise _busy()
        self._uploading += 1
        try:
            feed = _Feed(BodyReader(scope["headers"], receive, self._upload_body), asyncio.get_running_loop())
            environ = environ_of(scope, cast("IO[bytes]", io.BufferedReader(feed, PIECE_BYTES)), None)
            found = await self._called_with(feed, environ)
        finally:
            self._uploading -= 1
        await self._send(found, receive, send)

    async def _called_with(self, feed: "_Feed", environ: Environ) -> WsgiAnswer:
        """Return the application's response; raise the error of the request's body instead if reading it failed."""
        try:
            found: WsgiAnswer = await _run(self._uploads, self._call, environ)
        except OSError:
            if feed.failed is None:
                raise
        failed, feed.failed = feed.failed, None
        try:
            if failed is not None:
                raise failed
            return found
        finally:
            del failed  # its traceback has this frame: the cycle would keep the connection open until a collection

    def _call(self, environ: Environ) -> WsgiAnswer:
        try:
            return call(self._app, environ)
        finally:
            self._after_call()

    async def _send(self, found: WsgiAnswer, receive: Receive, send: Send) -> None:
        if found.events is not None:
            await self._stream(found, receive, send)
            return
        with found.body as body:
            size = body.seek(0, io.SEEK_END)
            body.seek(0)
            headers = found.headers
            if found.status not in (204, 304) and not any(name == b"content-length" for name, _ in headers):
                headers = [*headers, (b"content-length", str(size).encode())]
            await _send_piece(send, {"type": "http.response.start", "status": found.status, "headers": headers})
            while len(data := body.read(PIECE_BYTES)) == PIECE_BYTES:
                await _send_piece(send, {"type": "http.response.body", "body": data, "more_body": True})
            await _send_piece(send, {"type": "http.response.body", "body": data})

    async def _stream(self, found: WsgiAnswer, receive: Receive, send: Send) -> None:
        """Send events as they come, until they end or the browser disconnects. A thread waits for each event."""
        assert found.events is not None  # noqa: S101 (the caller has checked)
        gone = asyncio.ensure_future(receive())  # the body has been read: the next message is the disconnect
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._streaming.add(task)
        try:
            await send({"type": "http.response.start", "status": found.status, "headers": found.headers})
            while not (gone.done() or self._stopping):
                data = await _run(self._streams, next, found.events, None)
                if data is None:
                    break
                await _send_piece(send, {"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streaming.discard(task)
            gone.cancel()
            self._streams.submit(found.close)

    async def _refuse(self, scope: Scope, send: Send, refused: BodyRefusedError) -> None:
        REFUSALS[refused.code] += 1
        log.info("request refused", method=scope["method"], code=refused.code, status=refused.status)
        headers, body = self._refusal(scope["path"], refused.code, str(refused))
        if refused.status == 503:
            headers = [*headers, (b"retry-after", str(RETRY_AFTER_S).encode())]
        await answer(send, refused.status, [*headers, (b"connection", b"close")], body)


class _Feed(io.RawIOBase):
    """A request body that a thread reads as it arrives; `failed` is the error that ended it early, if any."""

    def __init__(self, reader: BodyReader, loop: asyncio.AbstractEventLoop) -> None:
        self._reader, self._loop, self._rest = reader, loop, b""
        self.failed: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the bytes that have arrived. Raises OSError and sets `failed` if the body ends early."""
        try:
            data = self._rest or asyncio.run_coroutine_threadsafe(self._reader.chunk(), self._loop).result()
        except (BodyRefusedError, ClientGoneError) as exc:
            self.failed = exc
            raise OSError(str(exc) or "the client is gone") from exc
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        self._rest = data[count:]
        return count


def _busy() -> BodyRefusedError:
    return BodyRefusedError(503, "busy", "The server is busy. Try again in a few seconds.")


async def _run(pool: ThreadPoolExecutor, work: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, work, *given)


async def _send_piece(send: Send, message: dict[str, Any]) -> None:
    """Send one ASGI message. Raises ClientGoneError if the client does not read it within SEND_S."""
    try:
        async with asyncio.timeout(SEND_S):
            await send(message)
    except TimeoutError:
        raise ClientGoneError from None
