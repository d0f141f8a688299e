"""Timing in transmit lanes: the lags of a delivered message, and its time through retries and holds."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.audit import LagSet
from dataplane.ledger.breakdown import Breakdown, Slice
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.stopwatch import spent_until, stamp
from dataplane.names import LaneKind, Purpose
from dataplane.spec import BatchSettings, LakeDestination, RetryPolicy
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, MemoryMessage, message
from tests.support.transmitting import Clock, MemoryProducer, MemorySender, destination, opened, without_kafka

S = 1_000_000
PROCESSED = [0, 0, 0, 300, 0, 0, 40]  # normalize and transform


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def processed(clock: Clock, offset: int = 5, **changes: Any) -> MemoryMessage:
    """Return a message ingested 10 ms ago, stored after 2 ms, processed 1 ms ago; its source is 3 s ahead."""
    now_us = clock.wall_us
    times: dict[str, Any] = {"ingest_time_us": now_us - 10_000, "stored_ms": (now_us - 8_000) // 1_000}
    stopwatch = stamp(Slice.TRANSMIT_QUEUE, now_us - 1_000, PROCESSED)
    return message(offset, event_time_us=now_us + 3 * S, **{"stopwatch": stopwatch, **times, **changes})


def timing(lane: MemoryLane) -> tuple[dict[str, LagSketch], Breakdown]:
    """Return the recorded lags and breakdown of deliveries."""
    taken: list[LagSet] = lane.lags.take()
    (breakdown,) = [Breakdown.decode(one.breakdown) for one in taken if one.breakdown]
    return {one.way: LagSketch.decode(one.sketch) for one in taken}, breakdown


def slices(breakdown: Breakdown) -> dict[str, int]:
    return {portion.slice.name: portion.sum_us for portion in breakdown.portions(0.5)}


def record_on(lane: MemoryLane, purpose: Purpose) -> MessageMeta:
    (record,) = lane.producer.of(lane.cell.topics[purpose].name)
    return read_meta(record["headers"])


def again(
    lane: MemoryLane, purpose: Purpose, kind: LaneKind, var: Path
) -> tuple[MemoryLane, TransmitWork, MemorySender]:
    """Open another lane and let it read the record that this one wrote to a topic."""
    (record,) = lane.producer.of(lane.cell.topics[purpose].name)
    other, work, sender = opened(var, destination(), kind=kind)
    other.take(MemoryMessage(0, 5, record["value"], record["headers"], topic=other.slots.topics[0]))
    return other, work, sender


def test_delivered_message_is_recorded_with_its_lags_and_all_of_its_time(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(processed(clock))
    assert lane.lags.take() == [], "nothing for a message that has not left"
    clock.advance(0.002)
    work.poll()
    clock.advance(0.004)
    sender.answer(204)
    work.poll()
    found, breakdown = timing(lane)
    assert slices(breakdown) == {
        "INGEST": 2_500,
        "PROCESS_QUEUE": 6_500 - 340,
        "NORMALIZE": 300,
        "TRANSFORM": 40,
        "TRANSMIT_QUEUE": 1_000,
        "DESTINATION_QUEUE": pytest.approx(2_000, abs=1),
        "TRANSMIT": pytest.approx(4_000, abs=1),
    }
    lags = {way: sketch.max_us for way, sketch in found.items()}
    assert lags == {
        "in": pytest.approx(-3 * S, abs=3),
        "out": pytest.approx(6_000 - 3 * S, abs=3),
        "own": pytest.approx(6_000, abs=2),
    }
    assert lags["out"] - lags["in"] == lags["own"]
    assert breakdown.source.max_us == -3 * S - 10_000
    work.close()


def test_pauses_between_local_retries_count_as_retry(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=2)))
    lane.take(processed(clock))
    work.poll()
    clock.advance(0.5)
    sender.answer(503)
    work.poll()
    assert sender.begun == [], "the local retry pauses"
    clock.advance(9)
    work.poll()
    clock.advance(0.25)
    sender.answer(204)
    work.poll()
    found, breakdown = timing(lane)
    spent = slices(breakdown)
    assert (spent["TRANSMIT"], spent["RETRY"]) == pytest.approx((750_000, 9 * S), abs=2)
    assert found["own"].max_us == pytest.approx(9.75 * S, abs=3)
    work.close()


def test_wait_in_a_tier_counts_as_retry_and_not_as_time_of_the_node(tmp_path: Path, clock: Clock):
    first, work, sender = opened(tmp_path / "a", destination())
    first.take(processed(clock))
    work.poll()
    clock.advance(0.5)
    sender.answer(503)
    work.poll()
    clock.advance(60)
    second, retrying, others = again(first, "retry-in", "transmit-retry", tmp_path / "b")
    retrying.poll()
    clock.advance(0.25)
    others.answer(204)
    retrying.poll()
    found, breakdown = timing(second)
    spent = slices(breakdown)
    assert (spent["TRANSMIT"], spent["RETRY"]) == pytest.approx((750_000, 60 * S), abs=2)
    assert {way: sketch.count for way, sketch in found.items()} == {"in": 1, "out": 1, "own": 1}
    assert found["own"].max_us == pytest.approx(250_000, abs=2)
    assert breakdown.sum_us == pytest.approx(60.76 * S, abs=5)
    assert first.lags.take() == [], "it did not leave the node through this lane"
    for lane in (work, retrying):
        lane.close()


def test_request_cut_short_counts_as_a_request(tmp_path: Path, clock: Clock):
    lane, work, _ = opened(tmp_path, destination())
    lane.take(processed(clock))
    work.poll()
    clock.advance(25)
    work.on_drain_timeout()
    meta = record_on(lane, "retry-in")
    spent = spent_until(meta, clock.wall_us + 7)
    assert spent is not None
    assert (spent[Slice.TRANSMIT], spent[Slice.RETRY]) == pytest.approx((25 * S, 7), abs=2)
    work.close()


@pytest.mark.parametrize(
    ("state", "status", "purpose", "slice_"),
    [
        pytest.param("paused", 0, "held", Slice.HELD, id="held"),
        pytest.param("active", 400, "dead", Slice.DEAD_LETTER, id="dead"),
        pytest.param("active", 503, "retry-in", Slice.RETRY, id="parked"),
    ],
)
def test_message_that_leaves_the_lane_carries_the_slice_of_its_wait(
    tmp_path: Path, clock: Clock, state: Any, status: int, purpose: Purpose, slice_: Slice
):
    lane, work, sender = opened(tmp_path, destination(state=state))
    lane.take(processed(clock))
    work.poll()
    if status:
        sender.answer(status)
        work.poll()
    meta = record_on(lane, purpose)
    before, after = spent_until(meta, clock.wall_us), spent_until(meta, clock.wall_us + 5 * S)
    assert before is not None
    assert after is not None
    changed = {Slice(n) for n in range(len(after)) if after[n] != before[n]}
    assert changed == {slice_}
    assert sum(after) - sum(before) == pytest.approx(5 * S, abs=2)
    work.close()


def test_batch_members_share_the_time_of_the_request_and_each_has_its_own_wait(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(batch=BatchSettings(max_events=2, max_wait_ms=5_000)))
    lane.take(processed(clock, 5))
    work.poll()
    clock.advance(1)
    lane.take(processed(clock, 6))
    work.poll()
    clock.advance(0.5)
    sender.answer(204)
    work.poll()
    found, breakdown = timing(lane)
    own = {portion.slice: portion.own for portion in breakdown.portions(0.5)}
    assert (own[Slice.TRANSMIT].min_us, own[Slice.TRANSMIT].max_us) == pytest.approx((500_000, 500_000), abs=2)
    assert own[Slice.DESTINATION_QUEUE].max_us == pytest.approx(1 * S, abs=2)
    assert found["own"].count == 2
    work.close()


def test_message_of_an_earlier_release_has_lags_and_no_breakdown(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(processed(clock, stopwatch=b""))
    work.poll()
    clock.advance(0.004)
    sender.answer(204)
    work.poll()
    taken = lane.lags.take()
    assert [one.breakdown for one in taken] == [b"", b"", b""]
    found = {one.way: LagSketch.decode(one.sketch).max_us for one in taken}
    assert (found["in"], found["own"]) == pytest.approx((-3 * S, 4_000), abs=2)
    work.close()


def test_clock_set_back_during_a_delivery_loses_no_time_of_the_message(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(processed(clock))
    work.poll()
    clock.advance(0.5)
    clock.wall_us -= 3_600 * S
    sender.answer(204)
    work.poll()
    found, breakdown = timing(lane)
    assert found["own"].max_us == pytest.approx(500_000, abs=2)
    assert breakdown.sum_us == pytest.approx(510_000, abs=2)
    work.close()


def test_message_for_a_lake_waits_for_its_row(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    producer = MemoryProducer()
    monkeypatch.setattr("dataplane.transmit.records.writer.ingest_producer", lambda *_: producer)
    lane, work, _ = opened(tmp_path, DestinationRecord("p", "crm", 1, "active", LakeDestination(), [], ""))
    lane.take(processed(clock))
    clock.advance(0.002)
    work.poll()
    meta = read_meta(producer.sent[0].headers)
    spent = spent_until(meta, clock.wall_us + 7 * S)
    assert spent is not None
    assert (spent[Slice.DESTINATION_QUEUE], spent[Slice.LAKE]) == pytest.approx((2_000, 7 * S), abs=2)
    producer.report()
    work.poll()
    assert lane.lags.take() == [], "its row is not written yet"
    work.close()
