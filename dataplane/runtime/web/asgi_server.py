"""Serve an ASGI application in this process until SIGTERM, with the limits that all of Penstock's servers share."""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from dataplane.runtime.web.asgi import Receive, Scope, Send

HEADERS_MS: Final = 10_000  # for a request's head; idle connections are closed after the same time
MOST_CONNECTIONS: Final = 4_096
# A client that reads nothing of a response for this long is disconnected. Without this limit it keeps its connection,
# and the response, as long as it wants, and MOST_CONNECTIONS of them stop the server.
UNREAD_MS: Final = 30_000
# Of a connection, in the kernel, which doubles it. The default is some MB for an endless response that is not read: the
# memory limit of a container includes them.
SEND_BUFFER_BYTES: Final = 128 * 1024


class App(Protocol):
    """ASGI application that counts its requests in progress in `active`."""

    active: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""


class _Server(Server):  # type: ignore[misc] # granian is not typed
    """Server whose connections hold little of a response that is not read, and end if it stays unread."""

    _ssp: Any
    _shd: Any

    def _init_shared_socket(self) -> None:
        """Bind the port here and not in the worker. Accepted connections inherit the options (tcp(7))."""
        super()._init_shared_socket()
        if self._ssp is not None:
            self._shd, self._ssp = self._ssp.build(), None
        with socket.fromfd(self._shd.get_fd(), socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


async def serve(app: App, host: str, port: int, *, drain_s: float, on_stop: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT, then call `on_stop` and wait up to `drain_s` seconds for requests in progress.

    HTTP/1 only: the servers run behind proxies that use it, and it has one request at a time on a connection. Raises
    the server's error if it cannot start, such as for a port that is taken.
    """
    _allow_open_files(2 * MOST_CONNECTIONS)
    server = _Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=1024,
        backpressure=MOST_CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=HEADERS_MS),
        log_level=LogLevels.warning,
    )
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    serving = loop.create_task(server.serve())
    waiting = loop.create_task(stopped.wait())
    await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
    if not stopped.is_set():
        waiting.cancel()
        await serving  # raises the server's error
        return
    server.stop()  # stop accepting; the server's own shutdown would wait for open connections without limit
    on_stop()
    deadline_s = loop.time() + drain_s
    while app.active and loop.time() < deadline_s:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)  # answers that were just sent are still being written


def _allow_open_files(count: int) -> None:
    """Raise the soft limit of open files: each connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):  # the limit stays: fewer connections
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
