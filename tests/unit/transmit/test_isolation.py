"""One failing destination: its messages are held or scheduled for retry, and no other destination waits."""

from pathlib import Path

import msgspec
import pytest

from dataplane.ledger.meta import read_meta
from dataplane.names import transmit_node
from dataplane.spec import RetryPolicy
from dataplane.tables.records import CellRecord, PipeRecord
from dataplane.transmit.destinations.targets import LOCKED_ROOM, LOCKED_WAIT_S, QUEUE_WAIT_S, STORM
from dataplane.transmit.policy.breaker import MIN_VOLUME
from dataplane.transmit.slow_lane_relief import LOOK_EVERY_S
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import NODE, Clock, MemorySender, destination, opened, without_kafka


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def parked(lane: MemoryLane) -> list[dict[str, object]]:
    return lane.producer.of(lane.cell.topics["retry-in"].name)


def held(lane: MemoryLane) -> list[dict[str, object]]:
    return lane.producer.of(lane.cell.topics["held"].name)


def fail(lane: MemoryLane, sender: MemorySender, count: int, status: int = 500, first: int = 0) -> None:
    """Process `count` messages and answer each attempt with `status`."""
    lane.take(*(message(first + n) for n in range(count)))
    for _ in range(count):
        lane.work.poll()
        sender.answer(status)
        lane.work.poll()


# -- breaker ---------------------------------------------------------------------------------------------------------


def test_new_messages_of_an_open_breaker_are_scheduled_for_retry_without_an_attempt(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    fail(lane, sender, MIN_VOLUME)
    lane.store()
    lane.take(message(50))
    work.poll()
    assert len(sender.requests) == MIN_VOLUME
    meta = read_meta(parked(lane)[-1]["headers"])  # type: ignore[arg-type]
    assert (meta.attempt, meta.tried, meta.asked_us) == (1, 0, 0)
    assert meta.not_before_us >= clock.wall_us + 5_000_000
    lane.store()
    assert lane.unsettled() == 0
    work.close()


def test_retry_lane_probes_and_the_transmit_lane_waits_for_it(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(), kind="transmit-retry")
    fail(lane, sender, MIN_VOLUME)
    clock.advance(6.1)
    lane.take(*(message(50 + n) for n in range(5)))
    work.poll()
    assert len(sender.begun) == 2, "probes only; the others wait"
    for _ in range(2):
        sender.answer(204)
        work.poll()
        work.poll()
    assert len(sender.begun) == 1, "closed: the rest follows"
    work.close()


def test_message_scheduled_without_an_attempt_expires_at_the_end_of_its_retry_span(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(1, span_s=3)))
    fail(lane, sender, MIN_VOLUME)
    lane.store()
    lane.take(message(50))
    work.poll()
    (record,) = [r for r in lane.producer.of(lane.cell.topics["dead"].name) if read_meta(r["headers"]).position == 50]
    assert dict(record["headers"][1:])["penstock-cause"] == b"expired"
    work.close()


