"""Serve an ASGI application in this process until SIGTERM, with the limits that all of Penstock's servers share."""

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from dataplane.runtime.web.asgi import Receive, Scope, Send
from dataplane.runtime.web.sockets import MOST_CONNECTIONS, allow_open_files, limit_unread

HEADERS_MS: Final = 10_000  # for a request's head; idle connections are closed after the same time


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
            limit_unread(listener)


async def serve(app: App, host: str, port: int, *, drain_s: float, on_stop: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT, then call `on_stop` and wait up to `drain_s` seconds for requests in progress.

    HTTP/1 only: the servers run behind proxies that use it, and it has one request at a time on a connection. Raises
    the server's error if it cannot start, such as for a port that is taken.
    """
    allow_open_files(2 * MOST_CONNECTIONS)
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
