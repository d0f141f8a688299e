"""`python -m localbox.demo.sender`: posts events over many persistent connections and logs the outcome of each.

An event is posted until it is ACKed. A POST without a response (reset, timeout) or with 5xx may have been stored
nevertheless, so its line stays in the log next to the one that was ACKed. Sockets and a selector, one thread, one POST
in flight per connection.
"""

import heapq
import itertools
import os
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from localbox.demo.logs import ACCEPTED, UNKNOWN
from localbox.demo.payloads import Payload, read_payloads
from localbox.demo.request import demo_request_from
from localbox.errors import BoxError
from localbox.settings import settings_from
from localbox.state import last_json_line

TIMEOUT_S: Final = 30.0
RETRY_S: Final = 0.25  # after no response
REFUSED_RETRY_S: Final = 1.0  # after a response that was not 202
REFUSED_LIMIT_S: Final = 60.0  # 4xx may last so long before the sender fails: replicas need a moment to learn a new key
_READ_BYTES: Final = 256 * 1024
_IDLE_S: Final = 0.05


class DemoResponse(Struct):
    """Response of ingest for one event; for a batch, `items` has one for each."""

    status: int = 0
    id: str = ""
    position: str = ""
    bucket: int = 0
    items: list["DemoResponse"] = []


class DemoPost(NamedTuple):
    """Events of one POST, by their index in the run."""

    indexes: tuple[int, ...]
    since: float  # monotonic: time of their first attempt


_decode = msgspec.json.Decoder(DemoResponse).decode


class DemoTarget(NamedTuple):
    """Address of ingest, and the API key to post with."""

    host: str
    port: int
    path: str
    key: str

    @classmethod
    def of(cls, url: str, key: str) -> "DemoTarget":
        """Make the target from ingest's URL."""
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 80, "/v1/events", key)

    def request(self, bodies: Sequence[bytes]) -> bytes:
        """Return the bytes of a POST: one event as JSON, several as NDJSON; each event keeps its exact bytes."""
        kind = "application/json" if len(bodies) == 1 else "application/x-ndjson"
        body = b"\n".join(bodies)
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nauthorization: Bearer {self.key}\r\n"
            f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class DemoConnection:
    """One connection and the POST on it."""

    __slots__ = ("job", "read", "sent_us", "since", "socket", "unsent")

    def __init__(self) -> None:
        self.socket: socket.socket | None = None
        self.job: DemoPost | None = None
        self.unsent = b""
        self.read = b""
        self.sent_us = 0
        self.since = 0.0