def test_refusals_and_429_do_not_open_the_breaker(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    fail(lane, sender, STORM - 1, 404)
    fail(lane, sender, 30, 429, first=100)
    lane.take(message(500))
    work.poll()
    assert len(sender.begun) == 1
    work.close()


# -- suspension and pause --------------------------------------------------------------------------------------------


def test_storm_of_refusals_suspends_the_destination_and_holds_the_rest(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    fail(lane, sender, STORM + 5, 403)
    lane.store()
    assert len(sender.requests) <= STORM + 5
    fail(lane, sender, 5, 403, first=100)
    lane.store()
    filed = lane.filed()
    assert filed[NODE, "held", "1"] == 5
    assert lane.unsettled() == 0
    lane.table.apply(destination(version=2))
    lane.take(message(500))
    work.poll()
    assert len(sender.begun) == 1, "a newer active record ends the suspension"
    work.close()


def test_success_resets_the_streak_of_refusals(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    for first in (0, 100, 200):
        fail(lane, sender, STORM - 1, 403, first=first)
        fail(lane, sender, 1, 204, first=first + 50)
    assert not held(lane)
    work.close()


def test_410_suspends_the_destination_immediately(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6), message(7))
    work.poll()
    sender.answer(410)
    work.poll()
    work.poll()
    lane.store()
    assert len(sender.requests) == 1
    assert lane.filed() == {(NODE, "held", "1"): 3}
    assert [r["value"] for r in held(lane)] == [b"{}"] * 3
    work.close()


@pytest.mark.parametrize("state", ["paused", "suspended"])
def test_inactive_destination_holds_its_messages(tmp_path: Path, state: str):
    lane, work, sender = opened(tmp_path, destination(state=state))  # type: ignore[arg-type]
    lane.take(message(5, attempt=2))
    work.poll()
    lane.store()
    assert not sender.requests
    assert lane.filed() == {(NODE, "held", "3"): 1}
    assert read_meta(held(lane)[0]["headers"]).attempt == 3  # type: ignore[arg-type]
    assert lane.unsettled() == 0
    work.close()


@pytest.mark.parametrize(("status", "end"), [(204, "delivered"), (403, "dead")])
def test_only_the_message_named_by_a_probe_is_sent_to_a_suspended_destination(tmp_path: Path, status: int, end: str):
    record = msgspec.structs.replace(
        destination(state="suspended", version=2), probe=read_meta(message(6).headers()).id
    )
    lane, work, sender = opened(tmp_path, record)
    lane.take(message(5), message(6), message(7))
    work.poll()
    assert len(sender.begun) == 1
    sender.answer(status)
    work.poll()
    lane.store()
    filed = lane.filed()
    assert filed[NODE, "held", "1"] == 2
    assert sum(count for (_, fact, _), count in filed.items() if fact == end) == 1
    assert lane.unsettled() == 0
    work.close()


def test_message_released_under_a_newer_record_waits_for_that_record(tmp_path: Path, clock: Clock):
    """The probe's message may arrive before the record that allows it: each has its own topic."""
    old = destination(state="suspended", version=2)
    lane, work, sender = opened(tmp_path, old, kind="transmit-retry")
    topic = lane.slots.topics[0]
    lane.take(message(6, topic=topic, attempt=1, as_of=3))
    work.poll()
    lane.store()
    assert not sender.begun
    assert not held(lane)
    lane.table.apply(msgspec.structs.replace(old, version=3, probe=read_meta(message(6).headers()).id))
    work.poll()
    assert len(sender.begun) == 1
    work.close()


def test_wait_for_a_missing_record_is_short(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination(state="suspended", version=2), kind="transmit-retry")
    lane.take(message(6, topic=lane.slots.topics[0], attempt=1, as_of=3))
    work.poll()
    clock.advance(LOCKED_WAIT_S + 0.1)
    work.poll()
    lane.store()
    assert len(held(lane)) == 1
    work.close()


def test_chosen_held_messages_are_sent_to_a_paused_destination_within_its_limits(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(state="paused", concurrency=2), kind="transmit-retry")
    topic = lane.slots.topics[0]
    lane.take(*(message(n, topic=topic, attempt=1, through=n < 4) for n in range(6)))
    work.poll()
    assert len(sender.begun) == 1, "its share of a concurrency of two is one"
    for _ in range(4):
        sender.answer(204)
        work.poll()
        work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "delivered", ""): 4, (NODE, "held", "2"): 2}
    assert not any(read_meta(record["headers"]).through for record in held(lane))  # type: ignore[arg-type]
    work.close()


def test_chosen_held_messages_count_in_the_rate_limit_of_their_destination(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(state="paused", rate_per_s=1), kind="transmit-retry")
    topic = lane.slots.topics[0]
    lane.take(*(message(n, topic=topic, attempt=1, through=True) for n in range(6)))
    for _ in range(6):
        work.poll()
        sender.answer(204)
    first = len(sender.requests)
    assert 1 <= first < 6
    clock.advance(10)
    for _ in range(6):
        work.poll()
        sender.answer(204)
    assert len(sender.requests) > first
    work.close()


