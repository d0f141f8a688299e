"""`python -m controlplane.capacity_test.sender`: post the same event repeatedly at a rate that its parent sets.

Reads JSON lines: first a LoadTarget, then SenderCommands; it answers a command with `tell` by one line, a SenderReport.
It exits when its input ends, so it never outlives its parent. It uses bare sockets and a selector, with one request in
flight per connection, because a client library would use more CPU than the processes to be measured.
"""

import contextlib
import json
import os
import re
import selectors
import socket
import sys
import time
from typing import Final

import msgspec
from msgspec import Struct

EVENT: Final = json.dumps(
    {
        "order": {"id": 123456, "total": "12.50", "lines": [{"sku": "abc-1", "n": 1}, {"sku": "def-2", "n": 2}]},
        "customer": {"name": "Ada Lovelace", "email": "ada@example.com", "since": "2026-01-02T03:04:05Z"},
        "note": "n" * 250,
    }
).encode()
ACCEPTED: Final = 202
READ_BYTES: Final = 262_144
AGAIN_S: Final = 0.25  # pause after a connection was refused or broke
MOST_BEHIND_S: Final = 1.0  # requests due longer ago are dropped: a late burst is not the requested rate
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class LoadTarget(Struct, frozen=True):
    """Address and API key of ingest, events per request (`batch`), and the number of connections."""

    host: str
    port: int
    key: str
    batch: int = 1
    connections: int = 64

    def request(self) -> bytes:
        """Return the bytes of the request, which is always the same."""
        body = EVENT if self.batch == 1 else b"[" + b",".join([EVENT] * self.batch) + b"]"
        head = (
            f"POST /v1/events HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nauthorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class SenderCommand(Struct, frozen=True, omit_defaults=True):
    """Command to the sender.

    rate: events per second from now on, 0 for none; None leaves the rate unchanged
    tell: True to write a SenderReport of the time since the last one
    """

    rate: float | None = None
    tell: bool = False


class SenderReport(Struct, frozen=True):
    """Counts since the last report: events ACKed, requests refused or not answered, ACK times, CPU seconds."""

    span_s: float
    acked: int
    refused: int
    ack_p95_us: int
    cpu_s: float


class LoadConnection:
    """One connection and its request. `sent`: monotonic time of the request, None without one."""

    __slots__ = ("read", "sent", "socket")

    def __init__(self) -> None:
        self.socket: socket.socket | None = None
        self.read = b""
        self.sent: float | None = None


class LoadSender:
    """Sender of requests that counts the answers."""

    def __init__(self, target: LoadTarget) -> None:
        self._target = target
        self._request = target.request()
        self._selector = selectors.DefaultSelector()
        self._idle = [LoadConnection() for _ in range(target.connections)]
        self._broken: list[tuple[float, LoadConnection]] = []
        self._rate = 0.0  # requests a second
        self._due = 0.0
        self._begin(time.monotonic())

    def run(self, orders: int) -> None:
        """Send until the end of `orders`, the file descriptor of the commands."""
        os.set_blocking(orders, False)
        self._selector.register(orders, selectors.EVENT_READ)
        rest = b""
        while True:
            for key, _ in self._selector.select(self._start_due()):
                if key.data is not None:
                    self._read(key.data)
                    continue
                if not (read := os.read(orders, READ_BYTES)):
                    return
                *lines, rest = (rest + read).split(b"\n")
                for line in lines:
                    self._apply(msgspec.json.decode(line, type=SenderCommand))

    def _apply(self, command: SenderCommand) -> None:
        now = time.monotonic()
        if command.rate is not None:
            self._rate, self._due = command.rate / self._target.batch, now
        if command.tell:
            sys.stdout.buffer.write(msgspec.json.encode(self._report(now)) + b"\n")
            sys.stdout.buffer.flush()
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._since, self._cpu_s = now, time.process_time()
        self._acked = self._refused = 0
        self._took_us: list[int] = []

    def _report(self, now: float) -> SenderReport:
        ordered = sorted(self._took_us)
        p95_us = ordered[len(ordered) * 95 // 100] if ordered else 0
        return SenderReport(now - self._since, self._acked, self._refused, p95_us, time.process_time() - self._cpu_s)

    def _start_due(self) -> float:
        """Start the requests that are due on idle connections; return the seconds until the next one."""
        now = time.monotonic()
        while self._broken and self._broken[0][0] <= now:
            self._idle.append(self._broken.pop(0)[1])
        if not self._rate:
            return 0.2
        self._due = max(self._due, now - MOST_BEHIND_S)
        while self._idle and self._due <= now:
            self._post(self._idle.pop(), now)
            self._due += 1 / self._rate
        return min(0.2, max(0.0, self._due - now)) if self._idle else 0.2

    def _post(self, connection: LoadConnection, now: float) -> None:
        connection.sent, connection.read = now, b""
        try:
            if connection.socket is None:
                connection.socket = socket.create_connection((self._target.host, self._target.port), timeout=5)
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.socket.sendall(self._request)  # a request fits into the kernel's send buffer
        except OSError:
            self._break(connection)

    def _read(self, connection: LoadConnection) -> None:
        try:
            data = connection.socket.recv(READ_BYTES) if connection.socket else b""
        except OSError:
            data = b""
        if not data:
            self._break(connection)
            return
        connection.read += data
        head, ended, body = connection.read.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not ended or length is None or len(body) < int(length[1]):
            return
        if connection.sent is not None:
            self._count(int(head[9:12]), time.monotonic() - connection.sent)
            connection.sent = None
            self._idle.append(connection)

    def _count(self, status: int, took_s: float) -> None:
        if status != ACCEPTED:
            self._refused += 1
            return
        self._acked += self._target.batch
        self._took_us.append(round(took_s * 1_000_000))

    def _break(self, connection: LoadConnection) -> None:
        """Close a connection. Its request counts as refused; an idle connection is opened again when needed."""
        if connection.socket is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(connection.socket)
            connection.socket.close()
            connection.socket = None
        if connection.sent is not None:
            connection.sent = None
            self._refused += 1
            self._broken.append((time.monotonic() + AGAIN_S, connection))


def main() -> None:
    """Read the target, then run the sender."""
    commands = sys.stdin.fileno()
    target = b""
    while not target.endswith(b"\n"):
        if not (read := os.read(commands, 1)):
            return
        target += read
    LoadSender(msgspec.json.decode(target, type=LoadTarget)).run(commands)


if __name__ == "__main__":
    main()
