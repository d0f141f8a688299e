"""The retrier moves messages from topic to topic, paced and never early, and commits only what it moved."""

from typing import Any

import pytest

from dataplane.causes import Cause
from dataplane.ledger.deadletter import DeadLetterReason, dead_letter_reason
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import position_of
from dataplane.names import DELAYS_S
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.retrier.retry_messages import LEAVE_HEADER
from dataplane.retrier.work import KEPT_IN_MEMORY_US, WINDOW
from dataplane.runtime.lanes.context import BUSY_WAIT_S, IDLE_WAIT_S
from dataplane.runtime.lanes.poison import CRASHES_DETAIL
from dataplane.spec import HttpDestination
from dataplane.tables.records import DestinationRecord
from dataplane.tables.replays import ReplayProgress, encode_replay_progress, replay_progress_key
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.retrying import NOW, S, hear, in_tier, known, metas, parked, passed_on, release
from tests.support.transmitting import Clock


def test_scheduled_retry_enters_a_delay_tier_with_its_leave_time(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW + 300 * S), parked(lane, 1, NOW + 3 * S))
    (five,) = lane.producer.of(lane.cell.topics["delay-5m"].name)
    (ten,) = lane.producer.of(lane.cell.topics["delay-10s"].name)
    assert five["headers"][-1] == (LEAVE_HEADER, str(NOW + 300 * S).encode())
    assert ten["headers"][-1] == (LEAVE_HEADER, str(NOW + 3 * S).encode())
    assert passed_on(lane) == []


def test_due_retry_is_forwarded_immediately(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW - S), parked(lane, 1, 0))
    assert passed_on(lane) == ["id-0-0", "id-0-1"]


def test_message_is_never_forwarded_early(lane: MemoryLane, clock: Clock):
    lane.take(in_tier(lane, 0, NOW + 5 * S))
    clock.advance((5 * S - 1) / S)
    lane.work.poll()
    assert passed_on(lane) == []
    clock.advance(1 / S)
    lane.work.poll()
    assert passed_on(lane) == ["id-0-0"]


def test_message_with_wait_left_at_the_end_of_its_tier_enters_a_tier_again(lane: MemoryLane, clock: Clock):
    lane.take(in_tier(lane, 0, NOW + 7_200 * S, NOW + 18_000 * S, topic="delay-2h"))
    clock.advance(7_200)
    lane.work.poll()
    assert passed_on(lane) == []
    (meta,) = metas(lane, "delay-2h")
    assert meta.not_before_us == NOW + 18_000 * S


def test_messages_leave_a_tier_by_leave_time_and_a_late_one_delays_no_other(lane: MemoryLane, clock: Clock):
    leaves = (60, 2, 1, -1)
    lane.take(*(in_tier(lane, offset, NOW + leave * S) for offset, leave in enumerate(leaves)))
    clock.advance(3)
    lane.work.poll()
    assert passed_on(lane) == ["id-0-3", "id-0-2", "id-0-1"]


def test_only_messages_stored_in_the_next_topic_are_settled(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW), parked(lane, 1, NOW + 60 * S), in_tier(lane, 0, NOW + 9 * S))
    lane.work.poll()
    assert lane.unsettled() == 3
    lane.store()
    assert lane.unsettled() == 1, "a message that waits in a tier is read again after a crash"
    assert lane.filed() == {("transmit:crm", "released", "2"): 1, ("transmit:crm", "parked", "2"): 1}


def test_body_key_and_headers_are_forwarded_unchanged(lane: MemoryLane):
    keyed = in_tier(lane, 0, NOW - S, key=b"crm\0p\0k", body=b"\x00\xff")
    plain = parked(lane, 1, NOW, partition=1, position=position_of(1, 3, 9))
    lane.take(keyed, plain)
    lane.work.poll()
    second, first = lane.producer.of(lane.cell.topics["retry-out"].name)
    assert (first["value"], first["headers"], first["key"]) == (b"\x00\xff", keyed.headers()[:-1], b"crm\0p\0k")
    assert (second["partition"], "key" in second) == (3, False), "the position gives the partition, wherever it waited"


