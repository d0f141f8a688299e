"""Leaks: pipes whose messages a drop injector in the Kafka client removes behind the ledger's back, plus copies.

The injector (tests/support/planted) and the copier, which writes to topics directly, know nothing of the ledger,
nor does it of them. As many records are copied as are dropped, so that a plain count finds nothing missing.
"""

import json
import random
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import format_position
from dataplane.names import PartitionKey, Purpose
from dataplane.tables.records import RedriveRecord
from dataplane.tables.redrives import encode_offsets
from loadgen.scripted import status
from tests.support.behaviours import once, throttled
from tests.support.kafka import admin_consumer
from tests.support.patience import until
from tests.support.plane import Plane

AT_ONCE: Final = 500  # events in one request
LAST: Final = 24  # requests of one event each: every partition gets some, behind the messages dropped there
HELD: Final[Purpose] = "held"
RETRY_TOPICS: Final[tuple[Purpose, ...]] = ("retry-in", "delay-10s", "retry-out")  # in order of travel
Places = dict[int, int]  # by partition


class Leak(NamedTuple):
    """One kind of leak: the topic that drops messages, their fact before that, and the node that loses them."""

    name: str
    stolen_at: Purpose
    node: str = "transmit:crm"
    after: Fact | None = None

    @property
    def copied_at(self) -> Purpose:
        """Return the topic that gets copies. On ingest's own topic a copy would be a message with its own position."""
        return "egress" if self.stolen_at == "ingest" else self.stolen_at


LEAKS: Final = (
    Leak("ingest", "ingest", "normalize"),
    Leak("egress", "egress"),
    Leak("retry-in", "retry-in", after=Fact.PARKED),
    Leak("delay", "delay-10s", after=Fact.PARKED),
    Leak("retry-out", "retry-out", after=Fact.PARKED),
    Leak("held", "retry-out", after=Fact.HELD),
)


