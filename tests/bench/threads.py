"""Thread time per message of the one thread that runs Python, measured with little else running.

Rates on a machine that does other work say little; the CPU time of the lane's own thread is the cost of the code.
The broker is librdkafka's own mock in this process, on its own threads. The result is the minimum of several runs:
interruptions only add cost.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from dataplane.ingest.events import read_events
from dataplane.ingest.replica import IngestReplica
from dataplane.jobs.lanes import make_work
from dataplane.ledger.meta import META_HEADER, Headers, decode_meta, encode_meta
from dataplane.names import CONTROL_TOPIC
from dataplane.plan.stage import decode, encode
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.lanes.lane import BATCH, Lane
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.tables.records import Record, encode_record, record_key
from loadgen.measured import EVENT
from tests.bench.raw import SAFE
from tests.bench.report import RUNS, Line
from tests.bench.stand import FIVE_STEPS, STEPS, fill
from tests.support.cluster import KEY, Cluster

COUNT: Final = 16_000  # the mock broker keeps 5 MB per partition
Carry = Callable[[Message], tuple[bytes, Headers]]


class MockCluster(Cluster):
    """Cluster on librdkafka's mock broker, which creates topics of four partitions on first use."""

    def _make(self, topics: Iterable[NewTopic]) -> None:
        for topic in topics:
            self.producer.list_topics(topic.topic, timeout=10)

    def publish(self, *records: Record) -> None:
        """Publish records as `Cluster` does, to the one partition that is read."""
        for record in records:
            self.producer.produce(CONTROL_TOPIC, key=record_key(record), value=encode_record(record), partition=0)
        assert self.producer.flush(20) == 0


@contextmanager
def mock_cluster(steps: list[dict[str, Any]]) -> Iterator[tuple[MockCluster, DataPlaneSettings]]:
    """Yield a cell with one pipe, and the settings of its processes."""
    broker = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    nodes = broker.list_topics(timeout=10).brokers.values()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as var:
        cluster = MockCluster(",".join(f"127.0.0.1:{node.port}" for node in nodes))
        cluster.make_cluster_topics()
        cluster.make_cell_topics(["process"])
        cluster.publish_pipe({"crm": "http://127.0.0.1:1/hook"}, normalize=steps)
        yield cluster, settings_from(cluster.env(var, 1))


class Laps:
    """Timer of thread CPU time, from the first message on."""

    def __init__(self) -> None:
        self._begun = 0.0
        self._ended = 0.0
        self._messages = 0

    def begin(self) -> None:
        """Begin a pass; passes before the first message are not counted."""
        if not self._messages:
            self._begun = time.thread_time()

    def end(self, messages: int) -> None:
        """End a pass of this many messages."""
        self._messages += messages
        self._ended = time.thread_time()

    @property
    def us(self) -> float:
        """Microseconds per message."""
        return (self._ended - self._begun) / self._messages * 1e6


class TimedLane(Lane):
    """Lane that stops after it has settled COUNT messages."""

    taken = 0

    def _hand_over(self, messages: list[Message]) -> None:
        self.taken += len(messages)
        super()._hand_over(messages)

    def _pass(self) -> None:
        before = self.taken
        self.laps.begin()
        super()._pass()
        self.laps.end(self.taken - before)

    def _must_stop(self) -> bool:
        drain = super()._must_stop()  # also refreshes the control table
        return drain or (self.taken >= COUNT and not any(window.unsettled for window in self.windows.values()))

    def run(self) -> str:
        """Run the lane with a new timer."""
        self.laps = Laps()
        return super().run()


def lane_us(steps: list[dict[str, Any]]) -> float:
    """Return microseconds per message of the process lane with all features on."""
    with mock_cluster(steps) as (cluster, settings):
        fill(cluster, COUNT)
        lane = TimedLane(LaneIdentity("c1", "process", 0, 1, "bench"), settings, make_work)
        assert lane.run() == "drained"
        return lane.laps.us