def test_chosen_message_that_is_held_again_waits_like_the_others(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.table.apply(PipeRecord("p", 5, "t", "orders", "c1", "paused", [(1, 100)]))
    lane.take(message(5, attempt=1, through=True))
    work.poll()
    lane.store()
    assert not sender.begun
    assert not read_meta(held(lane)[0]["headers"]).through  # type: ignore[arg-type]
    work.close()


def test_paused_pipe_holds_for_all_its_destinations_until_it_is_resumed(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(), destination("lake"))
    lane.take(message(1))
    work.poll()
    lane.table.apply(PipeRecord("p", 5, "t", "orders", "c1", "paused", [(1, 100)]))
    lane.take(message(5), message(6, destination="lake"))
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "held", "1"): 1, (transmit_node("lake"), "held", "1"): 1}
    lane.table.apply(PipeRecord("p", 6, "t", "orders", "c1", "active", [(1, 100)]))
    lane.take(message(7))
    work.poll()
    assert len(sender.begun) == 2
    work.close()


# -- limits ----------------------------------------------------------------------------------------------------------


def test_rate_limit_allows_its_number_of_requests_per_second(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(rate_per_s=10))
    lane.take(*(message(n) for n in range(60)))
    for _ in range(300):
        work.poll()
        sender.answer(204)
        clock.advance(0.01)
    assert 28 <= len(sender.requests) <= 32
    work.close()


def test_each_cell_of_a_migrating_pipe_has_half_of_its_limits(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=8))
    lane.table.apply(PipeRecord("p", 5, "t", "orders", "c2", "active", [(1, 100)], leaving="c1"))
    lane.take(*(message(n) for n in range(30)))
    work.poll()
    assert len(sender.begun) == 4
    lane.table.apply(PipeRecord("p", 6, "t", "orders", "c2", "active", [(1, 100)]))
    sender.answer(204)
    work.poll()
    work.poll()
    assert len(sender.begun) > 4, "the full limit again, as fast as concurrency grows"
    work.close()


def test_lanes_share_the_limits_and_a_new_lane_gets_its_share(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=9))
    lane.take(*(message(n) for n in range(30)))
    work.poll()
    assert len(sender.begun) == 9
    lane.table.apply(CellRecord("c1", 2, 1, {"transmit": 3}, lane.cell.topics))
    sender.answer(204)
    work.poll()
    work.poll()
    assert len(sender.begun) == 3
    work.close()


def test_no_destination_uses_more_of_the_sender_than_is_left(tmp_path: Path):
    hogs = [destination(f"hog-{n}", concurrency=1_000) for n in range(5)]
    lane, work, sender = opened(tmp_path, *hogs, destination())
    for n in range(5):
        lane.take(*(message(n * 1_000 + m, destination=f"hog-{n}") for m in range(600)))
    for _ in range(20):
        work.poll()
    lane.take(message(9_000))
    work.poll()
    assert sender.requests[-1][0] == "http://crm.example/"
    assert sender.room > 0
    work.close()


def test_429_with_retry_after_pauses_the_destination_for_that_time(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5))
    work.poll()
    sender.answer(429, retry_after="30")
    work.poll()
    lane.take(message(6))
    work.poll()
    assert len(sender.requests) == 1
    metas = [read_meta(record["headers"]) for record in parked(lane)]  # type: ignore[arg-type]
    assert [meta.position for meta in metas] == [5, 6]
    assert all(meta.asked_us == meta.not_before_us >= clock.wall_us + 30_000_000 for meta in metas)
    clock.advance(31)
    lane.take(message(7))
    work.poll()
    assert len(sender.requests) == 2
    work.close()


def test_retry_after_of_ten_years_is_capped_at_the_retry_span(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(1, span_s=100)))
    lane.take(message(5))
    work.poll()
    sender.answer(503, retry_after="315360000")
    work.poll()
    (record,) = parked(lane)
    assert read_meta(record["headers"]).not_before_us <= clock.wall_us + 100_000_000  # type: ignore[arg-type]
    work.close()


