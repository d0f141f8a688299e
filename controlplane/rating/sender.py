"""`python -m controlplane.rating.sender`: posts one event again and again at a rate that its parent sets.

Reads JSON lines: first a Target, then Orders; answers the order `tell` with one line, a Told. It ends when its input
does, so it never outlives its parent, however that dies. Bare sockets and a selector, one request in flight on each
connection: a client library costs more of the machine than what is to be measured.
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
AGAIN_S: Final = 0.25  # after a connection that was refused or broke
MOST_BEHIND_S: Final = 1.0  # what was due longer ago is not made good: a late burst is not the rate that was asked for
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Target(Struct, frozen=True):
    """Where to post, with which key, how many events a request, over how many connections."""

    host: str
    port: int
    key: str
    batch: int = 1
    connections: int = 64

    def request(self) -> bytes:
        """The bytes of every request."""
        body = EVENT if self.batch == 1 else b"[" + b",".join([EVENT] * self.batch) + b"]"
        head = (
            f"POST /v1/events HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nauthorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class Order(Struct, frozen=True, omit_defaults=True):
    """`rate`: events a second from now on, 0 for none; `tell`: say what came of it since you last said so."""

    rate: float | None = None
    tell: bool = False


class Told(Struct, frozen=True):
    """Since the last one: events ACKed, requests refused or not answered, how soon the others were, CPU."""

    span_s: float
    acked: int
    refused: int
    ack_p95_us: int
    cpu_s: float


class Connection:
    """One connection and the request on it; `sent` is None while there is none."""

    __slots__ = ("read", "sent", "socket")

    def __init__(self) -> None:
        self.socket: socket.socket | None = None
        self.read = b""
        self.sent: float | None = None


class Sender:
    """Posts, and counts what comes back."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._request = target.request()
        self._selector = selectors.DefaultSelector()
        self._idle = [Connection() for _ in range(target.connections)]
        self._broken: list[tuple[float, Connection]] = []
        self._rate = 0.0  # requests a second
        self._due = 0.0
        self._begin(time.monotonic())

    def run(self, orders: int) -> None:
        """Until the file descriptor of the orders is at its end."""
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
                    self._obey(msgspec.json.decode(line, type=Order))

    def _obey(self, order: Order) -> None:
        now = time.monotonic()
        if order.rate is not None:
            self._rate, self._due = order.rate / self._target.batch, now
        if order.tell:
            sys.stdout.buffer.write(msgspec.json.encode(self._told(now)) + b"\n")
            sys.stdout.buffer.flush()
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._since, self._cpu_s = now, time.process_time()
        self._acked = self._refused = 0
        self._took_us: list[int] = []

    def _told(self, now: float) -> Told:
        ordered = sorted(self._took_us)
        p95_us = ordered[len(ordered) * 95 // 100] if ordered else 0
        return Told(now - self._since, self._acked, self._refused, p95_us, time.process_time() - self._cpu_s)

    def _start_due(self) -> float:
        """Give idle connections what is due; returns how long there is nothing to start."""
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

    def _post(self, connection: Connection, now: float) -> None:
        connection.sent, connection.read = now, b""
        try:
            if connection.socket is None:
                connection.socket = socket.create_connection((self._target.host, self._target.port), timeout=5)
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.socket.sendall(self._request)  # a request is smaller than what the kernel takes at once
        except OSError:
            self._break(connection)

    def _read(self, connection: Connection) -> None:
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

    def _break(self, connection: Connection) -> None:
        """Close it. A request on it has no answer; one that was idle is opened again when it is needed."""
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
    """Entry point."""
    orders = sys.stdin.fileno()
    target = b""
    while not target.endswith(b"\n"):
        if not (read := os.read(orders, 1)):
            return
        target += read
    Sender(msgspec.json.decode(target, type=Target)).run(orders)


if __name__ == "__main__":
    main()
