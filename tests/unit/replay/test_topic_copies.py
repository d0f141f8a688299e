"""Copies for topics: a task writes the records of a lane itself, and reports their delivery and its timing."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from dataplane.causes import Cause
from dataplane.ledger.bins import Bin
from dataplane.ledger.breakdown import Breakdown, Slice
from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import read_meta
from dataplane.ledger.replay_buckets import replay_bucket
from dataplane.ledger.sketch import LagSketch
from dataplane.names import output_topic
from dataplane.plan import compile_plan
from dataplane.replay import copies
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTaskRun
from dataplane.replay.topic_copies import CopyParts
from dataplane.runtime.lookups import NoLookupTables, TenantRows
from dataplane.schemas.types import SchemaType
from dataplane.spec import AvroEncoding, HttpDestination, TopicDestination, parse_pipe_spec
from dataplane.tables.records import DestinationRecord, RegisteredSchema
from dataplane.transmit.records.storage_records import record_maker
from tests.support.memory_kafka import MemoryKafkaProducer
from tests.support.memory_lane import MemoryMessage
from tests.support.replaying import EGRESS, PIPE, ReplayWorld, account_of, replay, task_of

FEED = output_topic(PIPE, "feed")
TOPIC: dict[str, Any] = {"type": "topic"}
HTTP: dict[str, Any] = {"type": "http", "url": "https://crm.example"}
SCHEMA = RegisteredSchema(
    7, 3, SchemaType.AVRO, "ab" * 32, '{"type":"record","name":"O","fields":[{"name":"n","type":"long"}]}'
)


def feed(schema: RegisteredSchema | None = None, **to: Any) -> DestinationRecord:
    return DestinationRecord(PIPE, "feed", 1, "active", TopicDestination(**to), [], schema=schema)


def ran(
    world: ReplayWorld, *topics: DestinationRecord, to: dict[str, Any] | None = None, rate_per_s: float = 1e9
) -> TaskResult:
    destinations = to or {"feed": TOPIC}
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations})
    end = len(world.kafka.logs["penstock.c1.ingest.g1", 0])
    task = task_of(replay(destinations=list(destinations), rate_per_s=rate_per_s), spec, end, topics=topics)
    rows = TenantRows(NoLookupTables(), "t")
    return ReplayTaskRun(task, compile_plan(spec), world.reader(), world.producer(), rows).run()


def written(world: ReplayWorld) -> list[MemoryMessage]:
    return [m for (topic, _), log in world.kafka.logs.items() if topic == FEED for m in log]


@pytest.mark.parametrize(
    "to", [{}, {"encoding": AvroEncoding("avro", "o", 3)}, {"encoding": AvroEncoding("confluent", "o", 3)}]
)
def test_record_equals_that_of_a_transmit_lane(to: dict[str, Any]):
    record = feed(SCHEMA, **to)
    direct, by_lane = ReplayWorld(), ReplayWorld()
    for world in (direct, by_lane):
        world.ingest(0, b'{"n":1}', key=b"p\0k")
        world.ingest(1, b'{"n":2}')
    ran(direct, record)
    ran(by_lane)
    assert (direct.copies(), written(by_lane)) == ([], [])
    maker = record_maker(record, "lake")  # of lanes; that of a topic reads only these parts of a Delivery
    expected = [
        maker(CopyParts(read_meta(m.headers()), m.headers()[1:], m.key(), m.value()))  # type: ignore[arg-type]
        for m in by_lane.copies()
    ]
    found = [(m.topic(), m.key(), m.value(), m.headers()) for m in written(direct)]
    assert sorted(found, key=str) == sorted((tuple(one) for one in expected), key=str)
    assert len(expected) == 2


def test_unit_is_delivered_when_its_record_is_stored_and_an_endpoint_gets_its_unit_by_a_lane():
    world = ReplayWorld()
    for number in range(3):
        world.ingest(number)
    result = ran(world, feed(), to={"feed": TOPIC, "crm": HTTP})
    assert {read_meta(m.headers()).destination for m in world.copies()} == {"crm"}
    assert (len(world.copies()), len(written(world))) == (3, 3)
    account = account_of(result.facts)
    assert (account.count(Bin.DELIVERED), account.count(Bin.QUEUED), account.count(Bin.LOST)) == (3, 3, 0)
    assert len(account.destinations["feed"][Bin.DELIVERED]) == 3
    assert result.units == {"feed": 3, "crm": 3}
    assert sum(result.ends.values()) == 3, "only the copies on egress wait for a lane"


def test_task_that_writes_to_topics_alone_leaves_no_backlog():
    world = ReplayWorld()
    world.ingest(0)
    assert ran(world, feed()).ends == {}


def test_timing_has_every_delivered_copy_in_the_account_and_bucket_of_the_replay():
    world = ReplayWorld()
    for number in range(copies.GROUP_UNITS * 2 + 1):
        world.ingest(number)
    result = ran(world, feed())
    assert {(one.pipe, one.node, one.bucket) for one in result.lags} == {
        ("rep_1", "transmit:feed", replay_bucket(999, 0))
    }
    by_way = {one.way: one for one in result.lags}
    assert {way: LagSketch.decode(one.sketch).count for way, one in by_way.items()} == dict.fromkeys(
        ("in", "out", "own"), copies.GROUP_UNITS * 2 + 1
    )
    breakdown = Breakdown.decode(by_way["out"].breakdown)
    assert breakdown.count == copies.GROUP_UNITS * 2 + 1
    assert Slice.PROCESS_QUEUE in breakdown._parts, "the time since ingest is in the breakdown"


def test_copy_that_its_schema_does_not_fit_is_dead_and_is_not_written():
    world = ReplayWorld()
    world.ingest(0, b'{"n":"one"}')
    world.ingest(1, b'{"n":1}')
    result = ran(world, feed(SCHEMA, encoding=AvroEncoding("avro", "o", 3)))
    assert FactKey("transform:feed", "dead", Cause.SCHEMA, 0) in result.facts
    account = account_of(result.facts)
    assert (account.count(Bin.DEAD), account.count(Bin.DELIVERED), len(written(world))) == (1, 1, 1)
    assert (result.asked, result.failed, result.units) == (2, 1, {"feed": 1})


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(feed(compacted=True), id="its keys have an order"),
        pytest.param(feed(encoding=AvroEncoding("avro", "o", 3)), id="its schema is missing"),
        pytest.param(
            DestinationRecord(PIPE, "feed", 2, "active", HttpDestination(url="https://new.example"), []),
            id="it has become an endpoint",
        ),
    ],
)
def test_copy_that_needs_a_lane_gets_one(record: DestinationRecord):
    world = ReplayWorld()
    world.ingest(0, key=b"p\0k")
    result = ran(world, record)
    assert (len(world.copies()), written(world), result.lags) == (1, [], [])
    assert not any(key.fact == Fact.DELIVERED for key in result.facts)


@pytest.mark.parametrize(
    ("rate_per_s", "events"),
    [
        pytest.param(2.5, 4, id="the next copy follows after 400 ms"),
        pytest.param(250.0, 150, id="a group of copies is full after 800 ms"),
    ],
)
def test_time_of_a_copy_ends_when_it_is_stored_also_at_a_low_rate(rate_per_s: float, events: int):
    world = ReplayWorld()
    for number in range(events):
        world.ingest(number)
    result = ran(world, feed(), rate_per_s=rate_per_s)
    (own,) = (LagSketch.decode(one.sketch) for one in result.lags if one.way == "own")
    assert own.count == events
    assert own.quantile(0.5) < 200_000


def test_stored_copies_and_their_bytes_are_counted_for_the_usage_of_the_pipe():
    world = ReplayWorld()
    for number in range(3):
        world.ingest(number, b'{"n":1}')
    result = ran(world, feed(), to={"feed": TOPIC, "crm": HTTP})
    assert (result.written, result.written_bytes) == (3, 3 * len(b'{"n":1}'))
    assert result.cpu_us > 0


GONE = KafkaError(KafkaError._UNKNOWN_TOPIC)


@pytest.mark.parametrize(
    ("refused", "silent", "unwritable"),
    [
        pytest.param({FEED: GONE}, set(), ("feed",), id="the topic is gone"),
        pytest.param({FEED: KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)}, set(), ("feed",), id="it refuses a record"),
        pytest.param({}, {FEED}, ("feed",), id="it stores none"),
        pytest.param({}, {FEED, EGRESS}, (), id="nothing is stored"),
        pytest.param({EGRESS: GONE}, set(), (), id="egress is gone"),
        pytest.param({FEED: KafkaError(KafkaError._FATAL, fatal=True)}, set(), (), id="the producer has failed"),
    ],
)
def test_records_that_are_not_stored_make_the_whole_task_count_as_not_done(
    refused: dict[str, KafkaError], silent: set[str], unwritable: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copies, "STORED_S", 0.2)
    world = ReplayWorld()
    world.ingest(0)
    world.refused, world.silent = refused, silent
    result = ran(world, feed(), to={"feed": TOPIC, "crm": HTTP})
    assert (result.reached, result.facts, result.lags, result.units) == (0, {}, [], {})
    assert (bool(result.error), result.unwritable) == (True, unwritable)
    if not refused:
        assert (result.error, written(world)) == ("no copy was stored within 0.2 s", [])


def test_topic_that_refuses_a_record_before_it_is_sent_is_unwritable(monkeypatch: pytest.MonkeyPatch):
    """The client raises at once for a topic of which it knows that it is forbidden or missing."""
    produce = MemoryKafkaProducer.produce

    def refuse(self: MemoryKafkaProducer, topic: str, *record: Any, **named: Any) -> None:
        if topic == FEED:
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        produce(self, topic, *record, **named)

    monkeypatch.setattr(MemoryKafkaProducer, "produce", refuse)
    world = ReplayWorld()
    world.ingest(0)
    result = ran(world, feed(), to={"feed": TOPIC, "crm": HTTP})
    assert (result.reached, result.unwritable, bool(result.error)) == (0, ("feed",), True)
