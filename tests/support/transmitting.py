"""A transmit lane without Kafka and sockets: transfers end as a test says, signals are kept in a list."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from confluent_kafka import KafkaError
from cryptography.fernet import Fernet

from dataplane.ledger.meta import Headers
from dataplane.names import LaneKind
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.spec import HttpDestination, RetryPolicy
from dataplane.tables.records import DestinationRecord
from dataplane.tables.signals import DestinationSignal, encode_signal, signal_key
from dataplane.transmit import key_order
from dataplane.transmit import work as module
from dataplane.transmit.destinations import breaker_gossip
from dataplane.transmit.http.sender import MAX_TRANSFERS, HttpRequest, HttpResponse, RequestIdentity
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, MemoryMessage

KEY = Fernet.generate_key().decode()
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = Fernet(KEY).encrypt(SECRET.encode()).decode()
NODE = "transmit:crm"


class MemorySender:
    """HTTP sender whose transfers end when and as the test says."""

    def __init__(self, allowed: Any) -> None:
        self.allowed = allowed
        self.begun: list[Any] = []
        self.requests: list[tuple[str, list[str], bytes, int]] = []
        self.signed: list[tuple[str, RequestIdentity]] = []  # method and identity of each request
        self._ended: list[HttpResponse] = []
        self.limit = MAX_TRANSFERS
        self.wants_details: Callable[[Any], bool] = lambda _token: True

    @property
    def room(self) -> int:
        return self.limit - len(self.begun)

    @property
    def active(self) -> int:
        return len(self.begun)

    def begin(self, post: HttpRequest) -> None:
        self.begun.append(post.token)
        self.requests.append((post.url, post.headers, post.body, post.timeout_ms))
        self.signed.append((post.method, post.identity))

    def poll(self, wait_s: float) -> Iterator[HttpResponse]:
        assert wait_s < 0.1
        ended, self._ended = self._ended, []
        yield from ended

    def answer_all_of(self, name: str, status: int) -> None:
        """End only the transfers to one destination."""
        others = [token for token in self.begun if token.target.record.name != name]
        self.begun = [token for token in self.begun if token.target.record.name == name]
        self.answer(status)
        self.begun = others

    def answer(
        self, status: int, curl_code: int = 0, *, count: int = 1_000, body: bytes = b"", retry_after: str = ""
    ) -> None:
        for token in self.begun[:count]:
            timings = (1, 2, 3, 4, 5)
            self._ended.append(
                HttpResponse(token, status, curl_code, "", "127.0.0.1", False, *timings, body, retry_after)
            )
        del self.begun[:count]

    def cancel(self, wanted: Callable[[Any], bool]) -> list[Any]:
        cancelled = [token for token in self.begun if wanted(token)]
        self.begun = [token for token in self.begun if not wanted(token)]
        return cancelled

    def cancel_all(self) -> list[Any]:
        return self.cancel(lambda _token: True)

    def close(self) -> None:
        self.begun = []


class Produced(NamedTuple):
    """Record as a producer received it."""

    topic: str
    value: bytes
    key: bytes | None
    on_delivery: Any
    headers: Headers


class MemoryProducer:
    """Producer whose delivery reports come when and as the test says."""

    def __init__(self) -> None:
        self.sent: list[Produced] = []
        self._waiting: list[Produced] = []

    def produce(self, topic: str, value: bytes, key: bytes | None, *, on_delivery: Any, headers: Headers) -> None:
        self.sent.append(Produced(topic, value, key, on_delivery, headers))
        self._waiting.append(self.sent[-1])

    def report(self, error: KafkaError | None = None, *, count: int = 1_000) -> None:
        for record in self._waiting[:count]:
            record.on_delivery(error, None)
        del self._waiting[:count]

    def poll(self, wait_s: float) -> int:
        assert wait_s == 0
        return 0

    def flush(self, _wait_s: float) -> int:
        return len(self._waiting)


class _End:
    """End of a partition, as a consumer returns it."""

    def error(self) -> "_End":
        return self

    def code(self) -> int:
        code: int = KafkaError._PARTITION_EOF
        return code


class MemorySignals:
    """Compacted topic, as a consumer returns it."""

    def __init__(self) -> None:
        self.waiting: list[MemoryMessage] = []

    def put(self, signal: DestinationSignal) -> None:
        self.put_raw(signal_key(signal).encode(), encode_signal(signal))

    def put_raw(self, key: bytes | None, value: bytes) -> None:
        self.waiting.append(MemoryMessage(0, 0, value, [], key))

    def consume(self, _limit: int, _wait_s: float) -> list[MemoryMessage | _End]:
        waiting, self.waiting = self.waiting, []
        return [*waiting, _End()]

    def close(self) -> None:
        self.waiting = []


class Clock:
    """The monotonic clock and the wall clock of the transmit code, advanced by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        self.wall_us = 1_795_262_400_000_000
        monkeypatch.setattr("time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("time.monotonic_ns", lambda: int(self.now_s * 1e6) * 1_000)
        monkeypatch.setattr("time.time_ns", lambda: self.wall_us * 1_000)
        monkeypatch.setattr("time.time", lambda: self.wall_us / 1_000_000)

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        self.wall_us += int(seconds * 1_000_000)


def without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every transmit lane opened from now on without Kafka and sockets."""
    monkeypatch.setattr(module, "HttpSender", MemorySender)
    monkeypatch.setattr(breaker_gossip, "topic_reader", lambda *_: MemorySignals())
    monkeypatch.setattr(key_order, "topic_reader", lambda *_: MemorySignals())


def destination(
    name: str = "crm",
    version: int = 1,
    state: Literal["active", "paused", "suspended", "removed"] = "active",
    secrets: tuple[str, ...] = (TOKEN,),
    credential: str = "",
    **to: Any,
) -> DestinationRecord:
    fields = {"url": f"http://{name}.example/", "retry": RetryPolicy(local_tries=1), **to}
    return DestinationRecord("p", name, version, state, HttpDestination(**fields), list(secrets), credential)


def opened(
    var: Path, *records: DestinationRecord, kind: LaneKind = "transmit", tracing: Tracing | None = None
) -> tuple[MemoryLane, TransmitWork, MemorySender]:
    lane = MemoryLane(kind, var, KEY, tracing)
    for record in records:
        lane.table.apply(record)
    lane.work = TransmitWork(lane)
    return lane, lane.work, lane.work._sender


def signals_of(work: TransmitWork) -> MemorySignals:
    signals: MemorySignals = work._gossip._consumer
    return signals