@pytest.mark.parametrize(
    ("more", "partitions"),
    [
        pytest.param({}, [0, 1, 2, 3], id="the partition of its event"),
        pytest.param({"ordered": True}, [None] * 4, id="that of the key, where the key has an order"),
    ],
)
def test_retries_of_a_spread_key_return_on_all_partitions_unless_the_destination_is_ordered(
    lane: MemoryLane, more: dict[str, Any], partitions: list[int | None]
):
    to = HttpDestination("https://crm.example/", **more)
    lane.table.apply(DestinationRecord("p", "crm", 1, "active", to, []))
    places = [position_of(1, number, 9) for number in range(4)]
    lane.take(*(parked(lane, number, NOW, position=place, key=b"k") for number, place in enumerate(places)))
    found = lane.producer.of(lane.cell.topics["retry-out"].name)
    assert [record.get("partition") for record in found] == partitions
    assert [record["key"] for record in found] == [b"k"] * 4


def test_message_of_an_unknown_destination_returns_on_the_partition_of_its_key(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW, position=position_of(1, 3, 9), key=b"k"))
    (record,) = lane.producer.of(lane.cell.topics["retry-out"].name)
    assert (record["key"], "partition" in record) == (b"k", False)


def test_destination_uses_one_partition_of_a_tier(lane: MemoryLane):
    names = [f"d{number}" for number in range(40)]
    for number, name in enumerate(names):
        key = b"k" if number % 2 else None
        lane.take(
            *(parked(lane, 4 * number + p, NOW + 9 * S, partition=p, destination=name, key=key) for p in range(4))
        )
    found = lane.producer.of(lane.cell.topics["delay-10s"].name)
    places = {(read_meta(record["headers"]).destination, record["partition"]) for record in found}
    assert len(places) == len(names)
    assert len({partition for _, partition in places}) == 4


def test_retrier_has_small_ack_windows_because_it_reads_many_topics(lane: MemoryLane):
    assert lane.bounds[0] == WINDOW
    assert len(lane.slots.topics) == 1 + len(DELAYS_S)


def test_revoked_partition_drops_its_waiting_messages_and_none_of_another_topic(lane: MemoryLane, clock: Clock):
    lane.take(*(in_tier(lane, 0, NOW + S, topic=tier, id=tier) for tier in ("delay-10s", "delay-1m")))
    lane.lose(lane.slots.of(in_tier(lane, 0, 0)))
    clock.advance(2)
    lane.work.poll()
    assert passed_on(lane) == ["delay-1m"]


def test_drain_leaves_waiting_messages_in_their_tier(lane: MemoryLane, clock: Clock):
    lane.take(in_tier(lane, 0, NOW + S))
    lane.work.on_drain_timeout()
    clock.advance(2)
    lane.work.poll()
    assert passed_on(lane) == []
    assert lane.unsettled() == 1


def test_poll_timeout_ends_in_time_for_the_next_message(lane: MemoryLane, clock: Clock):
    assert lane.work.poll_timeout_s() == IDLE_WAIT_S
    lane.take(in_tier(lane, 0, NOW + 20_000))
    assert lane.work.poll_timeout_s() == pytest.approx(0.02, abs=0.001)
    clock.advance((S) / S)
    assert lane.work.poll_timeout_s() == BUSY_WAIT_S


def test_many_retries_of_one_destination_are_paced_and_do_not_delay_another_destination(lane: MemoryLane, clock: Clock):
    lane.take(*(parked(lane, offset, NOW) for offset in range(3_000)), parked(lane, 3_000, NOW, destination="log"))
    assert len(passed_on(lane)) == 1_001
    assert passed_on(lane)[-1] == "id-0-3000", "the message of another destination does not wait"
    delayed = metas(lane, "delay-10s")
    assert [meta.not_before_us for meta in delayed] == [NOW + 1_000 * n for n in range(1, 2_001)]
    assert all(meta.paced for meta in delayed)


def test_paced_message_keeps_its_assigned_time(lane: MemoryLane, clock: Clock):
    lane.take(*(parked(lane, offset, NOW) for offset in range(2_000)))
    before = len(passed_on(lane))
    lane.take(in_tier(lane, 0, NOW, paced=True))
    lane.work.poll()
    assert len(passed_on(lane)) == before + 1
    assert not metas(lane, "retry-out")[-1].paced


