"""Benchmark setup: one broker, one cell, processes started and stopped around a measurement."""

import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import MINUTE_US
from dataplane.names import WIRE_VERSION, LaneKind, lane_group
from loadgen.events import LoadRefusedError
from loadgen.measured import EVENT, LoadOrder, LoadResult
from localbox.settings import ROOT
from localbox.testing import Box
from tests.bench.raw import SAFE
from tests.bench.received import ReceivedLog
from tests.support.cluster import HIGH_QUOTAS, KEY, PIPE, Cluster

LANE_RUN_S: Final = 120.0
STEPS: list[dict[str, Any]] = [{"op": "set", "path": "bench.seen", "value": True}, {"op": "remove", "path": "note"}]
# Five steps and a predicate, as in a typical pipe.
FIVE_STEPS: list[dict[str, Any]] = [
    {"op": "filter", "when": "body.order.id > 1000 && body.customer.name != ''"},
    {"op": "cast", "path": "order.total", "to": "decimal"},
    {"op": "rename", "path": "customer.since", "to": "since"},
    {"op": "mask", "path": "customer.email", "how": "partial"},
    {"op": "set", "path": "bench.seen", "value": True},
    {"op": "remove", "path": "note"},
]


class LaneRun(NamedTuple):
    """Lane from its first commit to its last: records per second, and its resident memory (MB)."""

    rate: float
    rss_mb: float


class Stand:
    """Broker, cell and processes of a measurement; `var` is deleted afterwards."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.cluster = Cluster(box.env["PENSTOCK_KAFKA"])
        self.cluster.make_topics()
        self.port = int(box.env["PENSTOCK_INGEST_PORT"])
        self.receiver_port = int(box.env["PENSTOCK_RECEIVER_PORT"])
        self.env = box.env | self.cluster.env(str(box.var), self.port) | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
        self.env["PENSTOCK_QUOTAS"] = HIGH_QUOTAS
        self.received = ReceivedLog(box.var / "received.log")

    def pipe(self, normalize: Sequence[dict[str, Any]] = ()) -> None:
        """Publish the pipe again with these steps."""
        url = f"http://127.0.0.1:{self.receiver_port}/hook"
        self.cluster.publish_pipe({"crm": url}, normalize=list(normalize))

    @contextmanager
    def running(self, *command: str, port: int = 0) -> Iterator[subprocess.Popen[bytes]]:
        """Run a data-plane process during a measurement; with `port`, yield once it listens there.

        Raises RuntimeError if the process has ended by then.
        """
        name = command[-1].replace("/", "-").replace(" ", "-")
        with (self.box.var / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=self.env, stdout=log, stderr=log)
        try:
            while port and process.poll() is None and not _listens(port):
                time.sleep(0.05)
            if process.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}; see {log.name}")
            yield process
        finally:
            process.terminate()
            process.wait(40)

    @contextmanager
    def ingest(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run one ingest replica."""
        with self.running("-m", "dataplane.ingest", "--replica", "ingest-1", port=self.port) as process:
            while not _is_ready(self.port):
                time.sleep(0.05)
            yield process

    @contextmanager
    def receiver(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the receiver with an empty log."""
        self.received.empty()
        options = ("--port", str(self.receiver_port), "--log", str(self.received.path))
        with self.running("-m", "loadgen.receiver", *options, port=self.receiver_port) as process:
            yield process

    def load(self, *, count: int, rate: float = 0, batch: int = 1, connections: int = 64) -> LoadResult:
        """Run a load in a separate process, as fast as it can without a rate. Raises LoadRefusedError."""
        url = f"http://127.0.0.1:{self.port}"
        return run_load(LoadOrder(url, KEY, batch, connections, count, rate or None), self.env)

    def committed(self, kind: LaneKind, topic: str) -> int:
        """Return the sum of the committed offsets of the cell's lanes of a kind, over all partitions."""
        places = [TopicPartition(topic, partition) for partition in range(self.cluster.partitions)]
        consumer = Consumer(
            {"bootstrap.servers": self.cluster.kafka, "group.id": lane_group(self.cluster.cell, kind), "log_level": 3}
        )
        try:
            return sum(max(place.offset, 0) for place in consumer.committed(places, timeout=10))
        finally:
            consumer.close()

    def run_lane(self, kind: LaneKind, topic: str, count: int, *more: str) -> LaneRun:
        """Run a lane until it has committed `count` records beyond those committed. Raises TimeoutError."""
        before = self.committed(kind, topic)
        with self.running("-m", "tests.bench.lane", kind, self.cluster.cell, *more) as process:
            first = last = (0.0, before)
            deadline = time.monotonic() + LANE_RUN_S
            while last[1] < before + count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{before + count - last[1]} of {count} are not committed")
                time.sleep(0.05)
                now = (time.perf_counter(), self.committed(kind, topic))
                if now[1] > last[1]:
                    first = first if first[0] else now
                    last = now
            rss_mb = psutil.Process(process.pid).memory_info().rss / 1e6
        return LaneRun((last[1] - first[1]) / (last[0] - first[0]), rss_mb)

    def ends(self, topic: str) -> int:
        """Return the number of records ever produced to a topic."""
        consumer = Consumer({"bootstrap.servers": self.cluster.kafka, "group.id": "bench", "log_level": 3})
        try:
            partitions = range(self.cluster.partitions)
            return sum(consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in partitions)
        finally:
            consumer.close()


def run_load(order: LoadOrder, env: Mapping[str, str]) -> LoadResult:
    """Run a load with a count in a separate process, and return its result. Raises LoadRefusedError."""
    result = run_load_with_refusals(order, env)
    if result.refused:
        raise LoadRefusedError(f"requests without an ACK, by status: {result.refused}")
    return result


def run_load_with_refusals(order: LoadOrder, env: Mapping[str, str]) -> LoadResult:
    """Run a load as above; its result may have requests that ingest refused."""
    command = [sys.executable, "-m", "loadgen.measured"]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as load:
        assert load.stdin is not None
        assert load.stdout is not None
        load.stdin.write(msgspec.json.encode(order) + b"\n")
        load.stdin.flush()
        return msgspec.json.decode(load.stdout.readline(), type=LoadResult)


@contextmanager
def receiver_on_any_port(log: Path, env: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Run a receiver with this log; yield its pid and port."""
    command = [sys.executable, "-m", "loadgen.receiver", "--port", "0", "--attached", "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())  # it ends with its standard input


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_ready(port: int) -> bool:
    """Return True once ingest has its API keys."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


def fill(cluster: Cluster, count: int) -> None:
    """Produce events on the ingest topic, as ingest stamps them, over all partitions in turn."""
    producer = Producer({"bootstrap.servers": cluster.kafka, "queue.buffering.max.messages": 2 * count, **SAFE})
    topic, now_us = cluster.topics["ingest"], time.time_ns() // 1_000
    for number in range(count):
        meta = MessageMeta(WIRE_VERSION, f"msg_{number}", PIPE, 1, "shop", now_us, now_us, now_us // MINUTE_US)
        headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]
        producer.produce(topic.name, EVENT, partition=number % topic.partitions, headers=headers)
        if not number % 10_000:
            producer.poll(0)
    if producer.flush(120):
        raise TimeoutError(f"{len(producer)} of {count} events were not stored")


@contextmanager
def stand() -> Iterator[Stand]:
    """Yield a stand with its own broker, in a folder that is removed afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        Box(Path(folder) / "var", only=["kafka"]) as box,
    ):
        yield Stand(box)


__all__ = ["EVENT", "FIVE_STEPS", "PIPE", "STEPS", "Stand", "stand"]
