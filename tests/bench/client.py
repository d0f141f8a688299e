"""A fast HTTP client for loads: non-blocking sockets on one epoll, keep-alive, one request in flight per connection."""

import argparse
import json
import selectors
import socket
import time
from pathlib import Path

EVENT = json.dumps(
    {
        "order": {"id": 123456, "total": "12.50", "lines": [{"sku": "abc-1", "n": 1}, {"sku": "def-2", "n": 2}]},
        "customer": {"name": "Ada Lovelace", "email": "ada@example.com", "since": "2026-01-02T03:04:05Z"},
        "note": "n" * 250,
    }
).encode()


class Connection:
    """One keep-alive connection; `sent_ns` is when the request in flight was sent, 0 if none is."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.sent_ns = 0
        self._read = b""

    def send(self, request: bytes) -> None:
        self.sent_ns = time.time_ns()
        self.socket.setblocking(True)
        self.socket.sendall(request)
        self.socket.setblocking(False)

    def receive(self) -> tuple[int, bytes] | None:
        """Status and body once the whole answer is here."""
        self._read += self.socket.recv(1 << 18)
        head, gap, rest = self._read.partition(b"\r\n\r\n")
        if not gap:
            return None
        at = head.find(b"content-length: ")
        length = int(head[at + 16 : head.find(b"\r\n", at) if b"\r\n" in head[at:] else None])
        if len(rest) < length:
            return None
        self._read = rest[length:]
        self.sent_ns = 0
        return int(head[9:12]), rest[:length]


def requests(key: str, batch: int) -> bytes:
    """The request for one event, or a JSON array of `batch` of them."""
    body = EVENT if batch == 1 else b"[" + b",".join([EVENT] * batch) + b"]"
    head = f"POST /v1/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n"
    return (head + f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n").encode() + body


class Load:
    """`count` events at `rate` a second (0: closed loop, as fast as it goes) over `connections`."""

    def __init__(self, *, port: int, key: str, count: int, rate: float, batch: int, connections: int) -> None:
        self._request = requests(key, batch)
        self._requests = count // batch
        self._rate = rate / batch
        self._selector = selectors.DefaultSelector()
        self._idle = [Connection(port) for _ in range(connections)]
        for connection in self._idle:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self.answers: list[tuple[int, int, bytes]] = []  # sent at, answered at, body
        self.refused: dict[int, int] = {}

    def run(self) -> float:
        """Returns the seconds it took until the last answer."""
        begun = time.perf_counter()
        sent = 0
        while len(self.answers) + sum(self.refused.values()) < self._requests:
            due = self._requests if not self._rate else int((time.perf_counter() - begun) * self._rate) + 1
            while self._idle and sent < min(due, self._requests):
                self._idle.pop().send(self._request)
                sent += 1
            wait = 1.0 if not self._rate else max(0.0, begun + sent / self._rate - time.perf_counter())
            for key, _ in self._selector.select(min(wait, 1.0)):
                self._take(key.data)
        return time.perf_counter() - begun

    def _take(self, connection: Connection) -> None:
        sent_ns = connection.sent_ns
        answer = connection.receive()
        if answer is None:
            return
        self._idle.append(connection)
        if answer[0] == 202:
            self.answers.append((sent_ns, time.time_ns(), answer[1]))
        else:
            self.refused[answer[0]] = self.refused.get(answer[0], 0) + 1

    def sent_ids(self) -> dict[str, int]:
        """Message id -> when its request was sent (ns since the epoch)."""
        ids: dict[str, int] = {}
        for sent_ns, _, body in self.answers:
            answer = json.loads(body)
            for item in answer.get("items", [answer]):
                ids[item["id"]] = sent_ns
        return ids


def main() -> None:
    """`python -m tests.bench.client`: run a load and write {seconds, refused, sent} as JSON."""
    parser = argparse.ArgumentParser()
    for name in ("port", "count", "batch", "connections"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--key", required=True)
    parser.add_argument("--out", type=Path, required=True)
    a = parser.parse_args()
    load = Load(port=a.port, key=a.key, count=a.count, rate=a.rate, batch=a.batch, connections=a.connections)
    seconds = load.run()
    a.out.write_text(json.dumps({"seconds": seconds, "refused": load.refused, "sent": load.sent_ids()}))


if __name__ == "__main__":
    main()
