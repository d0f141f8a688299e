"""Sources of type penstock: which operational events a feed takes, and where it begins and continues."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition

from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.feed import Intake, decoded
from dataplane.ingest.feeds import wanted
from dataplane.ingest.operational_feed import OperationalFeed, OperationalFeedKey, event_of, next_offset
from dataplane.names import OPERATIONAL_TOPIC
from dataplane.spec import PenstockSource, parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord, PlanRecord

WANT = OperationalFeedKey("pipe_siem", "events", "ten_a", ("penstock.alert.*",))


def value(number: int = 1, type_: str = "penstock.alert.opened", tenant: str = "ten_a", pipe: str = "pipe_a") -> bytes:
    event = {
        "id": f"evt_{number}",
        "type": type_,
        "time": "2026-11-29T06:00:00+00:00",
        "tenant": tenant,
        "pipe": {"id": pipe, "name": "orders"},
        "data": {"cause": "http-4xx"},
    }
    return json.dumps(event).encode()


class Record:
    """Record as a Kafka consumer returns it."""

    def __init__(self, offset: int, value: bytes) -> None:
        self._offset, self._value = offset, value

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return OPERATIONAL_TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value


class Group:
    """Consumer of the source's group, with the records of one read."""

    def __init__(self, *records: Record, committed: int = -1001, low: int = 0, high: int = 9) -> None:
        self.records, self.stored, self.ends = list(records), committed, (low, high)
        self.commits: list[int] = []
        self.assigned: list[int] = []

    def consume(self, _most: int, _timeout: float) -> list[Record]:
        return self.records

    def committed(self, partitions: list[TopicPartition], **_limits: Any) -> list[TopicPartition]:
        return [TopicPartition(one.topic, one.partition, self.stored) for one in partitions]

    def get_watermark_offsets(self, _partition: Any, **_limits: Any) -> tuple[int, int]:
        return self.ends

    def commit(self, *, offsets: list[TopicPartition], **_modes: Any) -> None:
        self.commits.extend(one.offset for one in offsets)

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned.extend(one.offset for one in partitions)


class Offers:
    """Intake that records the ids of the events offered, and answers with the next of `statuses`, then with 202."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.ids: list[str] = []

    async def take(self, _want: Any, events: Iterable[ReceivedEvent], _count: int) -> Sequence[int]:
        ids = [one.value["id"] for one in events]
        self.ids.extend(ids)
        return [self.statuses.pop(0) if self.statuses else 202] * len(ids)

    @property
    def intake(self) -> Intake:
        return Intake(self.take, lambda _tenant: 100, 10_000)


def id_in(want: OperationalFeedKey, number: int) -> str:
    event = event_of(value(number), want)
    assert event is not None
    assert event.origin is not None
    return event.origin.id


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.ingest.feed.AGAIN_S", 0.01)


def test_feed_runs_for_the_newest_revision_with_traffic():
    made = ControlTable()
    for revision, events in ((1, ["penstock.*"]), (2, ["penstock.alert.*"])):
        source = {"type": "penstock", "events": events}
        spec = {"sources": {"web": {}, "events": source}, "destinations": {"siem": {"url": "https://siem.example/"}}}
        made.apply(PlanRecord("pipe_siem", revision, parse_pipe_spec(spec)))
    made.apply(PipeRecord("pipe_siem", 1, "ten_a", "siem", "c1", "active", [(1, 0), (2, 100)]))
    assert wanted(made, {}) == {WANT}
    made.apply(PipeRecord("pipe_siem", 2, "ten_a", "siem", "c1", "closed", [(2, 100)]))
    assert wanted(made, {}) == set()


def test_events_are_stamped_only_for_revisions_that_want_the_same():
    assert WANT.reads(PenstockSource(("penstock.alert.*",)))
    assert not WANT.reads(PenstockSource())


def test_event_has_the_key_of_its_pipe_its_own_time_and_the_published_body():
    event = event_of(value(), WANT)
    assert event is not None
    assert event.origin is not None
    assert (event.body, event.origin.key, event.time) == (value(), "pipe_a", "2026-11-29T06:00:00+00:00")
    assert next(decoded([event], 10_000)).value["data"] == {"cause": "http-4xx"}


def test_event_that_was_published_twice_has_the_same_id_in_one_source_only():
    first, again, other = id_in(WANT, 1), id_in(WANT, 1), id_in(WANT, 2)
    elsewhere = id_in(WANT._replace(pipe="pipe_b"), 1)
    assert again == first
    assert len({first, other, elsewhere}) == 3


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(value(tenant="ten_b"), id="of another tenant"),
        pytest.param(value(tenant="ten_a2"), id="of a tenant with a longer id"),
        pytest.param(value(pipe="pipe_siem"), id="about the pipe of the source"),
        pytest.param(value(type_="penstock.pipe.paused"), id="of a type that is not wanted"),
    ],
)
def test_event_for_others_is_left_out(given: bytes):
    assert event_of(given, WANT) is None


@pytest.mark.parametrize("given", [b"", b"{", b"null", b'{"id": "evt_1", "tenant": "ten_a"}'])
def test_value_without_a_tenant_or_a_pipe_is_refused(given: bytes):
    with pytest.raises(msgspec.DecodeError):
        event_of(given, WANT)


def test_offsets_are_committed_after_every_wanted_event_was_taken():
    offers = Offers(503)
    group = Group(Record(4, value(1)), Record(5, value(2, tenant="ten_b")), Record(6, b"{"), Record(7, value(3)))
    asyncio.run(OperationalFeed(WANT, "", offers.intake).turn(group))
    assert offers.ids == ["evt_1", "evt_3", "evt_1", "evt_3"], "the first attempt was refused"
    assert group.commits == [8]


def test_offsets_of_events_for_others_are_committed_too():
    offers, group = Offers(), Group(Record(4, value(tenant="ten_b")))
    asyncio.run(OperationalFeed(WANT, "", offers.intake).turn(group))
    assert (offers.ids, group.commits) == ([], [5])


@pytest.mark.parametrize(
    ("committed", "begins_at", "commits"),
    [
        pytest.param(-1001, 9, [9], id="a new source begins at the end"),
        pytest.param(6, 6, [], id="another reader continues"),
        pytest.param(2, 5, [5], id="retention has deleted what follows the offset"),
        pytest.param(12, 5, [5], id="the topic was recreated"),
    ],
)
def test_source_begins_and_continues_at_an_offset_that_exists(committed: int, begins_at: int, commits: list[int]):
    assert next_offset(committed, 5, 9) == begins_at
    group = Group(committed=committed, low=5, high=9)
    OperationalFeed(WANT, "", Offers().intake)._assigned(group, [TopicPartition(OPERATIONAL_TOPIC, 0)])
    assert (group.assigned, group.commits) == ([begins_at], commits)