def test_message_with_a_near_assigned_time_waits_in_memory(lane: MemoryLane, clock: Clock):
    lane.take(*(in_tier(lane, offset, NOW) for offset in range(1_500)))
    lane.work.poll()
    assert (len(passed_on(lane)), metas(lane, "delay-10s")) == (1_000, [])
    clock.advance((KEPT_IN_MEMORY_US) / S)
    lane.work.poll()
    assert len(passed_on(lane)) == 1_500


def test_pacing_delays_no_message_beyond_the_end_of_its_retry_span(lane: MemoryLane):
    known(lane, span_s=2)
    lane.take(*(parked(lane, offset, NOW) for offset in range(3_000)))
    ends_us = NOW - S + 2 * S
    assert len(passed_on(lane)) == 1_000
    assert max(meta.not_before_us for meta in metas(lane, "delay-10s")) == ends_us


def test_poison_message_is_dead_lettered_at_its_destination(lane: MemoryLane):
    lane.work.dead_letter_poison(in_tier(lane, 0, NOW))
    (letter,) = lane.producer.of(lane.cell.topics["dead"].name)
    assert dead_letter_reason(letter["headers"]) == DeadLetterReason("transmit:crm", Cause.CRASHES_LANE, CRASHES_DETAIL)
    assert LEAVE_HEADER not in dict(letter["headers"])


def test_forwarded_messages_count_in_the_usage_of_their_pipe(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW, body=b"now"), parked(lane, 1, NOW + 60 * S, body=b"later"))
    lane.work.poll()
    lane.usage.hasten()
    usage = lane.usage.take_if_due()
    assert usage is not None
    assert [(one.units, one.size_bytes) for one in usage.pipes] == [(2, 8)]


HOUR = 3_600 * S


def stored(message: MemoryMessage, at_us: int) -> MemoryMessage:
    message.at_ms = at_us // 1_000
    return message


@pytest.mark.parametrize("jump_us", [2 * HOUR, -2 * HOUR])
def test_clock_jump_does_not_change_the_wait_of_a_message_in_memory(lane: MemoryLane, clock: Clock, jump_us: int):
    lane.take(stored(in_tier(lane, 0, NOW + 10 * S), NOW))
    clock.wall_us += jump_us
    lane.work.poll()
    clock.advance(9)
    lane.work.poll()
    assert passed_on(lane) == []
    assert lane.work.poll_timeout_s() <= 1
    clock.advance(1)
    lane.work.poll()
    assert passed_on(lane) == ["id-0-0"]


@pytest.mark.parametrize("jump_us", [2 * HOUR, -2 * HOUR])
@pytest.mark.parametrize("written_after", [True, False])
def test_message_read_after_a_clock_jump_waits_no_less_and_at_most_twice_its_delay(
    lane: MemoryLane, clock: Clock, jump_us: int, written_after: bool
):
    written_us = NOW + jump_us if written_after else NOW
    clock.wall_us += jump_us
    lane.take(stored(in_tier(lane, 0, written_us + 10 * S), written_us))
    clock.advance(9)
    lane.work.poll()
    assert passed_on(lane) == []
    clock.advance(1)
    lane.work.poll()
    assert passed_on(lane) == ["id-0-0"]


@pytest.mark.parametrize("jump_us", [2 * HOUR, -2 * HOUR])
def test_clock_jump_does_not_change_the_total_wait_over_several_tiers(lane: MemoryLane, clock: Clock, jump_us: int):
    lane.take(stored(parked(lane, 0, NOW + 90 * S), NOW))
    (first,) = lane.producer.of(lane.cell.topics["delay-1m"].name)
    clock.wall_us += jump_us
    again = MemoryMessage(0, 1, b"{}", first["headers"], None, lane.cell.topics["delay-1m"].name)
    lane.take(stored(again, NOW))
    clock.advance(60)
    lane.work.poll()
    assert passed_on(lane) == []
    waits = [meta.not_before_us - clock.wall_us for meta in metas(lane, "delay-10s")]
    assert waits == [30 * S], "the rest of the wait is written by the current clock"