def loop_us(carry: Carry) -> float:
    """Return microseconds per message of a bare loop: consume, convert by `carry`, produce, count each report."""
    with mock_cluster([]) as (cluster, _):
        fill(cluster, COUNT)
        return _loop_us(cluster, carry)


def _loop_us(cluster: Cluster, carry: Carry) -> float:
    consumer = Consumer({"bootstrap.servers": cluster.kafka, "group.id": "bare", "enable.auto.commit": False})
    producer = Producer({"bootstrap.servers": cluster.kafka, "queue.buffering.max.messages": 2 * COUNT, **SAFE})
    source, target = cluster.topics["ingest"].name, cluster.topics["held"].name
    consumer.assign([TopicPartition(source, partition, 0) for partition in range(cluster.partitions)])
    stored = seen = 0

    def report(error: Any, _message: Any) -> None:
        nonlocal stored
        assert error is None
        stored += 1

    laps = Laps()
    while seen < COUNT or stored < COUNT:
        laps.begin()
        first = consumer.poll(0.001)
        messages = [] if first is None else [first, *consumer.consume(BATCH, 0)]
        for message in messages:
            body, headers = carry(message)
            producer.produce(target, body, message.key(), -1, report, headers=headers)
        producer.poll(0)
        seen += len(messages)
        laps.end(len(messages))
    consumer.close()
    return laps.us


def as_it_came(message: Message) -> tuple[bytes, Headers]:
    """Return body and headers unread."""
    return message.value() or b"", message.headers() or []


def stamped(message: Message) -> tuple[bytes, Headers]:
    """Decode our header and write it with position and destination."""
    headers = message.headers() or []
    meta = decode_meta(headers[0][1])
    meta.position, meta.destination = message.partition() << 40 | message.offset(), "crm"
    return message.value() or b"", [(META_HEADER, encode_meta(meta)), *headers[1:]]


def edited(message: Message) -> tuple[bytes, Headers]:
    """Also decode the body, apply both steps and encode it: the minimum work of any process lane."""
    body, headers = stamped(message)
    value = decode(body)
    value["bench"] = {"seen": True}
    value.pop("note", None)
    return encode(value, ""), headers


async def _ingest_us(settings: DataPlaneSettings) -> float:
    replica = IngestReplica(settings, "ingest-1")
    replica.start()
    while replica.ready:
        await asyncio.sleep(0.05)
    body, laps = b"[" + b",".join([EVENT] * 100) + b"]", Laps()

    async def send(batches: int) -> None:
        for _ in range(batches):
            events = read_events("application/json", body, {}, settings.max_event_bytes)
            verdicts = await replica.take(replica.routes.find(KEY), events.items)
            assert all(verdict.status == 202 for verdict in verdicts)

    laps.begin()
    await asyncio.gather(*(send(COUNT // 800) for _ in range(8)))
    laps.end(COUNT // 800 * 800)
    await replica.stop()
    return laps.us


def ingest_us() -> float:
    """Return microseconds per message of a replica without HTTP, with eight concurrent batches of 100."""
    with mock_cluster([]) as (_, settings), asyncio.Runner() as runner:
        return runner.run(_ingest_us(settings))


def bench_threads(_at: object) -> list[Line]:
    """Thread time of a message: in a bare loop, with the unavoidable work, and in our processes."""
    collect_rarely()
    measures: dict[str, Callable[[], float]] = {
        "thread time, bare loop": lambda: loop_us(as_it_came),
        "thread time, and our header": lambda: loop_us(stamped),
        "thread time, and two edits of the body": lambda: loop_us(edited),
        "thread time, process lane, 2 steps": lambda: lane_us(STEPS),
        "thread time, process lane, 5 steps and a predicate": lambda: lane_us(FIVE_STEPS),
        "thread time, ingest, batches of 100, no HTTP": ingest_us,
    }
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(RUNS)]
    return [Line(name, "us", [min(one[name] for one in rounds)]) for name in measures]