class DemoSender:
    """Sends `count` events (None: until `stop` returns True) at `rate` per second (0: unlimited), in a cycle."""

    def __init__(
        self,
        target: DemoTarget,
        payloads: Sequence[Payload],
        *,
        log: Path,
        rate: float,
        count: int | None = None,
        batch: int = 1,
        connections: int = 64,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._target = target
        self._payloads = payloads
        self._rate = rate
        self._stop = stop
        self._new = self._jobs(count, batch)
        self._ahead: DemoPost | None = None
        self._taken = 0
        self._again: list[tuple[float, int, DemoPost]] = []
        self._order = itertools.count()
        self._selector = selectors.DefaultSelector()
        self._idle = [DemoConnection() for _ in range(connections)]
        self._busy: dict[int, DemoConnection] = {}
        self._ready = [target.request([payload.body]) for payload in payloads] if batch == 1 else []
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("a", buffering=1 << 16)
        self._swept = 0.0
        self.accepted = 0

    def run(self) -> int:
        """Send all events; return how many were ACKed. Raises BoxError if ingest keeps refusing."""
        self._began = time.monotonic()
        self._ahead = next(self._new, None)
        try:
            while self._ahead or self._again or self._busy:
                if self._stop():
                    self._ahead, self._again = None, []
                wait_s = self._start_due()
                for key, events in self._selector.select(wait_s):
                    self._move(key.data, events)
                self._sweep()
        finally:
            self._log.close()
            for line in (*self._idle, *self._busy.values()):
                self._close(line)
            self._selector.close()
        return self.accepted

    def _jobs(self, count: int | None, batch: int) -> Iterator[DemoPost]:
        indexes: Iterator[int] = iter(range(count)) if count is not None else itertools.count()
        while chunk := tuple(itertools.islice(indexes, batch)):
            yield DemoPost(chunk, 0.0)

    def _start_due(self) -> float:
        """Start due POSTs on idle connections; return the seconds until the next one is due."""
        now = time.monotonic()
        while self._idle:
            if self._again and self._again[0][0] <= now:
                self._post(heapq.heappop(self._again)[2], now)
            elif self._ahead and (due := self._due()) <= now:
                job, self._ahead = self._ahead, next(self._new, None)
                self._taken += len(job.indexes)
                self._post(job._replace(since=now), now)
            else:
                waits = [self._again[0][0]] if self._again else []
                return max(0.0, min([*waits, *([due] if self._ahead else []), now + _IDLE_S]) - now)
        return _IDLE_S

    def _due(self) -> float:
        return self._began + self._taken / self._rate if self._rate else 0.0

    def _post(self, job: DemoPost, now: float) -> None:
        line = self._idle.pop()
        line.job, line.read, line.since = job, b"", now
        line.sent_us = time.time_ns() // 1000
        if line.socket is None and not self._connect(line):
            self._ended(line, UNKNOWN, [])
            return
        line.unsent = self._bytes(job)
        self._busy[id(line)] = line
        self._write(line)

    def _bytes(self, job: DemoPost) -> bytes:
        if len(job.indexes) == 1 and self._ready:
            return self._ready[job.indexes[0] % len(self._ready)]
        return self._target.request([self._payload(index).body for index in job.indexes])

    def _payload(self, index: int) -> Payload:
        return self._payloads[index % len(self._payloads)]

    def _connect(self, line: DemoConnection) -> bool:
        try:
            sock = socket.create_connection((self._target.host, self._target.port), timeout=2)
        except OSError:
            return False
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.socket = sock
        self._selector.register(sock, selectors.EVENT_READ, line)
        return True

    def _move(self, line: DemoConnection, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._write(line)
        if events & selectors.EVENT_READ and line.socket is not None:
            self._read(line)

    def _write(self, line: DemoConnection) -> None:
        if line.socket is None:
            return
        try:
            sent = line.socket.send(line.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._broken(line)
            return
        waited = sent < len(line.unsent)
        line.unsent = line.unsent[sent:]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if waited else 0)
        if self._selector.get_key(line.socket).events != wanted:
            self._selector.modify(line.socket, wanted, line)

    def _read(self, line: DemoConnection) -> None:
        try:
            data = line.socket.recv(_READ_BYTES) if line.socket else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._broken(line)
            return
        line.read += data
        parsed = parse_answer(line.read)
        if parsed is not None and line.job is not None:
            status, body, keep = parsed
            if not keep:
                self._close(line)
            self._ended(line, status, _verdicts(status, body, len(line.job.indexes)))

    def _broken(self, line: DemoConnection) -> None:
        self._close(line)
        if line.job is not None:
            self._ended(line, UNKNOWN, [])

    def _close(self, line: DemoConnection) -> None:
        if line.socket is not None:
            self._selector.unregister(line.socket)
            line.socket.close()
            line.socket = None

    def _ended(self, line: DemoConnection, status: int, verdicts: list[DemoResponse]) -> None:
        """Log the outcome of every event of the POST, and schedule those without an ACK again."""
        job, line.job = line.job, None
        self._busy.pop(id(line), None)
        self._idle.append(line)
        if job is None:
            return
        now_us, unacked = time.time_ns() // 1000, []
        for number, index in enumerate(job.indexes):
            response = verdicts[number] if verdicts else DemoResponse(status)
            self._log.write(
                f"{index}\t{line.sent_us}\t{now_us}\t{response.status}\t{response.id}\t{response.position}"
                f"\t{response.bucket}\t{self._payload(index).sha256}\n"
            )
            if response.status == ACCEPTED:
                self.accepted += 1
            else:
                unacked.append(index)
        if unacked:
            self._post_again(DemoPost(tuple(unacked), job.since), status)

    def _post_again(self, job: DemoPost, status: int) -> None:
        now = time.monotonic()
        if 400 <= status < 500 and status != 429 and now - job.since > REFUSED_LIMIT_S:
            raise BoxError(f"ingest keeps answering {status} to event {job.indexes[0]}: see its log")
        wait_s = REFUSED_RETRY_S if status else RETRY_S
        heapq.heappush(self._again, (now + wait_s, next(self._order), job))

    def _sweep(self) -> None:
        """End POSTs without a response for too long; a few times a second is enough."""
        now = time.monotonic()
        if now - self._swept < 0.2:
            return
        self._swept = now
        self._log.flush()
        for line in [line for line in self._busy.values() if now - line.since > TIMEOUT_S]:
            self._broken(line)


def run_all(senders: Sequence[DemoSender]) -> int:
    """Run the senders in parallel to their end; return how many events were ACKed. Raises the first sender's error."""
    with ThreadPoolExecutor(len(senders)) as pool:
        return sum(pool.map(DemoSender.run, senders))


def parse_answer(read: bytes) -> tuple[int, bytes, bool] | None:
    """Parse a response: (status, body, True if the connection stays open), or None while it is incomplete."""
    end = read.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = read[:end].lower()
    at = head.find(b"content-length:")
    stop = head.find(b"\r\n", at) if at >= 0 else -1
    length = int(head[at + 15 : stop if stop >= 0 else None]) if at >= 0 else 0
    if len(read) < end + 4 + length:
        return None
    return int(head[9:12]), read[end + 4 : end + 4 + length], b"connection: close" not in head


def _verdicts(status: int, body: bytes, count: int) -> list[DemoResponse]:
    """Return one response per event; none if the whole POST was refused. Raises BoxError if their number differs."""
    if status not in (ACCEPTED, 207):
        return []
    response = _decode(body)
    items = response.items or [response]
    for item in items:
        item.status = item.status or status
    if len(items) != count:
        raise BoxError(f"ingest answered {len(items)} verdicts to {count} events")
    return items


def endless_senders(env: Mapping[str, str], *, stop: Callable[[], bool]) -> list[DemoSender]:
    """Return the box's endless senders, one per source; their keys are in the log of the step that made them."""
    request, settings = demo_request_from(env), settings_from(env)
    keys = last_json_line(settings.logs / "demo-pipe.log")["keys"]
    payloads, folder, rate = read_payloads(request.events), settings.var / "demo", request.rate / len(keys)
    return [
        DemoSender(target, payloads, log=folder / f"sent-{name}.log", rate=rate, batch=request.batch, stop=stop)
        for name, key in keys.items()
        for target in [DemoTarget.of(env["PENSTOCK_INGEST_URL"], key)]
    ]


def main() -> None:
    """Send until SIGTERM, with the settings and the keys of the demo's box."""
    import signal

    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: ending.append(got))
    run_all(endless_senders(os.environ, stop=lambda: bool(ending)))


if __name__ == "__main__":
    main()
