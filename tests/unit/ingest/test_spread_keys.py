"""Events of a spread key are stored on all partitions, with their key; those of other keys stay on one."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dataplane.ingest import replica as module
from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.replica import IngestReplica
from dataplane.ingest.stamp import key_bytes, partition_of
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import CellRecord, PipeRecord, PlanRecord, Record, TopicRecord
from tests.unit.ingest.test_ack_after_delivery_report import with_replica

CELL = CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")})
KEY = key_bytes("p", "acme")


class InTurn:
    """Spreader that gives each request the next partition."""

    def __init__(self) -> None:
        self._next: Iterator[int] = count()

    def at(self, _now_us: int, partitions: int) -> int:
        return next(self._next) % partitions


class StoredPlace(NamedTuple):
    """Partition and offset of a delivery report."""

    in_partition: int
    at: int

    def partition(self) -> int:
        return self.in_partition

    def offset(self) -> int:
        return self.at


class PlacingProducer:
    """Producer that stores each record on the given partition, and remembers key and partition of each event."""

    def __init__(self) -> None:
        self.places: list[tuple[bytes | None, int]] = []
        self._due: list[tuple[Callable[[None, StoredPlace], None], StoredPlace]] = []

    def produce(self, topic: str, _value: bytes, *record: Any, **_named: Any) -> None:
        if topic == "in":
            key, partition, report = record
            self._due.append((report, StoredPlace(partition, len(self.places))))
            self.places.append((key, partition))

    def poll(self, _wait_s: float) -> None:
        while self._due:
            report, place = self._due.pop()
            report(None, place)

    def flush(self, _wait_s: float) -> int:
        return 0


def plan(revision: int, **source: Any) -> PlanRecord:
    destinations = {"crm": {"type": "http", "url": "http://crm.example/"}}
    spec = parse_pipe_spec({"sources": {"shop": {"key": "id", **source}}, "destinations": destinations})
    return PlanRecord("p", revision, spec)


@pytest.mark.parametrize(
    ("revision", "partitions"),
    [
        pytest.param(2, [0, 1, 2, 3], id="spread"),
        pytest.param(1, [partition_of(KEY or b"", 4)] * 4, id="not spread"),
    ],
)
def test_revision_decides_where_the_events_of_a_key_are_stored(
    revision: int, partitions: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    producer = PlacingProducer()
    monkeypatch.setattr(module, "ingest_producer", lambda *_: producer)

    async def story(replica: IngestReplica) -> None:
        replica._spread = InTurn()  # type: ignore[assignment]  # a double with a fixed turn
        pipe = PipeRecord("p", 1, "t", "orders", "c1", "active", [(revision, 100)])
        records: list[Record] = [CELL, plan(1), plan(2, spread_key=True), pipe]
        for record in records:
            replica.table.apply(record)
        route = replica.routes.lead("p", "shop")
        for _ in range(4):
            (stored,) = await replica.take(route, [ReceivedEvent(b"{}", {"id": "acme"}, [])])
            assert stored.status == 202

    with_replica(tmp_path, story)
    assert producer.places == [(KEY, partition) for partition in partitions]
