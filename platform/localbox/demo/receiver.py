"""`python -m localbox.demo.receiver`: answers 204 to every POST and logs it.

Sockets and a selector, no framework, so that the receiver does not limit the measurement. A line is in the log before
its response is sent.
"""

import argparse
import hashlib
import os
import selectors
import signal
import socket
import time
from pathlib import Path
from typing import Final

ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
REFUSAL: Final = b"HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_READ_BYTES: Final = 256 * 1024
_MOST_HEAD_BYTES: Final = 64 * 1024


class ReceiverConnection:
    """One connection, with the bytes that are not yet a complete request."""

    __slots__ = ("_buffer", "_continued", "socket")

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._buffer = b""
        self._continued = False

    def feed(self, data: bytes) -> tuple[list[str], bytes, bool]:
        """Return the log lines and responses of all complete requests, and True if the connection stays open."""
        buffer = self._buffer + data if self._buffer else data
        lines: list[str] = []
        answers = b""
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            head = buffer[:end]
            length = header(head, b"content-length")
            if not length.isdigit():
                return lines, answers + REFUSAL, False
            stop = end + 4 + int(length)
            if len(buffer) < stop:
                if not self._continued and header(head, b"expect"):
                    answers, self._continued = answers + CONTINUE, True
                break
            lines.append(_line(head, buffer[end + 4 : stop]))
            answers, self._continued = answers + ANSWER, False
            buffer = buffer[stop:]
        self._buffer = buffer
        return lines, answers, len(buffer) < _MOST_HEAD_BYTES or b"\r\n\r\n" in buffer


def header(head: bytes, name: bytes) -> bytes:
    """Return the value of a header in a request's head, or b"" if it is absent."""
    at = head.lower().find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else None].strip()


def serve(*, port: int, log: Path, host: str = "127.0.0.1") -> None:
    """Serve until SIGTERM."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: ending.append(got))
    with socket.create_server((host, port), backlog=512) as listener, selectors.DefaultSelector() as selector:
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ, None)
        while not ending:
            _turn(selector, log_fd)


def _turn(selector: selectors.BaseSelector, log_fd: int) -> None:
    lines: list[str] = []
    answers: list[tuple[ReceiverConnection, bytes, bool]] = []
    for key, _ in selector.select(timeout=0.5):
        if key.data is None:
            _accept(selector, key.fileobj)  # type: ignore[arg-type]  # only sockets are registered
            continue
        data = _read(key.data.socket)
        if data is None:
            continue
        new, answer, go_on = key.data.feed(data) if data else ([], b"", False)
        lines += new
        answers.append((key.data, answer, go_on))
    if lines:
        os.write(log_fd, "".join(lines).encode())
    for connection, answer, go_on in answers:
        if not (_write(connection.socket, answer) and go_on):
            selector.unregister(connection.socket)
            connection.socket.close()


def _accept(selector: selectors.BaseSelector, listener: socket.socket) -> None:
    try:
        sock, _ = listener.accept()
    except OSError:
        return
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector.register(sock, selectors.EVENT_READ, ReceiverConnection(sock))


def _read(sock: socket.socket) -> bytes | None:
    """Return the received bytes: None if there are none yet, empty if the client is gone."""
    try:
        return sock.recv(_READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _write(sock: socket.socket, data: bytes) -> bool:
    try:
        return not data or sock.send(data) == len(data)  # a few bytes: they fit, or the client does not read
    except OSError:
        return False


def _line(head: bytes, body: bytes) -> str:
    message_id = header(head, b"webhook-id").decode("latin-1")
    position = header(head, b"penstock-position").decode("latin-1")
    sha256 = hashlib.sha256(body).hexdigest()
    return f"{time.time_ns() // 1000}\t{message_id}\t{position}\t{sha256}\n"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m localbox.demo.receiver", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    given = parser.parse_args()
    serve(port=given.port, log=given.log)


if __name__ == "__main__":
    main()