def test_breaker_signal_from_a_clock_hours_ahead_delays_no_message_for_hours(lane: MemoryLane, clock: Clock):
    known(lane)
    hear(lane, "open", until_us=NOW + 2 * HOUR)
    lane.take(parked(lane, 0, NOW))
    (meta,) = metas(lane, "delay-5m")
    assert meta.not_before_us <= clock.wall_us + 300 * S
    clock.advance(300)
    lane.take(stored(in_tier(lane, 1, clock.wall_us, topic="delay-5m"), NOW))
    lane.work.poll()
    assert passed_on(lane) == ["id-0-1"], "when it returns from the tier, it is a probe"


def copy(lane: MemoryLane, offset: int, due_us: int, **more: Any) -> MemoryMessage:
    return parked(lane, offset, due_us, replay="replay_1", bucket=7, **more)


def accounts(lane: MemoryLane) -> set[tuple[str, int, str, str]]:
    return {(one.pipe, one.bucket, one.fact, one.detail) for one in lane.facts.take()}


def test_copy_of_a_replay_stays_one_through_tier_and_return_and_counts_for_its_replay(lane: MemoryLane, clock: Clock):
    lane.take(parked(lane, 0, NOW + 9 * S), copy(lane, 1, NOW + 9 * S))
    lane.store()
    assert {one.replay for one in metas(lane, "delay-10s")} == {"", "replay_1"}
    assert accounts(lane) == {("p", 29_833_333, "parked", "2"), ("replay_1", 7, "parked", "2")}
    tier = lane.producer.of(lane.cell.topics["delay-10s"].name)
    lane.take(*(MemoryMessage(0, n, b"{}", one["headers"], None, lane.cell.topics["delay-10s"].name)
                for n, one in enumerate(tier)))  # fmt: skip
    clock.advance(10)
    lane.work.poll()
    lane.store()
    assert [one.replay for one in metas(lane, "retry-out")] == ["", "replay_1"]
    assert accounts(lane) == {("p", 29_833_333, "released", "2"), ("replay_1", 7, "released", "2")}


def test_copy_that_an_early_release_returned_is_settled_in_the_account_of_its_replay(lane: MemoryLane):
    release(lane, 1, running=False)
    lane.take(in_tier(lane, 0, NOW + 9 * S, topic="delay-5m", replay="replay_1", bucket=7))
    assert lane.unsettled() == 0
    assert accounts(lane) == {("replay_1", 7, "released", "2")}


def test_copies_for_an_ordered_destination_return_on_the_partitions_of_their_events(lane: MemoryLane):
    to = HttpDestination("https://crm.example/", ordered=True)
    lane.table.apply(DestinationRecord("p", "crm", 1, "active", to, []))
    places = [position_of(1, number, 9) for number in range(4)]
    lane.take(*(copy(lane, number, NOW, position=place, key=b"k") for number, place in enumerate(places)))
    found = lane.producer.of(lane.cell.topics["retry-out"].name)
    assert [record.get("partition") for record in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("cause", ["crashes-lane", "too-large"])
def test_dead_copy_in_the_retrier_writes_no_dead_letter(lane: MemoryLane, cause: str):
    if cause == "crashes-lane":
        lane.condemn(copy(lane, 0, NOW))
    else:
        lane.take(copy(lane, 0, NOW, body=b"x" * CLIENT_MAX_BYTES))
    assert lane.producer.of(lane.cell.topics["dead"].name) == []
    assert accounts(lane) == {("replay_1", 7, "dead", cause)}
    assert lane.unsettled() == 0


def test_progress_of_a_replay_is_no_signal_of_a_destination(lane: MemoryLane):
    known(lane)
    signal = DestinationSignal(SIGNAL_VERSION, "c1", "transmit-0", "p", "crm", NOW, "open", NOW + 5 * S, of_version=1)
    progress = ReplayProgress(1, "replay_1", NOW, {}, {})
    for value in (encode_signal(signal), encode_replay_progress(progress)):
        lane.work._signal_state.apply(replay_progress_key("replay_1"), value, NOW)
    lane.take(parked(lane, 0, NOW))
    assert len(passed_on(lane)) == 1