class LeakingPipe:
    """Pipe with one destination and one leak; `honest` and `stolen` are the positions of its events."""

    def __init__(self, plane: Plane, leak: Leak, chance: random.Random, name: str) -> None:
        self._plane, self._leak, self._chance, self.name = plane, leak, chance, name
        path = f"/{name}"
        plane.receiver.answers[path] = once(throttled(None), status(204)) if leak.after is Fact.PARKED else 204
        self._destinations = {"crm": {"url": plane.receiver.url(path), "retry": {"local_tries": 1, "delays_s": [5]}}}
        self._key = plane.add_pipe(name, self._destinations)
        if leak.after is Fact.HELD:
            plane.cluster.publish_destinations(name, self._destinations, "paused")
        self._since = {purpose: self._ends(purpose) for purpose in (HELD, leak.copied_at)}
        self.honest: set[str] = set()
        self.stolen: set[str] = set()
        self._copied_to: Places = {}
        if leak.after is Fact.HELD:
            self._until_it_holds()

    def send(self, *, stolen: int, honest: int) -> None:
        """Send so many events of each kind, in random order."""
        marks: list[dict[str, str]] = [{"stolen-at": str(self._leak.stolen_at)}] * stolen + [{}] * honest
        self._chance.shuffle(marks)
        events = [{**mark, "n": number} for number, mark in enumerate(marks)]
        for first in range(0, len(events), AT_ONCE):
            self._post(events[first : first + AT_ONCE])

    def send_the_last(self) -> None:
        """Send events behind everything dropped, so that lanes pass its offsets; then release what is held."""
        self._until_all_have_come_so_far()
        for number in range(LAST):
            self._post([{"last": number}])
        if self._leak.after is Fact.HELD:
            self._until_all_have_come_so_far()
            self._release()

    def copy_as_many(self) -> None:
        """Produce one copy of an honest record for each dropped message: the lane reads as many as were sent."""
        topic = self._plane.cluster.topics[self._leak.copied_at].name
        until(lambda: self.honest <= self._read(self._leak.copied_at).keys(), f"{self.name}: all are on {topic}", 60)
        known = self._read(self._leak.copied_at)
        records = [known[position] for position in sorted(self.honest)]
        producer = self._plane.cluster.producer
        for record in self._chance.choices(records, k=len(self.stolen)):
            producer.produce(topic, record.value(), record.key(), record.partition(), headers=record.headers())
            producer.poll(0)
        assert producer.flush(20) == 0
        self._copied_to = self._ends(self._leak.copied_at)

    def check(self) -> None:
        """Check that only the dropped messages are lost, at the right node, and the rest is delivered, each once."""
        self._until_copies_are_settled()
        whole = self._plane.settled(self.name, self.honest | self.stolen, 120)
        assert whole.lost_at() == {self._leak.node: self.stolen}, f"{self.name}: {whole}"
        assert whole.at("crm", Bin.DELIVERED) == self.honest
        taken = [one.position for one in self._plane.receiver.got[f"/{self.name}"] if one.answered == 204]
        assert sorted(taken) == sorted(self.honest), "each is delivered once, whatever was copied"
        assert not whole.unacked

    def _until_copies_are_settled(self) -> None:
        """Wait until the lanes have settled the copies, also on the topics to which a retried copy moves."""
        copied_at = self._leak.copied_at
        later = RETRY_TOPICS[RETRY_TOPICS.index(copied_at) + 1 :] if copied_at in RETRY_TOPICS else ()
        for purpose in (copied_at, *later):
            ends = self._copied_to if purpose == copied_at else self._ends(purpose)
            topic = self._plane.cluster.topics[purpose].name
            until(partial(self._is_passed, topic, ends), f"{self.name}: copies on {topic} are settled", 120)

    def _is_passed(self, topic: str, ends: Places) -> bool:
        self._plane.books.refresh()
        return all(self._plane.books.passed(topic, partition) >= end for partition, end in ends.items())

    def _until_all_have_come_so_far(self) -> None:
        if fact := self._leak.after:
            everything = self.honest | self.stolen
            until(lambda: everything <= self._known(fact) | self._known(Fact.DELIVERED), f"{self.name}: {fact}", 60)

    def _until_it_holds(self) -> None:
        """Send events until the lanes know that the destination is paused."""
        while not self._known(Fact.HELD):
            self._post([{"first": len(self.honest)}])
            self._until_all_have_come_so_far()

    def _known(self, fact: Fact) -> set[str]:
        self._plane.books.refresh()
        return self._plane.books.facts(self.name).get(("transmit:crm", str(fact)), set())

    def _release(self) -> None:
        cluster, offsets = self._plane.cluster, dict[PartitionKey, BitMap64]()
        for record in self._read(HELD).values():
            offsets.setdefault((record.topic(), record.partition()), BitMap64()).add(record.offset())
        cluster.publish_destinations(self.name, self._destinations)
        places, name, rate_per_s = encode_offsets(offsets), self.name, 10_000.0
        move = (f"move-{name}", cluster.version(), cluster.cell, name, "crm")
        cluster.publish(RedriveRecord(*move, "release", places, rate_per_s, "running"))

    def _post(self, events: list[dict[str, Any]]) -> None:
        code, _, text = self._plane.post(self._key, json.dumps(events, separators=(",", ":")).encode())
        assert code == 202
        for event, item in zip(events, json.loads(text)["items"], strict=True):
            (self.stolen if "stolen-at" in event else self.honest).add(item["position"])

    def _ends(self, purpose: Purpose) -> Places:
        topic = self._plane.cluster.topics[purpose]
        with _reader(self._plane) as reader:
            places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
            return {place.partition: reader.get_watermark_offsets(place, timeout=10)[1] for place in places}

    def _read(self, purpose: Purpose) -> dict[str, Message]:
        """Return the pipe's records on a topic by position."""
        topic = self._plane.cluster.topics[purpose].name
        found = {}
        for record in _records(self._plane, topic, self._since[purpose], self._ends(purpose)):
            meta = read_meta(record.headers() or [])
            if meta.pipe == self.name:
                found[format_position(meta.position)] = record
        return found


def _reader(plane: Plane) -> Consumer:
    told = {"bootstrap.servers": plane.broker.address, "group.id": "rig-meter", "log_level": 3}
    return admin_consumer({**told, "enable.auto.commit": False})


def _records(plane: Plane, topic: str, since: Places, ends: Places) -> Iterator[Message]:
    with _reader(plane) as reader:
        for partition, end in ends.items():
            offset = since[partition]
            reader.assign([TopicPartition(topic, partition, offset)])
            while offset < end:
                for record in reader.consume(min(AT_ONCE, end - offset), 5):
                    assert record.error() is None
                    offset = record.offset() + 1
                    yield record
