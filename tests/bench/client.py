"""A fast HTTP client for loads: every connection on one libcurl multi handle, one request in flight on each."""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import pycurl

EVENT = json.dumps(
    {
        "order": {"id": 123456, "total": "12.50", "lines": [{"sku": "abc-1", "n": 1}, {"sku": "def-2", "n": 2}]},
        "customer": {"name": "Ada Lovelace", "email": "ada@example.com", "since": "2026-01-02T03:04:05Z"},
        "note": "n" * 250,
    }
).encode()


class Connection:
    """One keep-alive connection: a handle of its own, used again and again for the same request."""

    def __init__(self, url: str, key: str, body: bytes) -> None:
        self.sent_ns = 0
        self.answer: list[bytes] = []
        self.curl = curl = pycurl.Curl()
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.HTTPHEADER, ["Expect:", "Content-Type: application/json", f"Authorization: Bearer {key}"])
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.WRITEFUNCTION, self.answer.append)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.NOPROXY, "*")
        curl.connection = self


class Load:
    """`count` events at `rate` a second (0: closed loop, as fast as it goes) over `connections`."""

    def __init__(self, *, port: int, key: str, count: int, rate: float, batch: int, connections: int) -> None:
        body = EVENT if batch == 1 else b"[" + b",".join([EVENT] * batch) + b"]"
        url = f"http://127.0.0.1:{port}/v1/events"
        self._requests = count // batch
        self._rate = rate / batch
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._idle = [Connection(url, key, body) for _ in range(connections)]
        self._ended = 0
        self.answers: list[tuple[int, int, bytes]] = []  # sent at, answered at, body
        self.refused: dict[int, int] = {}

    def run(self) -> float:
        """Returns the seconds it took until the last answer."""
        begun = time.perf_counter()
        sent = 0
        while self._ended < self._requests:
            due = self._requests if not self._rate else int((time.perf_counter() - begun) * self._rate) + 1
            while self._idle and sent < min(due, self._requests):
                self._send(self._idle.pop())
                sent += 1
            self._multi.perform()
            if not self._collect():
                wait_s = 1.0 if not self._rate else max(0.0, begun + sent / self._rate - time.perf_counter())
                self._multi.select(min(wait_s, 1.0))
        return time.perf_counter() - begun

    def _send(self, connection: Connection) -> None:
        connection.answer.clear()
        connection.sent_ns = time.time_ns()
        self._multi.add_handle(connection.curl)

    def _collect(self) -> int:
        _, well, failed = self._multi.info_read()
        for curl, code, why in failed:
            raise ConnectionError(f"libcurl {code}: {why} ({curl.getinfo(pycurl.EFFECTIVE_URL)})")
        for curl in well:
            self._multi.remove_handle(curl)
            self._take(curl.connection, curl.getinfo(pycurl.RESPONSE_CODE))
        self._ended += len(well)
        return len(well)

    def _take(self, connection: Connection, status: int) -> None:
        if status == 202:
            self.answers.append((connection.sent_ns, time.time_ns(), b"".join(connection.answer)))
        else:
            self.refused[status] = self.refused.get(status, 0) + 1
        self._idle.append(connection)

    def sent_ids(self) -> dict[str, int]:
        """Message id -> when its request was sent (ns since the epoch)."""
        ids: dict[str, int] = {}
        for sent_ns, _, body in self.answers:
            answer: dict[str, Any] = json.loads(body)
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
