"""A lane whose clock differs from those of other lanes by hours, or jumps, delays no message by more than a minute."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal
from dataplane.transmit.policy.breaker import OPEN_CAP_S
from dataplane.transmit.queues import IN_PLACE_CAP_US
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import Clock, MemorySender, destination, opened, signals_of, without_kafka

HOURS_US = 2 * 3_600 * 1_000_000
MINUTE_S = 60.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def keyed_retry_lane(tmp_path: Path, clock: Clock) -> tuple[MemoryLane, TransmitWork, MemorySender]:
    """Return the retry lane of a destination with order per key, which knows that no key is blocked or held."""
    lane, work, sender = opened(tmp_path, destination(ordered=True), kind="transmit-retry")
    lane.take(message(0, key=b"crm\0other"))
    pass_on(work, clock, 2)
    sender.answer(204)
    work.poll()
    return lane, work, sender


def pass_on(work: TransmitWork, clock: Clock, seconds: float) -> None:
    work.poll()
    clock.advance(seconds)
    work.poll()


def offsets(sender: MemorySender) -> list[int]:
    return [token.meta.position for token in sender.begun]


@pytest.mark.parametrize("ahead_us", [HOURS_US, -HOURS_US], ids=["ahead", "behind"])
def test_message_of_a_lane_with_another_clock_waits_a_minute_at_most(tmp_path: Path, clock: Clock, ahead_us: int):
    lane, work, sender = keyed_retry_lane(tmp_path, clock)
    due_us = clock.wall_us + 5_000_000 + ahead_us
    lane.take(message(1, key=b"crm\0a", attempt=1, not_before_us=due_us))
    pass_on(work, clock, IN_PLACE_CAP_US / 1_000_000)
    assert offsets(sender) == [1]
    work.close()


def test_time_that_a_destination_asked_for_is_kept(tmp_path: Path, clock: Clock):
    lane, work, sender = keyed_retry_lane(tmp_path, clock)
    due_us = clock.wall_us + 300_000_000
    lane.take(message(1, key=b"crm\0a", attempt=1, not_before_us=due_us, asked_us=due_us))
    pass_on(work, clock, 299)
    assert offsets(sender) == []
    pass_on(work, clock, 2)
    assert offsets(sender) == [1]
    work.close()


@pytest.mark.parametrize("jump_us", [HOURS_US, -HOURS_US], ids=["ahead", "back"])
def test_jump_of_the_clock_does_not_change_a_wait_in_place(tmp_path: Path, clock: Clock, jump_us: int):
    lane, work, sender = keyed_retry_lane(tmp_path, clock)
    lane.take(message(1, key=b"crm\0a", attempt=1, not_before_us=clock.wall_us + 30_000_000))
    work.poll()
    clock.wall_us += jump_us
    pass_on(work, clock, 29)
    assert offsets(sender) == []
    pass_on(work, clock, 2)
    assert offsets(sender) == [1]
    work.close()


def opening(clock: Clock, until_us: int) -> DestinationSignal:
    fields: dict[str, Any] = {"of_version": 1, "breaker": "open", "until_us": until_us}
    return DestinationSignal(SIGNAL_VERSION, "c1", "transmit-1", "p", "crm", clock.wall_us, **fields)


def test_opening_by_a_lane_whose_clock_is_hours_ahead_ends_after_a_minute(tmp_path: Path, clock: Clock):
    _, work, _ = opened(tmp_path, destination(), kind="transmit-retry")
    signals_of(work).put(opening(clock, clock.wall_us + HOURS_US))
    pass_on(work, clock, 1.1)
    target = work._targets.find("p", "crm")
    assert target.breaker.state == "open"
    assert target.breaker.until_s - clock.now_s <= OPEN_CAP_S == MINUTE_S
    work.close()
