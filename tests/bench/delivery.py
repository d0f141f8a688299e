"""Cost of failing destinations to the others, measured on the transmit, retry and retrier lanes with real Kafka.

The benchmark produces the egress records itself, as process lanes do, so that ingest uses none of the two cores.
"""

import os
import socket
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer

from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import MINUTE_US, partition_base
from dataplane.names import LANE_KINDS, WIRE_VERSION, LaneKind, Purpose
from loadgen.measured import EVENT
from loadgen.scripted import Receiver
from tests.bench.report import RUNS, Line
from tests.bench.stand import Stand
from tests.support.behaviours import hang, throttled
from tests.support.cluster import Cluster, key_of

RATE: Final = 500.0
DESTINATIONS: Final = 50
BAD: Final = 3
RUN_S: Final = 10.0
PARKED: Final = 100_000
OUTAGE_S: Final = 120.0
DRAIN_S: Final = 240.0
STRETCH_S: Final = 10  # shorter intervals measure the machine's scheduler
KINDS: Final[tuple[LaneKind, ...]] = ("transmit", "transmit-retry", "retrier")
COLUMN: Final = {"type": "http", "timeout_s": 30.0}


class Sent(NamedTuple):
    """Message on egress: its destination and its produce time (ns since the epoch)."""

    destination: str
    at_ns: int


