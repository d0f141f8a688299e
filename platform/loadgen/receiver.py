"""`python -m loadgen.receiver`: returns 204 to every POST, and logs it if it is given a log.

Sockets and a selector, no framework, so that the receiver does not limit the measurement. A line is in the log before
its response is sent.
"""

import argparse
import hashlib
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from loadgen.sender import READ_BYTES
from loadgen.wire import ParsedRequest, RequestParser

ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"


class ReceiverConnection:
    """One connection of the receiver."""

    __slots__ = ("parser", "socket")

    def __init__(self, taken: socket.socket) -> None:
        self.socket = taken
        self.parser = RequestParser()


class LoadReceiver:
    """Server of all connections of one listening socket. `log`: file descriptor of the log, None for no log."""

    def __init__(self, listening: socket.socket, log: int | None) -> None:
        self._listening, self._log = listening, log
        listening.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)

    def watch(self, file: int) -> None:
        """End `serve` when this file descriptor has data or has ended."""
        self._selector.register(file, selectors.EVENT_READ)

    def serve(self, *, is_over: Callable[[], bool]) -> None:
        """Serve until it is over."""
        while not is_over() and self._turn():
            pass

    def _turn(self) -> bool:
        lines: list[bytes] = []
        answers: list[tuple[ReceiverConnection, bytes, bool]] = []
        for key, _ in self._selector.select(timeout=0.5):
            if key.fileobj is self._listening:
                self._accept()
            elif not isinstance(key.data, ReceiverConnection):
                return False
            elif (data := _read(key.data.socket)) is not None:
                requests, more, stays_open = key.data.parser.feed(data) if data else ([], b"", False)
                if self._log is not None:
                    lines += map(delivery_line, requests)
                answers.append((key.data, ANSWER * len(requests) + more, stays_open))
        if lines and self._log is not None:
            os.write(self._log, b"".join(lines))
        for connection, answer, stays_open in answers:
            if not (_write(connection.socket, answer) and stays_open):
                self._selector.unregister(connection.socket)
                connection.socket.close()
        return True

    def _accept(self) -> None:
        try:
            taken, _ = self._listening.accept()
        except OSError:
            return
        taken.setblocking(False)
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(taken, selectors.EVENT_READ, ReceiverConnection(taken))


def delivery_line(request: ParsedRequest) -> bytes:
    """Return a request's line in the log: time in us since the epoch, webhook id, position, SHA-256 of the body."""
    message_id, position = request.header(b"webhook-id"), request.header(b"penstock-position")
    digest = hashlib.sha256(request.body).hexdigest().encode()
    return b"%d\t%b\t%b\t%b\n" % (time.time_ns() // 1000, message_id, position, digest)


def _read(taken: socket.socket) -> bytes | None:
    """Return the received bytes: None if there are none yet, empty if the client is gone."""
    try:
        return taken.recv(READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _write(taken: socket.socket, data: bytes) -> bool:
    try:
        return not data or taken.send(data) == len(data)  # a few bytes: they fit, or the client does not read
    except OSError:
        return False


def listener(port: int, *, or_any: bool) -> socket.socket:
    """Return a listening socket on loopback. `or_any`: take another port if `port` is in use."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=1024)
    except OSError:
        if not or_any:
            raise
        return socket.create_server(("127.0.0.1", 0), backlog=1024)


def main(words: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m loadgen.receiver", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, help="append a line for each delivery to this file")
    parser.add_argument(
        "--attached", action="store_true", help="print the port, any if PORT is in use; exit when standard input ends"
    )
    given = parser.parse_args(words)
    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: ending.append(got))
    log = None
    if given.log:
        given.log.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(given.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with listener(given.port, or_any=given.attached) as listening:
        receiver = LoadReceiver(listening, log)
        if given.attached:
            sys.stdout.write(f"{listening.getsockname()[1]}\n")
            sys.stdout.flush()
            receiver.watch(sys.stdin.fileno())
        receiver.serve(is_over=lambda: bool(ending))


if __name__ == "__main__":
    main()
