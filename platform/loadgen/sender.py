"""Sends a plan's POSTs to ingest over persistent connections: sockets and a selector, one POST in flight on each.

A client library would use more CPU than the processes to be measured: libcurl needs 30 us a request, this 10 us.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from loadgen.plan import Post, SendPlan
from loadgen.wire import IngestTarget, ParsedResponse, parse_response

TIMEOUT_S: Final = 30.0
CONNECT_S: Final = 2.0
REST_S: Final = 0.2  # pause of a connection that was refused or broke
READ_BYTES: Final = 64 * 1024  # a larger buffer is mapped and unmapped by the allocator for each read
_SWEEP_S: Final = 0.2
_IDLE_S: Final = 0.05


class Exchange(NamedTuple):
    """A POST that has ended. `response` is None after a reset or a timeout: its events may be stored."""

    post: Post
    sent_ns: int
    took_s: float
    response: ParsedResponse | None


class SenderConnection:
    """One connection and the POST on it."""

    __slots__ = ("is_blocked", "post", "read", "sent_ns", "since_s", "socket", "unsent")

    def __init__(self) -> None:
        self.socket: socket.socket | None = None
        self.post: Post | None = None
        self.unsent = b""
        self.is_blocked = False  # True while `unsent` waits for room in the kernel's buffer
        self.read = b""
        self.sent_ns = 0
        self.since_s = 0.0


class LoadSender:
    """Sender of a plan.

    request_of: returns the bytes of a POST
    on_exchange: called when a POST has ended; it may have the plan send events again
    each_sweep: called a few times a second
    """

    def __init__(
        self,
        target: IngestTarget,
        plan: SendPlan,
        *,
        request_of: Callable[[Post], bytes],
        on_exchange: Callable[[Exchange], None],
        each_sweep: Callable[[], None] = lambda: None,
        connections: int = 64,
    ) -> None:
        self._target, self._plan = target, plan
        self._request_of, self._on_exchange, self._each_sweep = request_of, on_exchange, each_sweep
        self._selector = selectors.DefaultSelector()
        self._connections = [SenderConnection() for _ in range(connections)]
        self._idle = list(self._connections)
        self._resting: deque[tuple[float, SenderConnection]] = deque()
        self._busy: set[SenderConnection] = set()
        self._swept_s = 0.0
        self._is_cut = False

    def watch(self, file: int, on_readable: Callable[[], bool]) -> None:
        """Call `on_readable` whenever a file descriptor has data; once it returns False, the run ends at once."""
        self._selector.register(file, selectors.EVENT_READ, on_readable)

    def run(self) -> None:
        """Send until the plan is over and every POST has ended."""
        self._plan.begin(time.monotonic())
        try:
            while not self._is_cut and (self._busy or not self._plan.is_over):
                for key, events in self._selector.select(self._start_due()):
                    if not isinstance(key.data, SenderConnection):
                        self._is_cut |= not key.data()
                        continue
                    if events & selectors.EVENT_WRITE:
                        self._write(key.data)
                    if events & selectors.EVENT_READ:
                        self._read(key.data)
                self._sweep()
        finally:
            for connection in self._connections:
                self._close(connection)
            self._selector.close()

    def _start_due(self) -> float:
        """Start the due POSTs on idle connections; return the seconds to wait for the next event."""
        now_s = time.monotonic()
        while self._resting and self._resting[0][0] <= now_s:
            self._idle.append(self._resting.popleft()[1])
        while self._idle:
            post = self._plan.take(now_s)
            if post is None:
                return min(_IDLE_S, self._plan.wait_s(now_s))
            self._post(self._idle.pop(), post, now_s)
        return _IDLE_S

    def _post(self, connection: SenderConnection, post: Post, now_s: float) -> None:
        connection.post, connection.read, connection.since_s = post, b"", now_s
        self._busy.add(connection)
        connection.sent_ns = time.time_ns()
        if connection.socket is None and not self._connect(connection):
            self._broke(connection)
            return
        connection.unsent = self._request_of(post)
        self._write(connection)

    def _connect(self, connection: SenderConnection) -> bool:
        try:
            opened = socket.create_connection((self._target.host, self._target.port), timeout=CONNECT_S)
        except OSError:
            return False
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.socket = opened
        self._selector.register(opened, selectors.EVENT_READ, connection)
        return True

    def _write(self, connection: SenderConnection) -> None:
        if connection.socket is None:
            return
        try:
            sent = connection.socket.send(connection.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._broke(connection)
            return
        is_partial = sent < len(connection.unsent)
        connection.unsent = connection.unsent[sent:]
        if is_partial != connection.is_blocked:
            connection.is_blocked = is_partial
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if is_partial else 0)
            self._selector.modify(connection.socket, events, connection)

    def _read(self, connection: SenderConnection) -> None:
        if connection.socket is None:
            return
        try:
            data = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._broke(connection)
            return
        connection.read += data
        response = parse_response(connection.read)
        if response is not None and connection.post is not None:
            if connection.unsent or not response.stays_open:
                self._close(connection)
            self._end(connection, connection.post, response)
            self._idle.append(connection)

    def _broke(self, connection: SenderConnection) -> None:
        """Close a connection. Its POST has no response; an idle one is opened again when it is needed."""
        self._close(connection)
        if connection.post is not None:
            self._end(connection, connection.post, None)
            self._resting.append((time.monotonic() + REST_S, connection))

    def _end(self, connection: SenderConnection, post: Post, response: ParsedResponse | None) -> None:
        connection.post = None
        self._busy.discard(connection)
        self._on_exchange(Exchange(post, connection.sent_ns, time.monotonic() - connection.since_s, response))

    def _close(self, connection: SenderConnection) -> None:
        if connection.socket is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            connection.socket, connection.is_blocked = None, False

    def _sweep(self) -> None:
        """End POSTs without a response for too long."""
        now_s = time.monotonic()
        if now_s - self._swept_s < _SWEEP_S:
            return
        self._swept_s = now_s
        self._each_sweep()
        for connection in [one for one in self._busy if now_s - one.since_s > TIMEOUT_S]:
            self._broke(connection)
