"""Admission of a new pipe by shares of its keys, on a real broker, with a lane killed during a release."""

import inspect
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin
from dataplane.ledger.meta import read_meta
from dataplane.names import PartitionKey
from dataplane.process.gate import OrderGate
from dataplane.tables.records import PipeRecord, RedriveRecord
from dataplane.tables.redrives import REDRIVE_PREFIX, decode_progress, encode_offsets
from tests.support.cluster import TENANT
from tests.support.kafka import admin_consumer
from tests.support.lane_plane import LanePlane, Step
from tests.support.patience import until

PIPE = "newcomer"
KEYS = 60
PER_S = 300


def opening() -> Step:
    """Return the step at which a lot opens, before its returned messages and those kept behind are stored."""
    lines, first = inspect.getsourcelines(OrderGate.returns)
    return "process/gate.py", first + next(n for n, line in enumerate(lines) if "self._opened[lot]" in line)


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[LanePlane]:
    plane = LanePlane(tmp_path, doomed={"process": opening()})
    try:
        plane.wait_ready()
        yield plane
    finally:
        plane.close()


class Customer(threading.Thread):
    """Sender of numbered events of many keys at a rate, until it is stopped."""

    def __init__(self, plane: LanePlane, key: str) -> None:
        super().__init__()
        self._plane, self._key = plane, key
        self._done = threading.Event()
        self.positions: set[str] = set()

    def run(self) -> None:
        for n in count(0, 15):
            events = [{"customer": f"c{m * 7 % KEYS}", "n": m} for m in range(n, n + 15)]
            status, _, text = self._plane.post(self._key, json.dumps(events).encode())
            assert status == 202
            self.positions |= {item["position"] for item in json.loads(text)["items"]}
            if self._done.wait(15 / PER_S):
                return

    def stop(self) -> None:
        self._done.set()
        self.join()


class Releaser(threading.Thread):
    """Control plane's part: it reads held messages and releases the admitted ones, one release at a time."""

    def __init__(self, plane: LanePlane) -> None:
        super().__init__(daemon=True)
        self._cluster = plane.cluster
        topics = self._cluster.topics
        read = [(topics["held"].name, number) for number in range(plane.cluster.partitions)]
        self._consumer: Any = admin_consumer(
            {"bootstrap.servers": plane.broker.address, "group.id": "rig-releaser", "log_level": 3}
        )
        self._consumer.assign([TopicPartition(*place, 0) for place in (*read, (topics["signals"].name, 0))])
        self._waiting: dict[int, dict[PartitionKey, BitMap64]] = defaultdict(lambda: defaultdict(BitMap64))
        self._done = threading.Event()
        self._under_way = ""
        self.admitted = self.held = self.moves = 0

    def admit(self, share: int) -> None:
        version, cell = self._cluster.version(), self._cluster.cell
        self._cluster.publish(
            PipeRecord(PIPE, version, TENANT, "rig", cell, "active", [(1, 100)], admitted=share, by_shares=True)
        )
        self.admitted = share

    @property
    def left(self) -> int:
        """Return the number of admitted messages that have not returned."""
        sets = [places for share, places in list(self._waiting.items()) if share <= self.admitted]
        return sum(len(found) for places in sets for found in list(places.values())) + bool(self._under_way)

    def run(self) -> None:
        while not self._done.is_set():
            for message in self._consumer.consume(500, 0.2):
                if message.error() is None:
                    self._hear(message)
            if not self._under_way and self.left:
                self._move()

    def _hear(self, message: Any) -> None:
        key = (message.key() or b"").decode("utf-8", "replace")
        if message.topic() == self._cluster.topics["held"].name:
            self.held += 1
            place = (message.topic(), message.partition())
            self._waiting[read_meta(message.headers()).share][place].add(message.offset())
        elif key.startswith(REDRIVE_PREFIX) and decode_progress(message.value()).done:
            self._under_way = "" if key.endswith(self._under_way) else self._under_way

    def _move(self) -> None:
        places: dict[PartitionKey, BitMap64] = defaultdict(BitMap64)
        for share in [share for share in self._waiting if share <= self.admitted]:
            for place, found in self._waiting.pop(share).items():
                places[place] |= found
        self.moves += 1
        self._under_way = f"m-{self.moves}"
        cluster = self._cluster
        offsets = encode_offsets(places)
        version, rate = cluster.version(), PER_S * 4.0
        cluster.publish(
            RedriveRecord(self._under_way, version, cluster.cell, PIPE, "", "release", offsets, rate, "running")
        )

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._consumer.close()


@pytest.mark.timeout(720)
def test_all_messages_are_delivered_in_the_order_of_their_keys(plane: LanePlane):
    destination = {"url": plane.receiver.url("/new"), "ordered": True}
    key = plane.add_pipe(PIPE, {"crm": destination}, sources={"shop": {"key": "customer"}})
    releaser = Releaser(plane)
    releaser.admit(20)
    releaser.start()
    customer = Customer(plane, key)
    customer.start()
    until(lambda: releaser.held > PER_S, "what lies beyond the share is held", 30)
    until(lambda: plane.receiver.got["/new"], "what lies within it is delivered", 30)

    releaser.admit(50)
    until(lambda: plane.is_dead("process"), "the lane is killed while some comes back", 60)
    plane.start_again("process")
    until(lambda: not releaser.left, "what 50 % admits has come back", 60, seen=lambda: releaser.left)

    releaser.admit(100)
    until(lambda: not releaser.left, "all has come back", 60, seen=lambda: releaser.left)

    def none_is_held() -> bool:
        before = releaser.held
        time.sleep(2)  # the customer continues: new events are not held
        return releaser.held == before and not releaser.left

    until(none_is_held, "nothing is held any more", 60, seen=lambda: (releaser.held, releaser.left))
    customer.stop()
    whole = plane.settled(PIPE, customer.positions, 60)
    releaser.stop()
    assert whole.at("crm", Bin.DELIVERED) == customer.positions == whole.acked | whole.unacked
    assert whole.units(Bin.DELIVERED, "crm") == len(customer.positions)
    assert whole.lost() == 0
    assert not whole.upstream(Bin.HELD)
    firsts: dict[str, dict[int, None]] = defaultdict(dict)
    for received in plane.receiver.got["/new"]:
        event = json.loads(received.body)
        firsts[event["customer"]].setdefault(event["n"])
    assert sum(map(len, firsts.values())) == len(customer.positions)
    assert all(list(seen) == sorted(seen) for seen in firsts.values()), "a message was overtaken"
