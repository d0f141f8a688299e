"""The retrier: holds each message until it is due, in order of due times, and commits nothing that it still holds."""

from pathlib import Path

import pytest

from dataplane.ledger.meta import read_meta
from dataplane.retrier import work as module
from dataplane.retrier.work import RetrierWork
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S
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


def parked(offset: int, due_us: int, **more: object) -> MemoryMessage:
    return message(offset, attempt=2, not_before_us=due_us, **more)  # type: ignore[arg-type]


def passed_on(lane: MemoryLane) -> list[str]:
    return [read_meta(record["headers"]).id for record in lane.outbox.of(lane.cell.topics["retry-out"].name)]


def test_a_message_is_never_passed_on_early(lane: MemoryLane, clock: Clock):
    lane.take(parked(0, NOW + 5 * S))
    clock.now_us += 5 * S - 1
    lane.work.turn()
    assert passed_on(lane) == []
    clock.now_us += 1
    lane.work.turn()
    assert passed_on(lane) == ["id-0-0"]


def test_what_is_due_first_goes_first_and_a_late_one_holds_up_nobody(lane: MemoryLane, clock: Clock):
    lane.take(parked(0, NOW + 60 * S), parked(1, NOW + 2 * S), parked(2, NOW + 1 * S), parked(3, NOW - S))
    clock.now_us += 3 * S
    lane.work.turn()
    assert passed_on(lane) == ["id-0-3", "id-0-2", "id-0-1"]


def test_only_what_is_passed_on_and_stored_is_settled(lane: MemoryLane, clock: Clock):
    lane.take(parked(0, NOW), parked(1, NOW + 60 * S), parked(2, NOW))
    lane.work.turn()
    assert lane.unsettled() == 3
    lane.store()
    assert lane.unsettled() == 1
    assert lane.windows[0].prefix == 1, "what waits is read again after a crash"
    assert lane.filed() == {("transmit:crm", "released", "2"): 2}


def test_body_key_and_headers_go_along_unchanged(lane: MemoryLane):
    keyed, plain = parked(0, NOW, key=b"crm\0p\0k", body=b"\x00\xff"), parked(1, NOW, partition=3)
    lane.take(keyed, plain)
    lane.work.turn()
    first, second = lane.outbox.of(lane.cell.topics["retry-out"].name)
    assert (first["value"], first["headers"], first["key"]) == (b"\x00\xff", keyed.headers(), b"crm\0p\0k")
    assert (second["partition"], "key" in second) == (3, False)


def test_a_partition_that_goes_takes_its_waiting_messages_along(lane: MemoryLane, clock: Clock):
    lane.take(parked(0, NOW + S, partition=0), parked(0, NOW + S, partition=1))
    lane.lose(0)
    clock.now_us += 2 * S
    lane.work.turn()
    assert passed_on(lane) == ["id-1-0"]


def test_a_drain_leaves_what_waits_where_it_is(lane: MemoryLane, clock: Clock):
    lane.take(parked(0, NOW + S))
    lane.work.give_back()
    clock.now_us += 2 * S
    lane.work.turn()
    assert passed_on(lane) == []
    assert lane.windows[0].prefix == 0


def test_the_loop_wakes_in_time_for_the_next_message(lane: MemoryLane, clock: Clock):
    assert lane.work.patience_s() == IDLE_WAIT_S
    lane.take(parked(0, NOW + 20_000))
    assert lane.work.patience_s() == pytest.approx(0.02, abs=0.001)
    clock.now_us += S
    assert lane.work.patience_s() == BUSY_WAIT_S


def test_what_lanes_died_of_is_dead_at_its_destination(lane: MemoryLane):
    lane.condemn(message(5, attempt=1))
    (record,) = lane.outbox.of(lane.cell.topics["dead"].name)
    assert ("penstock-cause", b"crashes-lane") in record["headers"]
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {("transmit:crm", "dead", "crashes-lane"): 1}
