"""Redrives and early releases in a retrier lane: order, rate, progress, abort and restart, without repeats."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition
from pyroaring import BitMap64

from dataplane.ledger.deadletter import DeadLetterReason, dead_headers
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.units import position_of
from dataplane.names import Purpose
from dataplane.retrier import early_release as ahead_module
from dataplane.retrier import low_watermarks as floor_module
from dataplane.retrier import redriver as mover_module
from dataplane.retrier import work as work_module
from dataplane.retrier.early_release import SHARE
from dataplane.retrier.redrive_job import What
from dataplane.retrier.redrives import OF_A_TENANT
from dataplane.retrier.work import RetrierWork
from dataplane.tables.records import PipeRecord, RedriveRecord
from dataplane.tables.redrives import (
    EarlyReleaseProgress,
    RedriveProgress,
    decode_early_release,
    decode_progress,
    encode_offsets,
    format_place,
)
from tests.support.memory_lane import MemoryLane, message
from tests.support.memory_topics import MemorySignalReader, MemoryTopics
from tests.support.retrying import hear
from tests.support.transmitting import Clock, destination

S = 1_000_000
NODE = "transmit:crm"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> MemoryTopics:
    made = MemoryTopics()
    monkeypatch.setattr(mover_module, "place_reader", made.reader)
    monkeypatch.setattr(ahead_module, "place_reader", made.reader)
    monkeypatch.setattr(floor_module, "place_reader", made.reader)
    return made


@pytest.fixture
def lane(tmp_path: Path, clock: Clock, topics: MemoryTopics, monkeypatch: pytest.MonkeyPatch) -> MemoryLane:
    monkeypatch.setattr(work_module, "SignalReader", MemorySignalReader)
    monkeypatch.setattr(ahead_module, "committed", from_the_start)
    return a_lane(tmp_path)


def a_lane(var: Path) -> MemoryLane:
    made = MemoryLane("retrier", var)
    made.work = RetrierWork(made)
    return made


def from_the_start(lane: MemoryLane) -> list[TopicPartition]:
    tiers = [record for purpose, record in lane.cell.topics.items() if purpose.startswith("delay-")]
    return [TopicPartition(record.name, number, 0) for record in tiers for number in range(record.partitions)]


def held(lane: MemoryLane, topics: MemoryTopics, offset: int, purpose: Purpose = "held", **more: Any) -> None:
    topics.add(message(offset, topic=lane.cell.topics[purpose].name, **{"attempt": 1, **more}))


def dead(lane: MemoryLane, topics: MemoryTopics, offset: int, node: str = NODE) -> None:
    found = message(offset, topic=lane.cell.topics["dead"].name, attempt=2, first_us=7)
    headers = dead_headers(
        read_meta(found.headers()), found.headers(), DeadLetterReason(node, "rejected", "returned 400")
    )
    found._parts = (*found._parts[:3], headers, None)
    topics.add(found)


def asked(
    lane: MemoryLane,
    offsets: dict[int, list[int]],
    what: What = "release",
    *,
    state: str = "running",
    version: int = 1,
    rate: float = 1_000.0,
    move: str = "m1",
) -> RedriveRecord:
    name = lane.cell.topics["held" if what == "release" else "dead"].name
    places = encode_offsets({(name, partition): BitMap64(found) for partition, found in offsets.items()})
    return RedriveRecord(move, version, "c1", "p", "crm", what, places, rate, state)  # type: ignore[arg-type]


def returned(lane: MemoryLane) -> list[MessageMeta]:
    return [read_meta(record["headers"]) for record in lane.producer.of(lane.cell.topics["retry-out"].name)]


def progress(lane: MemoryLane, move: str = "m1") -> RedriveProgress:
    records = lane.producer.of(lane.cell.topics["signals"].name)
    return [decode_progress(r["value"]) for r in records if r["key"] == f"move/{move}".encode()][-1]


def ahead_of(lane: MemoryLane) -> list[EarlyReleaseProgress]:
    return [
        decode_early_release(r["value"])
        for r in lane.producer.of(lane.cell.topics["signals"].name)
        if r["key"].startswith(b"ahead/")
    ]


def go(lane: MemoryLane, clock: Clock, rounds: int = 10) -> None:
    """Run polls, delivery reports and checkpoints, a quarter of a second each."""
    for _ in range(rounds):
        clock.advance(0.25)
        lane.work.poll()
        lane.store()
        lane.checkpoint()


def test_held_messages_return_in_order_and_the_ledger_and_the_requester_get_reports(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for offset in range(6):
        held(lane, topics, offset)
        held(lane, topics, offset, partition=1)
    lane.table.apply(asked(lane, {0: [1, 2, 4], 1: [0, 5]}))
    go(lane, clock)
    assert [meta.id for meta in returned(lane)] == ["id-0-1", "id-0-2", "id-0-4", "id-1-0", "id-1-5"]
    told = progress(lane)
    assert (told.moved, told.skipped, told.total, told.done, told.error) == (5, 0, 5, True, "")
    name = lane.cell.topics["held"].name
    assert told.reached == {f"{name}/0": 5, f"{name}/1": 6}
    assert {(f.node, f.fact, f.detail) for f in lane.told} == {(NODE, "released", "1")}
    assert sum(not reader.closed for reader in topics.readers) == 1, "only the reader of the low watermark is open"


def test_message_held_before_normalize_returns_to_its_ingest_partition_and_the_live_revision(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    place = position_of(1, 3, 77)
    held(lane, topics, 0, destination="", position=place, key=b"p\0customer-7")
    weights = [(1, 25), (2, 75)]
    lane.table.apply(PipeRecord("p", 1, "t", "orders", "c1", "active", weights))
    lane.table.apply(msgspec.structs.replace(asked(lane, {0: [0]}), destination=""))
    go(lane, clock)
    assert returned(lane) == []
    (record,) = lane.producer.of(lane.cell.topics["ingest"].name)
    meta = read_meta(record["headers"])
    assert (meta.position, meta.revision, meta.attempt) == (place, 2, 1)
    assert (record["partition"], record["key"]) == (3, b"p\0customer-7")
    assert [(f.node, f.fact, f.detail) for f in lane.told] == [("normalize", "released", "1")]
    assert progress(lane).done


def test_ledger_receives_the_low_watermark_of_the_held_topic(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    held(lane, topics, 7)
    clock.advance(16)
    lane.work.poll()
    assert lane.audits.floors == {(lane.cell.topics["held"].name, 0): 7}


def test_progress_is_published_only_after_its_audit_record_is_stored(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    held(lane, topics, 0)
    lane.table.apply(asked(lane, {0: [0]}))
    for _ in range(3):
        clock.advance(0.25)
        lane.work.poll()
        lane.store()
        lane.work.report()  # the checkpoint's audit record is in flight, not yet stored
    assert returned(lane)
    told = [r for r in lane.producer.of(lane.cell.topics["signals"].name) if decode_progress(r["value"]).moved]
    assert told == []


def test_redrive_returns_only_dead_letters_of_its_transmit_node(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    dead(lane, topics, 0)
    dead(lane, topics, 1, "transform:crm")
    dead(lane, topics, 2)
    lane.table.apply(asked(lane, {0: [0, 1, 2, 99]}, "redrive"))
    go(lane, clock)
    assert [(meta.id, meta.attempt, meta.life) for meta in returned(lane)] == [
        ("id-0-0", 3, 3),
        ("id-0-2", 3, 3),
    ]
    assert {(f.node, f.fact, f.detail) for f in lane.told} == {(NODE, "redriven", "3")}
    told = progress(lane)
    assert (told.moved, told.skipped, told.total, told.done) == (2, 2, 4, True)


def test_event_that_ended_in_the_steps_returns_to_ingest_with_the_revision_of_most_keys(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    lane.table.apply(PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 0), (3, 100)]))
    found = message(0, topic=lane.cell.topics["dead"].name, destination="", position=position_of(1, 0, 7))
    headers = dead_headers(read_meta(found.headers()), found.headers(), DeadLetterReason("route", "route", "rule 1"))
    found._parts = (*found._parts[:3], headers, None)
    topics.add(found)
    lane.table.apply(msgspec.structs.replace(asked(lane, {0: [0]}, "redrive"), destination=""))
    go(lane, clock)
    (back,) = [read_meta(record["headers"]) for record in lane.producer.of(lane.cell.topics["ingest"].name)]
    assert (back.revision, back.life, back.position) == (3, 1, position_of(1, 0, 7))
    assert {(f.node, f.fact, f.detail) for f in lane.told} == {("normalize", "redriven", "1")}


def test_redrive_job_keeps_its_rate(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    for offset in range(200):
        held(lane, topics, offset)
    lane.table.apply(asked(lane, {0: list(range(200))}, rate=20))
    go(lane, clock, rounds=1)
    before = len(returned(lane))
    go(lane, clock, rounds=8)
    assert len(returned(lane)) - before == pytest.approx(40, abs=2)


def test_aborted_redrive_job_stops_and_reports_its_progress(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    for offset in range(200):
        held(lane, topics, offset)
    lane.table.apply(asked(lane, {0: list(range(200))}, rate=20))
    go(lane, clock, rounds=4)
    lane.table.apply(asked(lane, {}, state="aborted", version=2))
    go(lane, clock)
    moved = len(returned(lane))
    assert 10 <= moved <= 30
    told = progress(lane)
    assert (told.moved, told.total, told.done) == (moved, 200, True)


def test_finished_redrive_job_does_not_run_again(lane: MemoryLane, topics: MemoryTopics, clock: Clock, tmp_path: Path):
    held(lane, topics, 0)
    lane.table.apply(asked(lane, {0: [0]}))
    go(lane, clock)
    again = restarted(lane, tmp_path)
    again.table.apply(asked(lane, {0: [0]}, version=2))
    go(again, clock)
    assert returned(again) == []


def restarted(lane: MemoryLane, var: Path) -> MemoryLane:
    """Return a new lane that has read the signals of `lane`."""
    made = a_lane(var)
    apply_signals(lane, made)
    return made


def apply_signals(teller: MemoryLane, listener: MemoryLane) -> None:
    for record in teller.producer.of(teller.cell.topics["signals"].name):
        listener.work._signal_state.apply(record["key"].decode(), record["value"], 0)


def test_restarted_lane_resumes_a_redrive_job_from_the_progress_in_the_ledger(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock, tmp_path: Path
):
    for offset in range(100):
        held(lane, topics, offset)
    move = asked(lane, {0: list(range(100))}, rate=40)
    lane.table.apply(move)
    go(lane, clock, rounds=4)
    clock.advance(0.25)
    lane.work.poll()  # killed here: a few are stored, and none of them is reported
    known = progress(lane).moved
    assert 0 < known < len(returned(lane)) < 100
    again = restarted(lane, tmp_path)
    again.table.apply(move)
    go(again, clock, rounds=20)
    both = returned(lane) + returned(again)
    assert {meta.id for meta in both} == {f"id-0-{offset}" for offset in range(100)}
    assert returned(again)[0].id == f"id-0-{known}", "not from the beginning"
    repeats = {(meta.id, meta.attempt) for meta in both}
    assert len(repeats) == 100, "a repeat is the same unit in the same round"
    assert (progress(again).moved, progress(again).done) == (100, True)


def test_undecodable_offsets_end_the_redrive_job_with_an_error(lane: MemoryLane, clock: Clock):
    lane.table.apply(RedriveRecord("m1", 1, "c1", "p", "crm", "release", {"held": "?"}, 5.0, "running"))
    go(lane, clock)
    assert progress(lane).done
    assert progress(lane).error.startswith("its offsets cannot be decoded")


def test_redrive_jobs_of_another_cell_are_ignored(lane: MemoryLane, clock: Clock):
    lane.table.apply(RedriveRecord("m1", 1, "c2", "p", "crm", "release", {}, 5.0, "running"))
    go(lane, clock)
    assert not lane.producer.sent


def test_redrive_jobs_of_one_destination_run_one_after_another(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    for offset in range(40):
        held(lane, topics, offset)
    lane.table.apply(asked(lane, {0: list(range(20, 40))}, rate=10))
    lane.table.apply(asked(lane, {0: list(range(20))}, rate=10, move="m2"))
    go(lane, clock, rounds=40)
    assert [meta.id for meta in returned(lane)] == [f"id-0-{n}" for n in [*range(20, 40), *range(20)]]


def test_slow_redrive_jobs_of_one_tenant_do_not_delay_other_tenants(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for name in ("p", "q"):
        lane.table.apply(PipeRecord(name, 5, f"tenant-of-{name}", "orders", "c1", "active", [(1, 100)]))
    for number in range(OF_A_TENANT + 1):
        held(lane, topics, number, destination=f"d{number}")
        slow = asked(lane, {0: [number]}, rate=0.1, move=f"slow-{number}")
        lane.table.apply(msgspec.structs.replace(slow, destination=f"d{number}"))
    held(lane, topics, 0, partition=1, pipe="q")
    lane.table.apply(msgspec.structs.replace(asked(lane, {1: [0]}, move="quick"), pipe="q"))
    go(lane, clock, rounds=4)
    assert progress(lane, "quick").done
    told = {r["key"] for r in lane.producer.of(lane.cell.topics["signals"].name)}
    assert f"move/slow-{OF_A_TENANT}".encode() not in told, "it waits for another job of its own tenant"


def test_released_message_carries_the_version_of_its_destination_record(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    held(lane, topics, 0)
    lane.table.apply(destination(version=7))
    lane.table.apply(asked(lane, {0: [0]}))
    go(lane, clock)
    assert [meta.as_of for meta in returned(lane)] == [7]


# -- early release -----------------------------------------------------------------------------------------------------


TIERS: tuple[Purpose, ...] = ("delay-10h", "delay-10s", "delay-5m")


def waiting(lane: MemoryLane, topics: MemoryTopics, offset: int, purpose: Purpose, **more: Any) -> None:
    held(lane, topics, offset, purpose, not_before_us=1 << 60, **more)


def test_recovery_releases_the_waiting_messages_of_its_destination_and_no_others(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    waiting(lane, topics, 0, "delay-5m")
    waiting(lane, topics, 1, "delay-5m", destination="log")
    waiting(lane, topics, 2, "delay-5m", asked_us=1 << 60)
    waiting(lane, topics, 0, "delay-10h", partition=2)
    hear(lane, "open", at_us=clock.wall_us)
    go(lane, clock)
    assert returned(lane) == []
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=40)
    assert sorted(meta.id for meta in returned(lane)) == ["id-0-0", "id-2-0"]
    reached = ahead_of(lane)[-1].reached
    assert reached[format_place((lane.cell.topics["delay-5m"].name, 0))] == 3
    assert reached[format_place((lane.cell.topics["delay-10h"].name, 2))] == 1
    assert {(f.node, f.fact, f.detail) for f in lane.told} == {(NODE, "released", "1")}


def test_early_release_runs_at_about_the_original_ingest_rate(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    for offset in range(1_000):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=clock.wall_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    clock.advance(1)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=3)
    before = len(returned(lane))
    go(lane, clock, rounds=20)
    assert len(returned(lane)) - before == pytest.approx(5 * 20 * SHARE, rel=0.1)


def test_copies_of_a_replay_are_released_with_the_others_and_do_not_slow_them(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for offset in range(1_000):
        came_us = clock.wall_us + offset * S // 20
        is_copy = offset % 2
        times = (
            {"ingest_time_us": came_us - 86_400 * S, "first_us": came_us} if is_copy else {"ingest_time_us": came_us}
        )
        account = {"replay": "replay_1", "bucket": 7} if is_copy else {}
        waiting(lane, topics, offset, "delay-5m", **times, **account)
    hear(lane, "open", at_us=clock.wall_us)
    clock.advance(1)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=3)
    before = len(returned(lane))
    go(lane, clock, rounds=20)
    assert len(returned(lane)) - before == pytest.approx(5 * 20 * SHARE, rel=0.1)
    assert {meta.replay for meta in returned(lane)} == {"", "replay_1"}
    assert {(f.pipe, f.bucket, f.fact) for f in lane.told} == {
        ("p", 29_833_333, "released"),
        ("replay_1", 7, "released"),
    }


def test_early_release_stops_at_a_new_failure_and_continues_after_the_next_recovery(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for offset in range(1_000):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=clock.wall_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=8)
    clock.advance(1)
    hear(lane, "open", at_us=clock.wall_us)
    before = len(returned(lane))
    go(lane, clock, rounds=8)
    assert len(returned(lane)) == before
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=8)
    assert len(returned(lane)) > before


def test_interrupted_early_release_starts_again(lane: MemoryLane, topics: MemoryTopics, clock: Clock, tmp_path: Path):
    for offset in range(1_000):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=clock.wall_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=4)
    clock.advance(1_200)
    again = a_lane(tmp_path)
    apply_signals(lane, again)
    hear(again, "closed", at_us=clock.wall_us)
    go(again, clock, rounds=8)
    assert returned(again)


def test_interrupted_early_release_does_not_return_the_reported_messages_again(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock, tmp_path: Path
):
    for offset in range(1_000):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=clock.wall_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=20)
    reported = ahead_of(lane)[-1].reached[format_place((lane.cell.topics["delay-5m"].name, 0))]
    assert reported > 50
    again = a_lane(tmp_path)
    apply_signals(lane, again)
    hear(again, "closed", at_us=clock.wall_us)
    go(again, clock, rounds=8)
    assert returned(again)[0].id == f"id-0-{reported}"


def test_returned_messages_do_not_raise_the_rate_of_the_next_early_release(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    began_us = clock.wall_us
    for attempt in (1, 2):  # the same messages, whose tier's lane has not committed their first records yet
        for number in range(200):
            at_us = began_us + number * S // 20
            waiting(lane, topics, number + 200 * (attempt - 1), "delay-5m", ingest_time_us=at_us, attempt=attempt)
        hear(lane, "open", at_us=clock.wall_us)
        clock.advance(1)
        hear(lane, "closed", at_us=clock.wall_us)
        go(lane, clock, rounds=3)
        before = len(returned(lane))
        go(lane, clock, rounds=20)
        assert len(returned(lane)) - before == pytest.approx(5 * 20 * SHARE, rel=0.1)
        go(lane, clock, rounds=40)
        apply_signals(lane, lane)
    assert len(returned(lane)) == 400


def test_messages_that_are_scheduled_during_an_early_release_follow_in_another_one(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    began_us = clock.wall_us
    for offset in range(200):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=began_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    clock.advance(1)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=3)
    clock.advance(1)
    hear(lane, "open", at_us=clock.wall_us)
    for offset in range(200, 300):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=began_us + offset * S // 20)
    clock.advance(1)
    hear(lane, "closed", at_us=clock.wall_us)
    reports = len(ahead_of(lane))
    go(lane, clock, rounds=100)
    assert [meta.id for meta in returned(lane)] == [f"id-0-{offset}" for offset in range(300)]
    *others, last = ahead_of(lane)[reports:]
    assert all(report.running for report in others), "no message leaves its tier between the two releases"
    assert not last.running


def test_release_that_a_failure_interrupts_leaves_the_rest_to_the_scan_of_the_next_one(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for offset in range(200):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=clock.wall_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=8)
    clock.advance(1)
    hear(lane, "open", at_us=clock.wall_us)
    go(lane, clock, rounds=8)
    last = ahead_of(lane)[-1]
    place = (lane.cell.topics["delay-5m"].name, 0)
    assert last.reached[format_place(place)] == len(returned(lane)) > 0
    assert (last.running, last.ends) == (True, {}), "the lanes of the tiers decide about the rest again"
    del topics.records[place][199]  # its lane has passed it on to another tier
    waiting(lane, topics, 0, "delay-10h", id="copy", ingest_time_us=clock.wall_us)
    clock.advance(1)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=80)
    found = [meta.id for meta in returned(lane)]
    assert found == [f"id-0-{offset}" for offset in range(199)] + ["copy"]
    assert not ahead_of(lane)[-1].running


def test_release_reports_which_messages_it_will_return_and_begins_with_the_shortest_tier(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for purpose in TIERS:
        waiting(lane, topics, 0, purpose, id=purpose)
    hear(lane, "open", at_us=clock.wall_us)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=20)
    assert [meta.id for meta in returned(lane)] == ["delay-10s", "delay-5m", "delay-10h"]
    first = ahead_of(lane)[0]
    ends = {format_place((lane.cell.topics[purpose].name, 0)): 1 for purpose in TIERS}
    assert (first.running, ends.items() <= first.ends.items()) == (True, True)


def test_due_message_is_delayed_while_an_early_release_runs(lane: MemoryLane, topics: MemoryTopics, clock: Clock):
    for offset in range(1_000):
        waiting(lane, topics, offset, "delay-5m", ingest_time_us=clock.wall_us + offset * S // 20)
    hear(lane, "open", at_us=clock.wall_us)
    clock.advance(1)
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock, rounds=4)
    apply_signals(lane, lane)
    due = message(0, topic=lane.cell.topics["retry-in"].name, id="due", attempt=2, not_before_us=clock.wall_us)
    lane.take(due)
    assert "due" not in [meta.id for meta in returned(lane)]
    (delayed,) = lane.producer.of(lane.cell.topics["delay-10s"].name)
    assert read_meta(delayed["headers"]).id == "due"


def test_recovery_while_no_lane_ran_starts_one_early_release_later(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock, tmp_path: Path
):
    waiting(lane, topics, 0, "delay-5m")
    hear(lane, "closed", at_us=clock.wall_us)
    go(lane, clock)
    assert len(returned(lane)) == 1
    again = restarted(lane, tmp_path)
    hear(again, "closed", at_us=clock.wall_us)
    assert ahead_of(lane)[-1].at_us < clock.wall_us
    again.work._signal_state.take_recovered()
    hear(again, "closed", at_us=clock.wall_us)
    go(again, clock)
    assert returned(again) == [], "a breaker that stays closed has not recovered"


def test_redrive_job_with_offsets_past_the_end_gives_up_and_reads_nothing_else(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for offset in (0, 1, 2):  # the broker lost the records after these
        held(lane, topics, offset)
    lane.table.apply(asked(lane, {0: [8, 9]}))
    go(lane, clock)
    assert returned(lane) == []
    said = progress(lane)
    assert (said.moved, said.skipped, said.done) == (0, 2, True)


def test_redrive_job_with_offsets_below_the_low_watermark_skips_the_missing_records(
    lane: MemoryLane, topics: MemoryTopics, clock: Clock
):
    for offset in (5, 6):
        held(lane, topics, offset)
    lane.table.apply(asked(lane, {0: [1, 2, 6]}))
    go(lane, clock)
    assert [meta.position for meta in returned(lane)] == [6]
    said = progress(lane)
    assert (said.moved, said.skipped, said.done) == (1, 2, True)
