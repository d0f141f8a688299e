"""One task of a replay: it selects events, sends the same units as a process lane, and accounts for each."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import ACKED, EXPLODED, INGEST, LOG, PROCESS, Fact, FactKey
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.replay_buckets import replay_bucket
from dataplane.ledger.units import position_of
from dataplane.plan import compile_plan
from dataplane.record_limits import BODY_BYTES
from dataplane.replay import copies
from dataplane.replay import task as task_module
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTaskRun
from dataplane.runtime.lookups import NoLookupTables, TenantRows
from dataplane.spec import PipeSpec
from dataplane.tables.records import ReplayRecord
from tests.support import process_lane
from tests.support.memory_kafka import MemoryKafkaProducer
from tests.support.replaying import HOUR_US, NOW_US, PARTITIONS, ReplayWorld, account_of, replay, task_of

NAMES = ("crm", "erp", "log")
ROUTES = {
    "rules": [
        {"when": "body.lines.to == 'both'", "to": ["crm", "erp"]},
        {"when": "body.lines.to == 'crm'", "to": ["crm"]},
        {"when": "body.lines.to == 'log'", "to": ["log"]},
    ]
}
MANY: dict[str, Any] = {
    "destinations": NAMES,
    "normalize": [{"op": "filter", "when": "body.keep"}, {"op": "explode", "path": "lines"}],
    "routes": ROUTES,
    "transform": {
        "erp": [{"op": "filter", "when": "body.lines.n > 0"}],
        "crm": [{"op": "cast", "path": "lines.n", "to": "int"}],
    },
}


def spec_of(**fields: Any) -> PipeSpec:
    return process_lane.plan(2, **fields).spec


def ran(world: ReplayWorld, record: ReplayRecord, spec: PipeSpec, producer: Any = None, **where: Any) -> TaskResult:
    made = None if record.rehearsal else world.producer() if producer is None else producer
    end = where.pop("end", len(world.kafka.logs["penstock.c1.ingest.g1", where.get("partition", 0)]))
    rows = TenantRows(NoLookupTables(), "t")
    task = task_of(record, spec, end, **where)
    return ReplayTaskRun(task, compile_plan(task.spec, task.salt), world.reader(), made, rows).run()


def metas(world: ReplayWorld) -> list[MessageMeta]:
    return [read_meta(one.headers()) for one in world.copies()]


def test_copy_equals_the_record_of_a_process_lane_but_for_its_replay(tmp_path: Path):
    bodies = [
        b'{"keep":true,"lines":[{"to":"both","n":"1"},{"to":"crm","n":2}]}',
        b'{"keep":true,"lines":[{"to":"both","n":3}]}',
    ]
    world = ReplayWorld()
    for number, body in enumerate(bodies):
        world.ingest(number, body, partition=3, key=b"p\0k" if number else None)
    plan = process_lane.plan(2, **MANY)
    lane = process_lane.opened(tmp_path, plan)
    for message in world.kafka.logs["penstock.c1.ingest.g1", 3]:
        meta = msgspec.structs.replace(read_meta(message.headers()), revision=2)
        headers = [(message.headers()[0][0], msgspec.msgpack.encode(meta)), *message.headers()[1:]]
        lane.take(type(message)(3, message.offset(), message.value(), headers, message.key(), message.topic()))
    ran(world, replay(destinations=["crm", "erp"]), plan.spec, partition=3)
    by_lane = [
        (one["key"], one["value"], one["headers"][1:], _bare(read_meta(one["headers"])))
        for one in process_lane.egress(lane)
    ]
    by_replay = [(m.key(), m.value(), m.headers()[1:], _bare(read_meta(m.headers()))) for m in world.copies()]
    assert sorted(by_replay, key=str) == sorted(by_lane, key=str)
    assert len(by_lane) == 4
    assert {meta.replay for meta in metas(world)} == {"rep_1"}
    assert {meta.bucket for meta in metas(world)} == {replay_bucket(999, 0)}
    keyless = {m.partition() for m in world.copies() if m.key() is None}
    assert keyless == {one["partition"] for one in process_lane.egress(lane) if one["key"] is None} == {3}


def _bare(meta: MessageMeta) -> MessageMeta:
    """Return the envelope without what a copy has of its own; the memory lane has no times of the broker."""
    return msgspec.structs.replace(meta, replay="", bucket=0, stopwatch=b"", stored_ms=0)


def test_copy_keeps_times_and_notes_when_the_event_was_stored():
    world = ReplayWorld()
    world.ingest(1, partition=2, ingest_time_us=NOW_US + 7)
    ran(world, replay(), spec_of(), partition=2)
    (meta,) = metas(world)
    assert (meta.ingest_time_us, meta.event_time_us) == (NOW_US + 7, NOW_US - 5)
    assert (meta.position, meta.stored_ms) == (position_of(1, 2, 0), NOW_US // 1_000)
    assert (meta.revision, meta.attempt, meta.id) == (2, 0, "m1")
    assert meta.stopwatch


def test_source_with_a_spread_key_uses_the_partition_of_the_event():
    world = ReplayWorld()
    spec = spec_of(sources={"shop": {"key": "k", "spread_key": True}})
    for partition in range(PARTITIONS):
        world.ingest(partition, partition=partition, key=b"p\0k")
        ran(world, replay(), spec, partition=partition)
    assert [one.partition() for one in world.copies()] == list(range(PARTITIONS))


@pytest.mark.parametrize(
    ("fields", "events", "expected"),
    [
        pytest.param({}, [{"pipe": "other"}, {}], ["m1"], id="of the pipe"),
        pytest.param(
            {}, [{"ingest_time_us": NOW_US - HOUR_US - 1}, {"ingest_time_us": NOW_US - HOUR_US}], ["m1"], id="since"
        ),
        pytest.param(
            {}, [{"ingest_time_us": NOW_US + HOUR_US}, {"ingest_time_us": NOW_US + HOUR_US - 1}], ["m1"], id="until"
        ),
        pytest.param({}, [{"misfit": "no"}, {}], ["m1"], id="no misfits"),
        pytest.param({}, [{"position": 5, "attempt": 1}, {}], ["m1"], id="no returned originals"),
        pytest.param({"keys": ["a"]}, [{"key": b"p\0b"}, {"key": None}, {"key": b"p\0a"}], ["m2"], id="keys"),
        pytest.param({"ids": ["m0"]}, [{}, {}], ["m0"], id="ids"),
        pytest.param(
            {"revisions": [3, 5]}, [{"revision": number} for number in (2, 3, 4, 5, 6)], ["m1", "m3"], id="revisions"
        ),
        pytest.param({"where": "body.n == 1"}, [{"body": b'{"n":2}'}, {"body": b'{"n":1}'}], ["m1"], id="expression"),
        pytest.param({"where": "meta.id == 'm1'"}, [{}, {}], ["m1"], id="expression over meta"),
    ],
)
def test_events_are_selected(fields: dict[str, Any], events: list[dict[str, Any]], expected: list[str]):
    world = ReplayWorld()
    for number, event in enumerate(events):
        world.ingest(number, **event)
    result = ran(world, replay(**fields), spec_of())
    assert [meta.id for meta in metas(world)] == expected
    assert (result.asked, result.read, result.reached) == (len(expected), len(events), len(events))
    assert result.failed == 0


@pytest.mark.parametrize("body", [b"no JSON", b'{"n":"text"}', b"{}", b'{"n":null}'])
def test_event_whose_expression_fails_is_excluded_and_counted_as_failed(body: bytes):
    world = ReplayWorld()
    world.ingest(0, body)
    result = ran(world, replay(where="body.n > 1"), spec_of())
    assert (result.asked, result.failed, result.reached) == (0, 1, 1)
    assert result.facts == {}


def test_every_asked_unit_is_in_exactly_one_bin():
    world = ReplayWorld()
    bodies = [
        b'{"keep":true,"lines":[{"to":"both","n":1},{"to":"crm","n":"x"},{"to":"both","n":0}]}',  # sent; dead; filtered
        b'{"keep":false}',  # filtered
        b"no JSON",  # dead at normalize
        b'{"keep":true,"lines":[]}',  # empty
        b'{"keep":true,"lines":[{"to":"log"},{"to":"nobody"},{}]}',  # not chosen; unrouted; dead at route
        b'{"keep":true,"lines":[{"to":"crm","n":"big"}]}',
    ]
    for number, body in enumerate(bodies):
        world.ingest(number, body)
    result = ran(world, replay(destinations=["crm", "erp"]), spec_of(**MANY))
    delivered = {
        FactKey(f"transmit:{key.node.partition(':')[2]}", Fact.DELIVERED, "", key.child): positions
        for key, positions in result.facts.items()
        if key.node.startswith("transform:") and key.fact == Fact.SENT
    }
    for facts, settled in ((result.facts, Bin.QUEUED), (result.facts | delivered, Bin.DELIVERED)):
        account = account_of(facts)
        assert len(account.acked) == result.asked == len(bodies)
        assert not account.unacked
        asked = {
            (position_of(1, 0, number), child)
            for number, count in enumerate((3, 1, 1, 1, 3, 1))
            for child in range(count)
        }
        upstream = [unit for units in account.upstream.values() for unit in units]
        assert len(upstream) == len(set(upstream))
        due = set()
        for bins in account.destinations.values():
            units = [unit for some in bins.values() for unit in some]
            assert len(units) == len(set(units))
            due |= set(units)
        assert set(upstream) | due == asked
        assert not set(upstream) & due
        assert account.count(Bin.LOST) == 0
        assert account.count(settled) == sum(result.units.values()) == 3
        assert account.count(Bin.FILTERED) == result.filtered == 5
        assert account.count(Bin.DEAD) == result.failed == 4
    assert result.units == {"crm": 2, "erp": 1}


def test_facts_have_the_names_that_lanes_use():
    world = ReplayWorld()
    world.ingest(0, b'{"keep":true,"lines":[{"to":"log"},{"to":"crm","n":1}]}')
    facts = ran(world, replay(), spec_of(**MANY)).facts
    assert set(facts) == {
        FactKey("normalize", "sent", EXPLODED, 1),
        FactKey("route", "filtered", "not-chosen", 0),
        FactKey("transform:crm", "sent", "", 1),
        FactKey(PROCESS, "sent", "", 1),
        FactKey(INGEST, "sent", ACKED, 0),
    }
    assert list(facts)[-1] == FactKey(INGEST, "sent", ACKED, 0), "the fate of its units is known before an event is"


def test_facts_equal_those_of_a_process_lane(tmp_path: Path):
    bodies = [
        b'{"keep":true,"lines":[{"to":"both","n":1},{"to":"crm","n":"x"},{"to":"both","n":0}]}',
        b'{"keep":false}',
        b"no JSON",
        b'{"keep":true,"lines":[]}',
        b'{"keep":true,"lines":[{"to":"log"},{"to":"nobody"},{}]}',
    ]
    plan, world = process_lane.plan(1, **MANY), ReplayWorld()
    lane = process_lane.opened(tmp_path, plan)
    for number, body in enumerate(bodies):
        lane.take(world.ingest(number, body))
    lane.store()
    by_lane = {
        (one.node, one.fact, one.detail, one.child): one.positions
        for one in lane.facts.take()
        if one.node not in (INGEST, LOG)
    }
    facts = ran(world, replay(destinations=list(NAMES)), plan.spec).facts
    by_replay = {tuple(key): positions for key, positions in facts.items() if key.node != INGEST}
    assert by_replay == by_lane
    assert len(by_lane) > 8


def test_too_large_unit_is_dead_at_its_destination(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(copies, "BODY_BYTES", 10)
    world = ReplayWorld()
    world.ingest(0, b'{"n":"0123456789"}')
    result = ran(world, replay(), spec_of())
    assert next(iter(result.facts)) == FactKey("transform:crm", "dead", "too-large", 0)
    assert (result.failed, result.units, world.copies()) == (1, {}, [])
    assert BODY_BYTES > 10


def test_rehearsal_counts_the_same_and_writes_nothing():
    world = ReplayWorld()
    for number in range(5):
        world.ingest(number, b'{"keep":true,"lines":[{"to":"both","n":1}]}')
    rehearsal = ran(world, replay(destinations=["crm", "erp"], rehearsal=True, rate_per_s=0.1), spec_of(**MANY))
    assert (rehearsal.facts, world.copies()) == ({}, [])
    real = ran(world, replay(destinations=["crm", "erp"]), spec_of(**MANY))
    assert len(world.copies()) == 10
    real.facts, real.ends, real.cpu_us = {}, {}, rehearsal.cpu_us
    assert rehearsal == real


def test_result_of_a_window_enters_at_the_route():
    world = ReplayWorld()
    window = {"kind": "tumbling", "size_s": 60}
    spec = spec_of(
        windows={"w": {"span": window, "values": {"n": {"op": "count"}}}},
        normalize=[{"op": "set", "path": "seen", "value": True}],
    )
    world.ingest(0, b"{}", source="window:w")
    world.ingest(1, b"{}")
    ran(world, replay(), spec)
    assert [one.value() for one in world.copies()] == [b"{}", b'{"seen":true}']


def test_deleted_events_are_skipped_and_reported():
    world = ReplayWorld()
    for number in range(10):
        world.ingest(number, ingest_time_us=NOW_US + number)
    world.delete_below(0, 4)
    result = ran(world, replay(), spec_of())
    assert [meta.id for meta in metas(world)] == [f"m{number}" for number in range(4, 10)]
    assert (result.reached, result.expired_until_us, result.error) == (10, NOW_US + 4, "")


def test_partition_that_ends_before_the_range_is_an_error_and_nothing_is_skipped():
    world = ReplayWorld()
    for number in range(3):
        world.ingest(number)
    result = ran(world, replay(), spec_of(), end=5)
    assert (result.reached, result.asked) == (3, 3)
    assert "before offset 5" in result.error


def test_end_of_the_partition_at_the_end_of_the_range_is_no_error():
    """Kafka reports it in the same batch as the last event."""
    world = ReplayWorld()
    for number in range(3):
        world.ingest(number)
    reader = world.reader()
    consume = reader.consume
    reader.consume = lambda *args: [*consume(*args), *consume(*args)]  # type: ignore[method-assign]
    task = task_of(replay(), spec_of(), 3)
    rows = TenantRows(NoLookupTables(), "t")
    result = ReplayTaskRun(task, compile_plan(task.spec, task.salt), reader, world.producer(), rows).run()
    assert (result.reached, result.error) == (3, "")


def test_task_reads_to_the_end_of_its_range_only():
    world = ReplayWorld()
    for number in range(9):
        world.ingest(number)
    result = ran(world, replay(), spec_of(), first=2, end=5)
    assert [meta.id for meta in metas(world)] == ["m2", "m3", "m4"]
    assert result.reached == 5


def test_task_sends_no_faster_than_its_rate_and_ends_after_its_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_module, "TASK_S", 0.5)
    world = ReplayWorld()
    for number in range(100):
        world.ingest(number)
    began_s = time.monotonic()
    result = ran(world, replay(rate_per_s=20), spec_of())
    assert 0.3 < time.monotonic() - began_s < 5
    assert result.reached == len(world.copies()) == 10
    assert result.error == ""


def test_slow_task_still_makes_progress(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_module, "TASK_S", 0.0)
    world = ReplayWorld()
    for number in range(3):
        world.ingest(number)
    assert ran(world, replay(rate_per_s=0.1), spec_of()).reached == 1


class Refusing(MemoryKafkaProducer):
    """Producer whose records are not reported."""

    purged = 0

    def poll(self, _timeout: float) -> int:
        return 0

    def purge(self) -> None:
        self.purged += 1


def test_task_whose_copies_are_not_stored_counts_as_not_done(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(copies, "STORED_S", 0.1)
    world = ReplayWorld()
    world.ingest(0)
    producer = Refusing(world.kafka)
    result = ran(world, replay(), spec_of(), producer)
    result.cpu_us = 0
    assert result == TaskResult(("penstock.c1.ingest.g1", 0), 0, error="no copy was stored within 0.1 s")
    assert producer.purged == 1


class Counting(MemoryKafkaProducer):
    """Producer that stores one record for each poll, and notes the highest number of records in flight."""

    most = 0

    def produce(self, *record: Any, **named: Any) -> None:
        super().produce(*record, **named)
        self.most = max(self.most, len(self._queue))

    def poll(self, _timeout: float) -> int:
        kept = list(self._queue)[1:]
        while len(self._queue) > 1:
            self._queue.pop()
        reported = super().poll(0)
        self._queue.extend(kept)
        return reported


def test_units_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(copies, "MOST_UNITS", 5)
    world = ReplayWorld()
    for number in range(40):
        world.ingest(number)
    producer = Counting(world.kafka)
    result = ran(world, replay(), spec_of(), producer)
    assert result.units == {"crm": 40}
    assert len(world.copies()) == 40
    assert producer.most <= 5
