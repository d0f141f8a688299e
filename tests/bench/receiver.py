"""Cheap receiver: answers 204 and logs each webhook-id with the time, in memory, then in a file.

Plain sockets: the subject of the measurement is the sender on the same machine, not the receiver.
"""

import argparse
import selectors
import socket
import time
from pathlib import Path
from typing import Final

ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
WRITE_EVERY_S: Final = 0.1


class Receiver:
    """Receiver on one port, for all its connections. Its log has lines of "<id> <ns since the epoch>"."""

    def __init__(self, port: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._rest: dict[int, bytes] = {}  # incomplete request data, by connection
        self.log: list[bytes] = []

    def turn(self, wait_s: float) -> None:
        """Accept connections and answer complete requests that have arrived."""
        for key, _ in self._selector.select(wait_s):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is self._listener:
                self._accept()
            else:
                self._read(connection)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        number = connection.fileno()
        data = connection.recv(65_536)
        if not data:
            self._rest.pop(number, None)
            self._selector.unregister(connection)
            connection.close()
            return
        data = self._rest.pop(number, b"") + data
        while data:
            end = self._end_of_request(data)
            if not end:
                self._rest[number] = data
                return
            connection.sendall(ANSWER)
            name = data.find(b"webhook-id: ")
            self.log.append(b"%b %d" % (data[name + 12 : name + 48], time.time_ns()))
            data = data[end:]

    @staticmethod
    def _end_of_request(data: bytes) -> int:
        """Return the end of the first request, or 0 if it is incomplete."""
        end = data.find(b"\r\n\r\n")
        at = data.find(b"\r\nContent-Length: ", 0, end + 2)
        if end < 0 or at < 0:
            return 0
        whole = end + 4 + int(data[at + 18 : data.find(b"\r\n", at + 2)])
        return whole if len(data) >= whole else 0


def serve(port: int, out: Path) -> None:
    """Serve until killed, writing the log ten times a second."""
    receiver = Receiver(port)
    due = 0.0
    with out.open("wb", buffering=0) as file:
        while True:
            receiver.turn(WRITE_EVERY_S)
            if receiver.log and time.monotonic() >= due:
                due = time.monotonic() + WRITE_EVERY_S
                file.write(b"\n".join(receiver.log) + b"\n")
                receiver.log.clear()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    serve(arguments.port, arguments.out)
