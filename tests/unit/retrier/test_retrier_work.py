"""The retrier: from topic to topic, never early, in its own time, and nothing committed that is not passed on."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.deadletter import Death, death_of
from dataplane.ledger.meta import Meta, read_meta
from dataplane.names import DELAYS_S, Purpose
from dataplane.retrier import work as module
from dataplane.retrier.work import AT_HAND_US, LEAVE_HEADER, WINDOW, RetrierWork
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S
from dataplane.spec import HttpDestination, Retry
from dataplane.tables.records import DestinationRecord
from tests.rig.memory_lane import MemoryLane, MemoryMessage, message

S = 1_000_000
NOW = 1_790_000_000 * S


class Clock:
    """The wall clock of the retrier, set by the test."""

    def __init__(self) -> None:
        self.now_us = NOW

    def time_ns(self) -> int:
        return self.now_us * 1_000

    def time(self) -> float:
        return self.now_us / S


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def lane(tmp_path: Path, clock: Clock) -> MemoryLane:
    made = MemoryLane("retrier", tmp_path)
    made.work = RetrierWork(made)  # type: ignore[arg-type]
    return made


def parked(lane: MemoryLane, offset: int, due_us: int, topic: Purpose = "retry-in", **more: Any) -> MemoryMessage:
    fields: dict[str, Any] = {"attempt": 2, "not_before_us": due_us, "first_us": NOW - S, **more}
    return message(offset, topic=lane.cell.topics[topic].name, **fields)


def in_tier(lane: MemoryLane, offset: int, leave_us: int, due_us: int = 0, **more: Any) -> MemoryMessage:
    leave = [(LEAVE_HEADER, str(leave_us).encode())]
    return parked(lane, offset, due_us or leave_us, **{"topic": "delay-10s", **more}, more=leave)


def metas(lane: MemoryLane, purpose: Purpose) -> list[Meta]:
    return [read_meta(record["headers"]) for record in lane.outbox.of(lane.cell.topics[purpose].name)]


def passed_on(lane: MemoryLane) -> list[str]:
    return [meta.id for meta in metas(lane, "retry-out")]


def test_what_is_parked_goes_to_a_tier_and_says_when_it_leaves(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW + 300 * S), parked(lane, 1, NOW + 3 * S))
    (five,) = lane.outbox.of(lane.cell.topics["delay-5m"].name)
    (ten,) = lane.outbox.of(lane.cell.topics["delay-10s"].name)
    assert five["headers"][-1] == (LEAVE_HEADER, str(NOW + 300 * S).encode())
    assert ten["headers"][-1] == (LEAVE_HEADER, str(NOW + 3 * S).encode())
    assert passed_on(lane) == []


def test_what_is_due_already_goes_out_at_once(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW - S), parked(lane, 1, 0))
    assert passed_on(lane) == ["id-0-0", "id-0-1"]


def test_a_message_is_never_passed_on_early(lane: MemoryLane, clock: Clock):
    lane.take(in_tier(lane, 0, NOW + 5 * S))
    clock.now_us += 5 * S - 1
    lane.work.turn()
    assert passed_on(lane) == []
    clock.now_us += 1
    lane.work.turn()
    assert passed_on(lane) == ["id-0-0"]


def test_what_leaves_its_tier_with_more_to_wait_goes_to_another(lane: MemoryLane, clock: Clock):
    lane.take(in_tier(lane, 0, NOW + 7_200 * S, NOW + 18_000 * S, topic="delay-2h"))
    clock.now_us += 7_200 * S
    lane.work.turn()
    assert passed_on(lane) == []
    (meta,) = metas(lane, "delay-2h")
    assert meta.not_before_us == NOW + 18_000 * S


def test_what_leaves_first_goes_first_and_a_late_one_holds_up_nobody(lane: MemoryLane, clock: Clock):
    leaves = (60, 2, 1, -1)
    lane.take(*(in_tier(lane, offset, NOW + leave * S) for offset, leave in enumerate(leaves)))
    clock.now_us += 3 * S
    lane.work.turn()
    assert passed_on(lane) == ["id-0-3", "id-0-2", "id-0-1"]


def test_only_what_the_next_topic_has_is_settled(lane: MemoryLane):
    lane.take(parked(lane, 0, NOW), parked(lane, 1, NOW + 60 * S), in_tier(lane, 0, NOW + 9 * S))
    lane.work.turn()
    assert lane.unsettled() == 3
    lane.store()
    assert lane.unsettled() == 1, "what waits in a tier is read again after a crash"
    assert lane.filed() == {("transmit:crm", "released", "2"): 1, ("transmit:crm", "parked", "2"): 1}


def test_body_key_and_headers_go_along_unchanged(lane: MemoryLane):
    keyed = in_tier(lane, 0, NOW - S, key=b"crm\0p\0k", body=b"\x00\xff")
    plain = parked(lane, 1, NOW, partition=3)
    lane.take(keyed, plain)
    lane.work.turn()
    second, first = lane.outbox.of(lane.cell.topics["retry-out"].name)
    assert (first["value"], first["headers"], first["key"]) == (b"\x00\xff", keyed.headers()[:-1], b"crm\0p\0k")
    assert (second["partition"], "key" in second) == (3, False)


def test_windows_are_small_for_there_are_many(lane: MemoryLane):
    assert lane.bounds[0] == WINDOW
    assert len(lane.slots.topics) == 1 + len(DELAYS_S)


def test_a_partition_that_goes_takes_its_waiting_messages_along_and_no_other_topics(lane: MemoryLane, clock: Clock):
    lane.take(*(in_tier(lane, 0, NOW + S, topic=tier, id=tier) for tier in ("delay-10s", "delay-1m")))
    lane.lose(lane.slots.of(in_tier(lane, 0, 0)))
    clock.now_us += 2 * S
    lane.work.turn()
    assert passed_on(lane) == ["delay-1m"]


def test_a_drain_leaves_what_waits_where_it_is(lane: MemoryLane, clock: Clock):
    lane.take(in_tier(lane, 0, NOW + S))
    lane.work.give_back()
    clock.now_us += 2 * S
    lane.work.turn()
    assert passed_on(lane) == []
    assert lane.unsettled() == 1


def test_the_loop_wakes_in_time_for_the_next_message(lane: MemoryLane, clock: Clock):
    assert lane.work.patience_s() == IDLE_WAIT_S
    lane.take(in_tier(lane, 0, NOW + 20_000))
    assert lane.work.patience_s() == pytest.approx(0.02, abs=0.001)
    clock.now_us += S
    assert lane.work.patience_s() == BUSY_WAIT_S


def test_many_of_one_destination_come_back_at_its_pace_and_another_at_once(lane: MemoryLane, clock: Clock):
    lane.take(*(parked(lane, offset, NOW) for offset in range(3_000)), parked(lane, 3_000, NOW, destination="log"))
    assert len(passed_on(lane)) == 1_001
    assert passed_on(lane)[-1] == "id-0-3000", "another destination's does not wait"
    delayed = metas(lane, "delay-10s")
    assert [meta.not_before_us for meta in delayed] == [NOW + 1_000 * n for n in range(1, 2_001)]
    assert all(meta.paced for meta in delayed)


def test_a_message_keeps_the_moment_it_was_given(lane: MemoryLane, clock: Clock):
    lane.take(*(parked(lane, offset, NOW) for offset in range(2_000)))
    before = len(passed_on(lane))
    lane.take(in_tier(lane, 0, NOW, paced=True))
    lane.work.turn()
    assert len(passed_on(lane)) == before + 1
    assert not metas(lane, "retry-out")[-1].paced


def test_in_hand_a_message_waits_for_a_moment_that_is_near(lane: MemoryLane, clock: Clock):
    lane.take(*(in_tier(lane, offset, NOW) for offset in range(1_500)))
    lane.work.turn()
    assert (len(passed_on(lane)), metas(lane, "delay-10s")) == (1_000, [])
    clock.now_us += AT_HAND_US
    lane.work.turn()
    assert len(passed_on(lane)) == 1_500


def test_what_cannot_come_back_within_its_span_is_dead_and_says_so(lane: MemoryLane, clock: Clock):
    to = HttpDestination("https://crm.example/", retry=Retry(span_s=2))
    lane.table.apply(DestinationRecord("p", "crm", 1, "active", to, []))
    lane.take(*(parked(lane, offset, NOW) for offset in range(3_000)))
    letters = lane.outbox.of(lane.cell.topics["dead"].name)
    assert len(passed_on(lane)) + len(metas(lane, "delay-10s")) + len(letters) == 3_000
    assert len(letters) == pytest.approx(1_000, abs=1)
    assert death_of(letters[0]["headers"]) == Death(
        "transmit:crm", "expired", "its span was over before its destination's turn came"
    )
    lane.store()
    assert lane.filed()["transmit:crm", "dead", "expired"] == len(letters)
