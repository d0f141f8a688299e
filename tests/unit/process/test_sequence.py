"""A process lane sends the number of each event of a source with a sequence to the sequence query."""

from pathlib import Path
from typing import Any

from dataplane.causes import Cause
from dataplane.ledger.facts import SLOW
from dataplane.ledger.units import partition_base
from dataplane.plan.sequence import SequenceTap, decode_sequence_tap
from dataplane.process.dedup import JUDGED
from dataplane.process.flows import FlowGroup
from dataplane.process.item import item_of
from dataplane.process.runner import Diversion
from dataplane.runtime.clock import SteadyClock
from dataplane.tables.records import PipeRecord
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.process_lane import arrived, dead, egress, opened, plan

SOURCES = {"shop": {"key": "shop", "sequence": "seq"}}


def records(lane: MemoryLane) -> list[dict[str, Any]]:
    return lane.producer.of(lane.cell.topics["sequence"].name)


def taps(lane: MemoryLane) -> list[SequenceTap]:
    return [decode_sequence_tap(record["value"]) for record in records(lane)]


def test_number_is_sent_as_it_arrived_and_the_event_is_processed_further(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES, normalize=[{"op": "remove", "path": "seq"}]))
    lane.take(arrived(4, b'{"seq":7}', key=b"p\0berlin"), arrived(5, b'{"seq":8}', key=b"p\0paris"))
    one, other = taps(lane)
    assert (one.pipe, one.source, one.key, one.number) == ("p", "shop", "berlin", 7)
    assert (one.position, one.is_clock) == (partition_base(1, 0) + 4, False)
    assert (other.key, other.number) == ("paris", 8)
    assert {record["partition"] for record in records(lane)} == {0}
    assert len({record["key"] for record in records(lane)}) == 2
    assert [record["value"] for record in egress(lane)] == [b"{}", b"{}"]
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed()["process", "sent", ""] == 2


def test_numbers_of_a_poll_are_sent_in_the_order_of_the_partition_although_their_minutes_alternate(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES))
    minutes = [2, 1, 2, 1]
    lane.take(*(arrived(n, b'{"seq":%d}' % n, key=b"p\0a", bucket=bucket) for n, bucket in enumerate(minutes)))
    assert [tap.number for tap in taps(lane)] == [0, 1, 2, 3]


def test_event_settles_only_when_its_number_is_stored(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES))
    lane.take(arrived(1, b'{"seq":7}', key=b"p\0berlin"))
    numbers = [token for topic, token, _ in lane.producer.sent if topic == lane.cell.topics["sequence"].name]
    assert len(numbers) == 1
    lane.producer.waiting.remove(numbers[0])
    run = numbers[0]
    lane.store()
    assert lane.unsettled() == 1
    lane.work.on_delivery(run)
    assert lane.unsettled() == 0


def test_events_without_a_key_a_number_or_json_are_processed_further_and_not_compared(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES))
    lane.take(arrived(1, b'{"seq":1}'), arrived(2, b"{}", key=b"p\0a"), arrived(3, b"no JSON", key=b"p\0a"))
    assert taps(lane) == []
    assert len(egress(lane)) == 3


def test_other_sources_and_results_of_windows_are_not_compared(tmp_path: Path):
    window = {"span": {"kind": "tumbling", "size_s": 60}, "values": {"n": {"op": "count"}}}
    lane = opened(tmp_path, plan(sources=SOURCES | {"other": {"key": "shop"}}, windows={"w": window}))
    for number, source in enumerate(("other", "window:w")):
        lane.take(arrived(number, b'{"seq":1}', key=b"p\0a", source=source))
    assert taps(lane) == []


def test_event_that_dedup_returns_is_compared_once(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES, dedup={"paths": ["seq"]}))
    lane.take(arrived(1, b'{"seq":1}', key=b"p\0a"))
    assert len(taps(lane)) == 1, "before dedup judges it"
    (asked,) = lane.producer.of(lane.cell.topics["dedup"].name)
    headers = [*asked["headers"][:-1], JUDGED]
    lane.take(MemoryMessage(0, 9, asked["value"], headers, b"p\0a", lane.cell.topics["ingest"].name))
    assert len(egress(lane)) == 1
    assert len(taps(lane)) == 1


def test_number_of_an_event_is_sent_before_the_event_is_held(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES))
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause=Cause.DEAD_RATE))
    lane.take(arrived(1, b'{"seq":1}', key=b"p\0a"))
    assert egress(lane) == []
    assert [tap.number for tap in taps(lane)] == [1]
    lane.store()
    assert lane.unsettled() == 0


def test_number_of_an_event_is_sent_before_the_event_is_diverted_to_the_slow_lane(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES))
    message = arrived(1, b'{"seq":1}', key=b"p\0a")
    ((_, meta, headers),) = lane.read_all([message])
    runner, item = lane.work._runner, item_of(meta, message, headers)
    run = runner.begun(FlowGroup("p", 1, meta.bucket, 0, 0, meta.through), [item], SteadyClock())
    runner.divert(run, [item], Diversion(lane.cell.topics["process-slow"].name, 0, SLOW))
    assert [tap.number for tap in taps(lane)] == [1]
    assert len(lane.producer.of(lane.cell.topics["process-slow"].name)) == 1


def test_misfit_that_is_dead_lettered_makes_no_gap(tmp_path: Path):
    lane = opened(tmp_path, plan(sources=SOURCES))
    lane.take(arrived(1, b'{"seq":1}', key=b"p\0a", misfit="$.total: needs a number"))
    assert len(dead(lane)) == 1
    assert [tap.number for tap in taps(lane)] == [1]