class Feed:
    """Producer of messages for a pipe's destinations, round-robin, on a topic of the cell."""

    def __init__(self, cluster: Cluster, pipe: str, destinations: Sequence[str]) -> None:
        self._pipe, self._destinations = pipe, destinations
        self._topics = cluster.topics
        self._partitions = cluster.partitions
        self._producer = Producer({"bootstrap.servers": cluster.kafka, "acks": "all", "linger.ms": 1, "log_level": 3})
        self._number = 0
        self.sent: dict[str, Sent] = {}

    def run(self, seconds: float, rate: float = RATE) -> None:
        """Produce `rate` messages per second for `seconds`."""
        begun, count = time.perf_counter(), 0
        while (passed := time.perf_counter() - begun) < seconds:
            while count < passed * rate:
                self.put("egress")
                count += 1
            self._producer.poll(0.002)
        assert self._producer.flush(20) == 0

    def park(self, count: int, wait_s: float) -> None:
        """Produce `count` messages on retry-in, due after `wait_s`."""
        for _ in range(count):
            self.put("retry-in", not_before_us=time.time_ns() // 1_000 + int(wait_s * 1e6), attempt=1, tried=1)
        assert self._producer.flush(60) == 0

    def put(self, purpose: Purpose, **changes: Any) -> None:
        """Produce one message."""
        now_ns = time.time_ns()
        partition, destination = (
            self._number % self._partitions,
            self._destinations[self._number % len(self._destinations)],
        )
        position = partition_base(1, partition) + self._number
        now_us, name = now_ns // 1_000, str(uuid.UUID(bytes=os.urandom(16)))
        meta = MessageMeta(WIRE_VERSION, name, self._pipe, 1, "shop", now_us, now_us, now_us // MINUTE_US)
        meta.position, meta.destination = position, destination
        for field, value in changes.items():
            setattr(meta, field, value)
        self._number += 1
        headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]
        while True:
            try:
                self._producer.produce(self._topics[purpose].name, EVENT, partition=partition, headers=headers)
                break
            except BufferError:
                self._producer.poll(0.01)
        if purpose == "egress":
            self.sent[name] = Sent(destination, now_ns)


@contextmanager
def _lanes(at: Stand, *cells: Cluster) -> Iterator[None]:
    """Run lanes of each kind for these cells."""
    with ExitStack() as stack:
        for cluster in cells:
            cluster.publish_cell()
            for kind in KINDS:
                stack.enter_context(at.running("-m", "tests.bench.lane", kind, cluster.cell))
        yield


def _cell_beside(at: Stand) -> Cluster:
    """Create another cell on the same broker with the same Fernet key."""
    beside = Cluster(at.cluster.kafka, cell="c2")
    beside.fernet_key = at.cluster.fernet_key
    beside.make_cell_topics(LANE_KINDS)
    return beside


def _arrivals(at: Stand, sent: Mapping[str, Sent], within_s: float) -> dict[str, int]:
    """Return when each of `sent` was received (ns); waits at most `within_s` and omits those not received."""
    deadline = time.monotonic() + within_s
    received = at.received.times()
    while len(received.keys() & sent.keys()) < len(sent) and time.monotonic() < deadline:
        time.sleep(0.2)
        received = at.received.times()
    return {name: received[name] for name in sent.keys() & received.keys()}


def _p95_ms(sent: Mapping[str, Sent], arrived: Mapping[str, int]) -> float:
    lags = sorted((arrived[name] - sent[name].at_ns) / 1e6 for name in sent)
    return lags[int(0.95 * (len(lags) - 1))]


class Watched(NamedTuple):
    """Latency and throughput of the healthy destinations' messages in one run."""

    p95_ms: float
    per_s: float


def _run(at: Stand, cluster: Cluster, number: int, bad: Sequence[str] = ()) -> Watched:
    """Run a new pipe; `bad` are the URLs of its first destinations. Removes all destinations afterwards."""
    pipe, good = f"run-{number}", f"http://127.0.0.1:{at.receiver_port}/hook"
    urls = [*bad, *([good] * (DESTINATIONS - len(bad)))]
    names = [f"d{n}" for n in range(DESTINATIONS)]
    destinations = {name: COLUMN | {"url": url} for name, url in zip(names, urls, strict=True)}
    cluster.add_pipe(pipe, key_of(pipe), destinations)
    time.sleep(0.5)
    feed = Feed(cluster, pipe, names)
    feed.run(RUN_S)
    watched = {name: sent for name, sent in feed.sent.items() if int(sent.destination[1:]) >= BAD}
    arrived = _arrivals(at, watched, 20.0)
    assert len(arrived) == len(watched), f"{len(watched) - len(arrived)} of {len(watched)} did not arrive"
    cluster.publish_destinations(pipe, destinations, state="removed")
    first = min(sent.at_ns for sent in watched.values())
    return Watched(_p95_ms(watched, arrived), len(watched) / ((max(arrived.values()) - first) / 1e9))


def _refusing() -> str:
    with socket.socket() as taken:  # nothing listens on this port afterwards
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/refused"


def bench_isolation(at: Stand) -> list[Line]:
    """50 destinations at 500/s, 3 of them refusing, hanging and throttling, against 50 healthy ones."""
    bad = Receiver()
    bad.answers |= {"/hang": hang, "/429": throttled(None)}
    urls = [_refusing(), bad.url("/hang"), bad.url("/429")]
    with at.receiver(), _lanes(at, at.cluster):
        _run(at, at.cluster, 0)  # warm-up
        pairs = [(_run(at, at.cluster, 2 * n + 1), _run(at, at.cluster, 2 * n + 2, urls)) for n in range(RUNS)]
    bad.close()
    lag = Line(
        "47 healthy with 3 failing destinations, p95",
        "ms",
        [ill.p95_ms for _, ill in pairs],
        [well.p95_ms for well, _ in pairs],
        "within 10 % or 2 ms",
    )
    lag.met = (lag.ratio or 0) <= 1.1 or lag.median - statistics.median(lag.baseline) <= 2.0
    rate = Line(
        "the same, throughput",
        "events/s",
        [ill.per_s for _, ill in pairs],
        [well.per_s for well, _ in pairs],
        "within 3 %",
    )
    rate.met = (rate.ratio or 0) >= 0.97
    return [lag, rate]


def bench_parked(at: Stand) -> list[Line]:
    """Hot path of a cell with 100 000 messages in its delay tiers, alternating with a cell that has none."""
    parked, free = at.cluster, _cell_beside(at)
    with at.receiver(), _lanes(at, parked, free):
        _run(at, parked, 0)
        _run(at, free, 1)
        Feed(parked, "run-0", ["d0"]).park(PARKED, wait_s=3 * 3600)
        topic = parked.topics["retry-in"].name
        while at.committed("retrier", topic) < PARKED:
            time.sleep(1)
        numbers = [2 + 2 * n for n in range(RUNS)]
        pairs = [(_run(at, free, n).p95_ms, _run(at, parked, n + 1).p95_ms) for n in numbers]
    line = Line("hot path with 100 000 parked, p95", "ms", [with_ for _, with_ in pairs], [none for none, _ in pairs])
    line.need, line.met = "within 3 %", (line.ratio or 0) <= 1.03
    return [line]


def bench_outage(at: Stand) -> list[Line]:
    """Destination down for two minutes at 500/s: time until everything is delivered, and peak delivery rate."""
    at.cluster.add_pipe("run-0", key_of("run-0"), {"d0": COLUMN | {"url": f"http://127.0.0.1:{at.receiver_port}/hook"}})
    feed = Feed(at.cluster, "run-0", ["d0"])
    with _lanes(at, at.cluster):
        with at.receiver():
            feed.run(10.0)
            time.sleep(1.0)
            before = at.received.times()
        feed.run(OUTAGE_S)
        with at.receiver():
            healed_ns = time.time_ns()
            while time.time_ns() - healed_ns < DRAIN_S * 1e9 and not _drained(
                feed, before | at.received.times(), healed_ns
            ):
                feed.run(5.0)
            arrived = _arrivals(at, {name: sent for name, sent in feed.sent.items() if name not in before}, 30.0)
    lost = feed.sent.keys() - arrived.keys() - before.keys()
    backlog = [name for name, sent in feed.sent.items() if sent.at_ns < healed_ns and name in arrived]
    drained_s = (max(arrived[name] for name in backlog) - healed_ns) / 1e9
    stretches = Counter((at_ns - healed_ns) // (STRETCH_S * 10**9) for at_ns in arrived.values() if at_ns > healed_ns)
    drain = Line("outage of 2 min at 500/s, drained after", "s", [drained_s], need="240 s, nothing lost")
    drain.met = drained_s <= DRAIN_S and not lost
    peak = Line(f"the same, fastest {STRETCH_S} s", "events/s", [max(stretches.values()) / STRETCH_S])
    peak.need, peak.met = "twice the steady rate", peak.values[0] <= 2 * RATE
    return [drain, peak]


def _drained(feed: Feed, received: Mapping[str, int], healed_ns: int) -> bool:
    return all(name in received for name, sent in feed.sent.items() if sent.at_ns < healed_ns)
