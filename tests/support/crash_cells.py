"""Cells for the crash campaign: each runs one lane in a plain process, on a shared broker and receiver."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from confluent_kafka import KafkaException, TopicPartition
from pyroaring import BitMap64

from dataplane.causes import Cause
from dataplane.ledger.deadletter import CAUSE_HEADER, DeadLetterReason, dead_headers
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta, read_meta
from dataplane.ledger.units import format_position, position_of
from dataplane.names import INPUTS_OF, WIRE_VERSION, LaneKind, Purpose, lane_group, output_topic, transmit_node
from dataplane.tables.records import RedriveRecord
from dataplane.tables.redrives import encode_offsets
from dataplane.tables.signals import SIGNAL_VERSION, BreakerState, DestinationSignal, encode_signal, signal_key
from localbox.settings import ROOT
from localbox.testing_kafka import role_env
from tests.support.cluster import Cluster
from tests.support.kafka import admin_consumer
from tests.support.lane_server import Ended, Order
from tests.support.patience import Patience, until
from tests.support.steps import Step

KILLED: Final = -9
FAILED: Final = (3, 4)  # exit codes: with an outcome, by an exception
NOW_US: Final = time.time_ns() // 1_000


class LaneServer:
    """Process that forks lanes, and their exit codes. `environment`: variables besides the inherited ones."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        path = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform")))}
        env = os.environ | path | dict(environment or {}) | role_env("cells")
        command = [sys.executable, "-m", "tests.support.lane_server"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ended: dict[str, int] = {}
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="lane-server", daemon=True)
        self._thread.start()

    def start(self, order: Order) -> None:
        """Start a lane."""
        assert self._process.stdin is not None
        self.ended.pop(order.name, None)
        with self._writing:
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """Kill the lanes that still run."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._thread.join(5)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            ended = msgspec.json.decode(line, type=Ended)
            self.ended[ended.name] = ended.code


class CrashCell:
    """One cell with one partition a topic. Its lane is stopped by a record, as in production."""

    def __init__(self, kafka: str, name: str, kind: LaneKind, var: Path, server: LaneServer) -> None:
        self.cluster = Cluster(kafka, cell=name, partitions=1)
        self.cluster.make_cell_topics([kind])
        self.cluster.publish_cell()
        self.kind = kind
        self.name = name
        self.sent = 0
        self._server = server
        self._var = var
        var.mkdir(parents=True)
        self._runs = 0
        self._first = INPUTS_OF[kind][0] if kind != "retrier" else None  # its messages have no attempt yet
        self.last_offsets = BitMap64()
        inputs = [self.cluster.topics[purpose].name for purpose in INPUTS_OF[kind]]
        self._inputs = [TopicPartition(topic, 0) for topic in inputs]
        group = lane_group(name, kind)
        self._group = admin_consumer({"bootstrap.servers": kafka, "group.id": group, "log_level": 0})

    def send(
        self,
        purpose: Purpose,
        pipe: str,
        destination: str,
        count: int,
        *,
        body: bytes = b'{"n":1}',
        due_s: float = 0,
        key: bytes | None = None,
        minutes: int = 1,
    ) -> set[str]:
        """Put so many messages for a destination on a topic, due so far from now; return their positions.

        `minutes`: the number of buckets over which they alternate.
        """
        positions = set()
        self.last_offsets = BitMap64()
        for number in range(count):
            position = position_of(1, 0, self.sent)
            self.sent += 1
            minute = NOW_US // 60_000_000 - number % minutes
            meta = MessageMeta(WIRE_VERSION, f"{pipe}.{self.sent}", pipe, 1, "shop", NOW_US, NOW_US, minute)
            meta.position, meta.destination = 0 if purpose == "ingest" else position, destination
            if purpose != self._first:
                meta.attempt, meta.first_us = 1, NOW_US
                meta.not_before_us = time.time_ns() // 1_000 + int(due_s * 1_000_000)
            headers: Headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]
            if purpose == "dead":
                headers = dead_headers(
                    meta, headers, DeadLetterReason(transmit_node(destination), "rejected", "returned 400")
                )
            self._produce(purpose, body, headers, key)
            positions.add(format_position(position))
        assert self.cluster.producer.flush(20) == 0
        return positions

    def _produce(self, purpose: Purpose, body: bytes, headers: Headers, key: bytes | None) -> None:
        topic = self.cluster.topics[purpose].name
        self.cluster.producer.produce(topic, body, key, partition=0, headers=headers, on_delivery=self._stored_at)

    def _stored_at(self, error: Any, message: Any) -> None:
        assert error is None
        self.last_offsets.add(message.offset())

    def ask_for(self, what: Literal["release", "redrive"], pipe: str, destination: str) -> None:
        """Request that the messages sent last are released or redriven."""
        topic = self.cluster.topics["held" if what == "release" else "dead"].name
        offsets = encode_offsets({(topic, 0): self.last_offsets})
        move, version = f"{pipe}-{destination}", self.cluster.version()
        record = RedriveRecord(move, version, self.name, pipe, destination, what, offsets, 1_000.0, "running")
        self.cluster.publish(record)

    def tell_breaker(self, pipe: str, destination: str, breaker: BreakerState) -> None:
        """Publish a retry lane's signal about a destination."""
        now_us = time.time_ns() // 1_000
        until_us = now_us + 60_000_000 if breaker == "open" else 0
        signal = DestinationSignal(
            SIGNAL_VERSION, self.name, "transmit-retry-0", pipe, destination, now_us, breaker, until_us
        )
        signal = msgspec.structs.replace(signal, of_version=self.cluster.version())
        topic = self.cluster.topics["signals"].name
        self.cluster.producer.produce(topic, encode_signal(signal), key=signal_key(signal))
        assert self.cluster.producer.flush(20) == 0

    def send_junk(self, purpose: Purpose) -> None:
        """Put a record without our envelope on a topic."""
        self.sent += 1
        self.cluster.producer.produce(self.cluster.topics[purpose].name, b"junk", partition=0, headers=[("x", b"y")])

    def start(self, step: Step | None = None, *, raises: str = "", nth: int = 1, seen: Path | None = None) -> None:
        """Start the lane, with a step at which it is killed or raises an exception."""
        self._runs += 1
        env = self.cluster.env(str(self._var), 1)
        order = Order(
            self.name, self.name, self.kind, self.incarnation, env, nth=nth, seen=str(seen or ""), raises=raises
        )
        order.kill_at = step.place if step else None
        self._server.start(order)

    @property
    def incarnation(self) -> str:
        """Return the incarnation of the lane that was started last."""
        return f"run-{self._runs}"

    def code(self) -> int | None:
        """Return the exit code of the lane, None while it runs."""
        return self._server.ended.get(self.name)

    def is_done(self) -> bool:
        """Return True if everything on its inputs is committed."""
        known = self._group.committed(self._inputs, timeout=10)
        return all(place.offset >= self._end(place.topic) for place in known)

    def committed(self) -> int:
        """Return the committed offset of its first input."""
        return int(self._group.committed(self._inputs[:1], timeout=10)[0].offset)

    def stop(self) -> None:
        """Drain the lane and assert that it ends without an error."""
        self.cluster.stop(self.incarnation)
        until(lambda: self.code() is not None, f"{self.name} drains", 120)
        assert self.code() == 0, (self._var / "lane.log").read_text()[-3_000:]

    def stored(self, purpose: Purpose, pipe: str) -> Counter[str]:
        """Count each position of a pipe on one of its topics."""
        return Counter(format_position(meta.position) for meta in self.read(purpose) if meta.pipe == pipe)

    def close(self) -> None:
        """Close the group's consumer."""
        self._group.close()

    def _end(self, topic: str) -> int:
        patience = Patience(30)
        while True:
            try:
                return int(self._group.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
            except KafkaException:  # a new topic may have no known leader yet
                if patience.is_over:
                    raise
                time.sleep(0.2)

    def read(self, purpose: Purpose, below: int | None = None) -> Iterator[MessageMeta]:
        """Yield the messages on one of its topics, up to an offset if given, with positions as a lane has them."""
        for message in self._messages(self.cluster.topics[purpose].name, below):
            with contextlib.suppress(KeyError):  # junk
                meta = read_meta(message.headers() or [])
                meta.position = meta.position or position_of(1, 0, message.offset())
                yield meta

    def dead_by_bug(self, pipe: str) -> set[str]:
        """Return the positions of a pipe's dead letters for which a lane could not build a request."""
        found = set()
        for message in self._messages(self.cluster.topics["dead"].name):
            headers = message.headers() or []
            if dict(headers).get(CAUSE_HEADER) == Cause.REQUEST_INVALID.encode():
                meta = read_meta(headers)
                if meta.pipe == pipe:
                    found.add(format_position(meta.position))
        return found

    def written(self, pipe: str, destination: str) -> list[tuple[str, bytes]]:
        """Return position and body of each record on the topic of a destination."""
        found = self._messages(output_topic(pipe, destination))
        return [(dict(one.headers())["penstock-position"].decode(), one.value()) for one in found]

    def _messages(self, topic: str, below: int | None = None) -> Iterator[Any]:
        offset, end = 0, self._end(topic) if below is None else below
        reader = admin_consumer({"bootstrap.servers": self.cluster.kafka, "group.id": "rig-read", "log_level": 0})
        with contextlib.closing(reader):
            reader.assign([TopicPartition(topic, 0, 0)])
            while offset < end:
                message = reader.poll(10)
                assert message is not None
                assert message.error() is None
                offset = message.offset() + 1
                yield message
