"""Pipes whose messages are dead-lettered by steps: the limit, and what happens to later messages."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.causes import Cause
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import read_meta
from dataplane.names import Purpose
from dataplane.process.dead_letter_rate import SLOT_S, SPAN_S, DeadRate, DeadRateLimit
from dataplane.process.dedup import JUDGED
from dataplane.tables.records import PipeRecord
from dataplane.tables.signals import DestinationSignal, decode_signal
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.process_lane import arrived, dead, egress, opened, plan

LIMIT = DeadRateLimit(percent=50, least=100)
CAST = {"op": "cast", "path": "n", "to": "int"}
BAD, GOOD = b'{"n":"x"}', b'{"n":"7"}'
PIPE = PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)])


def records(lane: MemoryLane, purpose: Purpose) -> list[MemoryMessage]:
    """Return the records on a topic of the cell, as messages."""
    sent = lane.producer.of(lane.cell.topics[purpose].name)
    return [MemoryMessage(0, 900 + n, one["value"], one["headers"], one["key"]) for n, one in enumerate(sent)]


def told(lane: MemoryLane) -> list[DestinationSignal]:
    return [decode_signal(one["value"]) for one in lane.producer.of(lane.cell.topics["signals"].name)]


def storm(lane: MemoryLane, first: int = 0, messages: int = 120) -> None:
    """Send messages that are all dead-lettered, the first hundred of them in one batch."""
    for batch in (range(first, first + 100), range(first + 100, first + messages)):
        lane.take(*(arrived(n, BAD) for n in batch))
    lane.store()


@pytest.mark.parametrize(
    ("seen", "dead", "passed"),
    [
        pytest.param(100, 50, True, id="half of a hundred"),
        pytest.param(100, 49, False, id="a little less than half"),
        pytest.param(99, 99, False, id="too few to tell"),
    ],
)
def test_limit_is_reached_by_half_of_at_least_a_hundred_messages(seen: int, dead: int, passed: bool):
    assert DeadRate(LIMIT).note(0.0, seen, dead) is passed


def test_messages_older_than_a_minute_no_longer_count():
    rate = DeadRate(LIMIT)
    assert not rate.note(0.0, 99, 99)
    assert rate.note(SPAN_S - SLOT_S, 1, 1)
    rate = DeadRate(LIMIT)
    assert not rate.note(0.0, 99, 99)
    assert not rate.note(SPAN_S, 1, 1)


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 60), st.floats(0, 1))))
def test_rate_equals_a_count_over_all_slots_of_the_last_minute(steps: list[tuple[float, int, float]]):
    rate, noted, now_s = DeadRate(LIMIT), list[tuple[float, int, int]](), 0.0
    for wait_s, seen, share in steps:
        now_s += wait_s
        noted.append((now_s - now_s % SLOT_S, seen, int(seen * share)))
        recent = [entry for entry in noted if entry[0] > now_s - SPAN_S]
        all_seen, all_dead = sum(entry[1] for entry in recent), sum(entry[2] for entry in recent)
        expected = all_seen >= 100 and all_dead * 2 >= all_seen
        assert rate.note(now_s, seen, noted[-1][2]) is expected


def test_messages_beyond_the_limit_are_held_unchanged_and_the_lane_reports_it_once(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    storm(lane)
    assert len(dead(lane)) == 100
    held = records(lane, "held")
    assert [message.value() for message in held] == [BAD] * 20
    metas = [read_meta(message.headers()) for message in held]
    assert {(meta.attempt, meta.destination, meta.position > 0) for meta in metas} == {(1, "", True)}
    (signal,) = told(lane)
    assert (signal.pipe, signal.destination, signal.suspended, signal.of_version) == ("p", "", Cause.DEAD_RATE, 1)
    assert signal.reason == "100 of 100 messages were dead-lettered within a minute, the last at normalize: step"
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert (filed["normalize", Fact.DEAD, "step"], filed["normalize", Fact.HELD, "1"]) == (100, 20)
    assert ("process", "sent", "") not in filed


def test_lane_continues_once_the_record_of_the_pipe_changed_unless_it_is_paused_for_it(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    storm(lane)
    lane.table.apply(msgspec.structs.replace(PIPE, version=2, state="paused", cause=Cause.DEAD_RATE))
    lane.take(arrived(200, GOOD))
    assert len(records(lane, "held")) == 21
    lane.table.apply(msgspec.structs.replace(PIPE, version=3))
    lane.take(arrived(201, GOOD))
    assert len(egress(lane)) == 1


def test_pipe_paused_by_a_person_runs_its_steps_and_is_not_held_by_process(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    lane.table.apply(msgspec.structs.replace(PIPE, version=2, state="paused"))
    lane.take(arrived(1, GOOD))
    assert (len(egress(lane)), records(lane, "held")) == (1, [])


def test_message_released_to_test_the_steps_runs_although_its_pipe_is_held(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    lane.table.apply(msgspec.structs.replace(PIPE, version=2, state="paused", cause=Cause.DEAD_RATE))
    tested = arrived(1, GOOD, position=1, attempt=1, through=True)
    lane.take(arrived(0, GOOD), tested, arrived(2, GOOD))
    (sent,) = egress(lane)
    assert (read_meta(sent["headers"]).position, read_meta(sent["headers"]).through) == (1, True)
    assert len(records(lane, "held")) == 2


def test_released_message_keeps_its_position(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    lane.table.apply(msgspec.structs.replace(PIPE, version=2, state="paused", cause=Cause.DEAD_RATE))
    lane.take(arrived(5, GOOD))
    (held,) = records(lane, "held")
    lane.table.apply(msgspec.structs.replace(PIPE, version=3))
    lane.take(held)
    (sent,) = egress(lane)
    assert read_meta(sent["headers"]).position == read_meta(held.headers()).position


def test_released_message_is_sent_to_dedup_unless_it_is_already_judged(tmp_path: Path):
    dedup = {"paths": ["n"], "window_s": 60}
    lane = opened(tmp_path, plan(dedup=dedup))
    paused = msgspec.structs.replace(PIPE, version=2, state="paused", cause=Cause.DEAD_RATE)
    lane.table.apply(paused)
    judged = arrived(1, GOOD, position=1)
    judged = MemoryMessage(0, 1, GOOD, [*judged.headers(), JUDGED])
    lane.take(judged, arrived(2, GOOD))
    held = records(lane, "held")
    lane.table.apply(msgspec.structs.replace(paused, version=3, state="active", cause=""))
    lane.take(*held)
    assert (len(egress(lane)), len(records(lane, "dedup"))) == (1, 1)


def test_message_that_was_held_is_late_for_windows(tmp_path: Path):
    window = {"span": {"kind": "tumbling", "size_s": 10}, "values": {"n": {"op": "count"}}}
    lane = opened(tmp_path, plan(windows={"w": window}))
    message = arrived(1, GOOD, position=1, attempt=1)
    lane.take(message)
    lane.store()
    assert records(lane, "taps") == []
    assert lane.filed()["window:w", "sent", "late"] == 1
