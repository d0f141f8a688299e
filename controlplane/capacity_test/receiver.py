"""`python -m controlplane.capacity_test.receiver PORT`: answer 204 to every POST and keep nothing.

Prints the port on which it listens: PORT if it is free, else any. It exits when its standard input ends.
"""

import re
import selectors
import socket
import sys
from typing import Final

ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
READ_BYTES: Final = 65_536
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def listener(port: int) -> socket.socket:
    """Return a listening socket on loopback, on `port` if it is free, else on any."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=1024)
    except OSError:
        return socket.create_server(("127.0.0.1", 0), backlog=1024)


def whole_requests(data: bytes) -> tuple[int, bytes]:
    """Return the number of complete requests, and the rest of the data.

    Raises ValueError for a request without content-length.
    """
    count = 0
    while (end := data.find(b"\r\n\r\n")) >= 0:
        length = _LENGTH.search(data, 0, end + 2)
        if length is None:
            raise ValueError("a request without content-length")
        stop = end + 4 + int(length[1])
        if len(data) < stop:
            break
        count, data = count + 1, data[stop:]
    return count, data


class LoadReceiver:
    """Server of all connections of one port."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._rest: dict[socket.socket, bytes] = {}

    def run(self) -> None:
        """Serve until the standard input ends."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is self._listening:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ)
        self._rest[connection] = b""

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(READ_BYTES)
            count, self._rest[connection] = whole_requests(self._rest[connection] + data)
            if count:
                connection.sendall(ANSWER * count)
        except (OSError, ValueError):
            data = b""
        if not data:
            del self._rest[connection]
            self._selector.unregister(connection)
            connection.close()


def main() -> None:
    """Run the receiver."""
    listening = listener(int(sys.argv[1]))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    LoadReceiver(listening).run()


if __name__ == "__main__":
    main()