def test_local_retries_draw_on_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dataplane.transmit.outcomes.responses.local_pause_s", lambda *_: 0.0)
    monkeypatch.setattr("dataplane.transmit.policy.breaker.MIN_VOLUME", 10**9)
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=5)))
    lane.take(*(message(n) for n in range(200)))
    for _ in range(100):
        work.poll()
        sender.answer(500)
    assert 200 + 10 < len(sender.requests) <= 200 + 10 + 20, "the initial budget, and up to a tenth of the sends"
    assert len(parked(lane)) == 200
    work.close()


# -- waiting too long ------------------------------------------------------------------------------------------------


def test_overdue_messages_of_a_slow_destination_are_set_aside_where_others_share_the_lane(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination(concurrency=1), destination("lake"))
    lane.take(message(1), message(2), message(3, destination="lake"))
    work.poll()
    clock.advance(QUEUE_WAIT_S + 1)
    work.poll()
    assert [read_meta(record["headers"]).position for record in parked(lane)] == [2]  # type: ignore[arg-type]
    work.close()


def test_slow_destination_alone_in_its_lane_blocks_no_other_and_its_messages_wait(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(1), message(2))
    work.poll()
    clock.advance(QUEUE_WAIT_S + 1)
    work.poll()
    assert not parked(lane)
    work.close()


def test_unknown_destination_blocks_no_ack_window_forever(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path)
    lane.take(message(5))
    work.poll()
    assert not parked(lane)
    clock.advance(LOCKED_WAIT_S + 1)
    work.poll()
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    assert not sender.requests
    work.close()


def test_unreadable_secret_blocks_no_ack_window_forever_and_becomes_the_cause(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(secrets=("junk",), retry=RetryPolicy(1, span_s=100)))
    lane.take(message(5), message(6, first_us=clock.wall_us - 99_000_000))
    clock.advance(LOCKED_WAIT_S + 1)
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "parked", "1"): 1, (NODE, "dead", "secret-unreadable"): 1}
    assert not sender.requests
    work.close()


def test_429_halves_the_requests_in_flight(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=8))
    lane.take(*(message(n) for n in range(30)))
    work.poll()
    assert len(sender.begun) == 8
    sender.answer(429)
    work.poll()
    work.poll()
    assert len(sender.begun) == 4
    work.close()


def test_ack_window_full_of_unsettled_messages_sets_none_aside(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination(concurrency=1))
    lane.take(*(message(n) for n in range(int(0.8 * lane.settings.max_unsettled))))
    clock.advance(1)
    work.poll()
    assert not parked(lane)
    work.close()


def test_ack_window_blocked_by_few_messages_sets_only_those_aside(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination(concurrency=1), destination("lake"), destination("well"))
    lane.take(message(0), message(1), message(2, destination="lake"))
    work.poll()
    for first in range(3, int(0.76 * lane.settings.max_unsettled), 1_000):
        clock.advance(LOOK_EVERY_S if first < 9_000 else 0)  # together less than they may wait in the queue
        work.poll()
        assert not parked(lane), "the window is not nearly full"
        lane.take(*(message(first + n, destination="well") for n in range(1_000)))
        while lane.unsettled() > 3:
            work.poll()
            sender.answer_all_of("well", 204)
    clock.advance(1)
    work.poll()
    lane.store()
    assert {read_meta(record["headers"]).position for record in parked(lane)} == {0, 1, 2}  # type: ignore[arg-type]
    assert lane.unsettled() == 0
    assert not sender.begun
    work.close()


def test_messages_for_an_unknown_destination_use_limited_room_and_others_continue(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination("well"))
    count = LOCKED_ROOM + 1
    lane.take(*(message(n, destination="unknown") for n in range(count)), message(count, destination="well"))
    work.poll()
    assert len(sender.begun) == 1
    assert 0 < len(parked(lane)) < count, "the excess is scheduled for retry; the others wait for the record"
    for _ in range(2):
        clock.advance(LOCKED_WAIT_S + 1)
        work.poll()
    lane.store()
    assert (len(parked(lane)), lane.unsettled()) == (count, 1)
    work.close()
