"""The HTTP/1.1 server of a process: its listener, the deadlines of its connections, and the drain."""

import asyncio
import logging
import socket
from typing import Final

from dataplane.runtime.web.http1.connection import Application, Http1Connection, ServerState
from dataplane.runtime.web.sockets import MOST_CONNECTIONS, allow_open_files, limit_unread

BACKLOG: Final = 1_024
SWEEP_S: Final = 1.0
# A client may be sending on a connection that looks idle. For this long it gets a response, with `connection: close`.
GRACE_S: Final = 0.5
POLL_S: Final = 0.01
OTHER_FILES: Final = 256  # that the process may open besides connections

log = logging.getLogger(__name__)


class HttpServer:
    """Server of one application. Several processes may listen on one port: the kernel distributes connections."""

    def __init__(self, app: Application, max_connections: int = MOST_CONNECTIONS) -> None:
        """Call on the event loop. The limit of open files may lower `max_connections`."""
        files = allow_open_files(2 * MOST_CONNECTIONS)
        self._state = ServerState(app, max(1, min(max_connections, files - OTHER_FILES)))
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Accept connections from now on; return the port. Raises OSError if the port is taken or not permitted."""
        is_ipv6 = ":" in host
        listener = socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
            backlog=BACKLOG,
            reuse_port=True,
            dualstack_ipv6=is_ipv6 and socket.has_dualstack_ipv6(),
        )
        limit_unread(listener)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: Http1Connection(self._state), sock=listener, backlog=BACKLOG)
        self._sweeper = asyncio.create_task(self._sweep())
        address = listener.getsockname()
        log.info("listening at %s, port %d, for %d connections", *address[:2], self._state.max_connections)
        return int(address[1])

    async def drain(self, limit_s: float) -> None:
        """Accept no more connections, close idle ones, and the others after their request or at the limit."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self._state.is_draining = True
        if self._listener is not None:
            self._listener.close()
        while (self._state.connections or self._state.running) and loop.time() < began_s + limit_s:
            if loop.time() > began_s + GRACE_S:
                for connection in list(self._state.idle):
                    connection.hasten()
            await asyncio.sleep(POLL_S)
        if self._state.running:
            log.warning("%d requests in progress after %g s: they get no response", self._state.running, limit_s)
        for connection in list(self._state.connections):
            connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    @property
    def connections(self) -> int:
        """Return the number of open connections."""
        return len(self._state.connections)

    @property
    def refused(self) -> int:
        """Return the number of connections that were closed at once, because there were too many."""
        return self._state.refused

    async def _sweep(self) -> None:
        """Check the deadlines of all connections once a second, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self._state.tick()
            for connection in list(self._state.connections):
                if connection.deadline_s < self._state.now_s:
                    try:
                        connection.expire()
                    except Exception:
                        log.exception("closing a connection failed; the other ones are still checked")
