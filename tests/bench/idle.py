"""Cost of ten thousand idle pipes to the busy one of their cell: throughput, memory, and the delay until a
changed spec runs.
"""

import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import MINUTE_US
from dataplane.names import WIRE_VERSION
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord, Record
from loadgen.measured import EVENT
from tests.bench.report import RUNS, Line
from tests.bench.stand import STEPS, LaneRun, Stand
from tests.support.cluster import PIPE, TENANT

IDLE: Final = 10_000
EVENTS: Final = 60_000
MEASURED_S: Final = 120.0
CHANGES: Final = 5
_MARK: Final = '"changed":%d'


def bench_idle(at: Stand) -> list[Line]:
    """Measure the same lane over the same events before and after the cell gets its idle pipes."""
    at.pipe(STEPS)
    alone = [_run(at) for _ in range(RUNS)]
    publish_idle(at, IDLE)
    among = [_run(at) for _ in range(RUNS)]
    rates = Line(
        f"process among {IDLE:,} idle pipes", "events/s", [run.rate for run in among], [run.rate for run in alone],
        need="90 % of the rate without them",
    )  # fmt: skip
    rates.met = (rates.ratio or 0) >= 0.9
    before_mb = statistics.median(run.rss_mb for run in alone)
    grown = Line(
        f"a lane's memory for {IDLE:,} pipes", "MB", [run.rss_mb - before_mb for run in among], need="under 300 MB"
    )
    grown.met = grown.median < 300
    live = Line("a changed spec runs, without a restart", "s", changes(at), need="under 5 s")
    live.met = max(live.values) < 5
    return [rates, grown, live]


def publish_idle(at: Stand, count: int) -> None:
    """Publish `count` pipes of the cell, each with its own plan."""
    url = f"http://127.0.0.1:{at.receiver_port}/hook"
    spec = parse_pipe_spec({"sources": {"shop": {}}, "normalize": STEPS, "destinations": {"crm": {"url": url}}})
    records: list[Record] = []
    for number in range(count):
        name = f"pipe_idle-{number}"
        records.append(PlanRecord(name, 1, spec, at.cluster.version()))
        records.append(PipeRecord(name, at.cluster.version(), TENANT, name, at.cluster.cell, "active", [(1, 100)]))
        if len(records) >= 2_000:
            at.cluster.publish(*records)
            records = []
    at.cluster.publish(*records)


def changes(at: Stand) -> list[float]:
    """Return, for each plan change, the seconds from the control topic to the first message that ran it."""
    producer = Producer({"bootstrap.servers": at.cluster.kafka, "log_level": 3})
    taken = []
    with at.running("-m", "tests.bench.lane", "process"), _reader(at) as reader:
        _seconds_until(at, producer, reader, b"bench")
        for number in range(CHANGES):
            at.cluster.publish(_changed(at, number), _runs_as(at, number))
            taken.append(_seconds_until(at, producer, reader, (_MARK % number).encode()))
    return taken


def _changed(at: Stand, number: int) -> PlanRecord:
    step = {"op": "set", "path": "changed", "value": number}
    destinations = {"crm": {"url": f"http://127.0.0.1:{at.receiver_port}/hook"}}
    spec = parse_pipe_spec({"sources": {"shop": {}}, "normalize": [*STEPS, step], "destinations": destinations})
    return PlanRecord(PIPE, number + 2, spec, at.cluster.version())


def _runs_as(at: Stand, number: int) -> PipeRecord:
    """Return a pipe record by which messages stamped with revision 1 run the new revision."""
    version = at.cluster.version()
    return PipeRecord(PIPE, version, TENANT, "rig", at.cluster.cell, "active", [(number + 2, 100)], {1: number + 2})


def _seconds_until(at: Stand, producer: Producer, reader: Consumer, mark: bytes) -> float:
    """Return the seconds until a message carries the mark, while producing one every 20 ms."""
    began = time.monotonic()
    while time.monotonic() < began + MEASURED_S:
        _produce(at, producer, 1)
        message = reader.poll(0.02)
        if message is not None and mark in (message.value() or b""):
            return time.monotonic() - began
    raise TimeoutError(f"no message with {mark!r} in {MEASURED_S:g} s")


def _run(at: Stand) -> LaneRun:
    """Produce events on ingest, then run a lane over them."""
    producer = Producer({"bootstrap.servers": at.cluster.kafka, "log_level": 3, "queue.buffering.max.messages": EVENTS})
    topic = at.cluster.topics["ingest"].name
    _produce(at, producer, EVENTS)
    return at.run_lane("process", topic, at.ends(topic) - at.committed("process", topic))


def _produce(at: Stand, producer: Producer, count: int) -> None:
    """Produce records as ingest writes them."""
    topic = at.cluster.topics["ingest"]
    now_us = time.time_ns() // 1_000
    for number in range(count):
        meta = MessageMeta(WIRE_VERSION, f"msg_{uuid.uuid4()}", PIPE, 1, "shop", now_us, now_us, now_us // MINUTE_US)
        producer.produce(
            topic.name, EVENT, partition=number % topic.partitions, headers=[(META_HEADER, encode_meta(meta))]
        )
    assert producer.flush(60) == 0


@contextmanager
def _reader(at: Stand) -> Iterator[Consumer]:
    """Yield a consumer of egress that begins at the current end."""
    topic = at.cluster.topics["egress"]
    consumer = Consumer({"bootstrap.servers": at.cluster.kafka, "group.id": "bench-idle", "log_level": 3})
    places = [TopicPartition(topic.name, partition) for partition in range(topic.partitions)]
    for place in places:
        place.offset = consumer.get_watermark_offsets(place, timeout=10)[1]
    consumer.assign(places)
    try:
        yield consumer
    finally:
        consumer.close()
