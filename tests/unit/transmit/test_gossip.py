"""Lanes tell each other what they know of a destination, seldom, and believe each other only so far."""

from pathlib import Path

import msgspec
import pytest

from dataplane.tables.signals import SIGNAL_VERSION, Signal, decode_signal
from dataplane.transmit.breaker import MIN_VOLUME
from dataplane.transmit.targets import STORM, Target
from dataplane.transmit.work import TransmitWork
from tests.rig.memory_lane import MemoryLane, message
from tests.rig.transmitting import Clock, destination, opened, signals_of, without_kafka


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def told(lane: MemoryLane) -> list[Signal]:
    return [decode_signal(record["value"]) for record in lane.outbox.of(lane.cell.topics["signals"].name)]


def target_of(work: TransmitWork) -> Target:
    return work._targets.find("p", "crm")


def signal(clock: Clock, writer: str = "transmit-1", **fields: object) -> Signal:
    base = Signal(SIGNAL_VERSION, "c1", writer, "p", "crm", clock.wall_us, of_version=1)
    return msgspec.structs.replace(base, **fields)


def open_breaker(lane: MemoryLane) -> None:
    sender = lane.work._sender
    lane.take(*(message(n) for n in range(MIN_VOLUME)))
    lane.work.turn()
    sender.answer(500)
    lane.work.turn()


def test_a_destination_that_is_well_is_not_talked_about(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    for _ in range(5):
        work.turn()
        sender.answer(204)
        clock.advance(1.1)
    assert not told(lane)
    work.close()


def test_a_change_is_told_once_and_at_most_once_a_second(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination())
    open_breaker(lane)
    for _ in range(30):
        clock.advance(0.1)
        work.turn()
    (one,) = told(lane)
    assert (one.breaker, one.writer, one.of_version, one.status) == ("open", "transmit-0", 1, 500)
    assert 0 < one.until_us - clock.wall_us < 6_000_000
    assert lane.outbox.of(lane.cell.topics["signals"].name)[0]["key"] == b"p/crm/transmit-0"
    work.close()


def test_a_suspension_is_told_with_its_cause_and_last_answer(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(*(message(n) for n in range(STORM)))
    work.turn()
    sender.answer(403)
    work.turn()
    clock.advance(1.1)
    work.turn()
    (one,) = told(lane)
    assert (one.suspended, one.status, one.in_a_row, one.reason) == ("storm", 403, STORM, "rejected: answered 403")
    work.close()


def test_another_lanes_open_breaker_is_ours_and_the_probers_good_word_closes_it(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, breaker="open", until_us=clock.wall_us + 5_000_000))
    work.turn()
    lane.take(message(5))
    work.turn()
    assert not sender.begun
    clock.advance(2)
    signals_of(work).put(signal(clock, "transmit-2", breaker="closed"))
    work.turn()
    assert target_of(work).breaker.state == "open", "only a prober knows that it is well again"
    clock.advance(1)
    signals_of(work).put(signal(clock, "transmit-retry-0", breaker="closed"))
    work.turn()
    lane.take(message(6))
    work.turn()
    assert len(sender.begun) == 1
    work.close()


@pytest.mark.parametrize("met", [True, False], ids=["known before", "met later"])
def test_a_prober_finds_out_about_an_opening_whose_time_is_over_and_says_that_it_is_well(
    tmp_path: Path, clock: Clock, met: bool
):
    lane, work, sender = opened(tmp_path, destination(), kind="transmit-retry")
    if met:
        assert target_of(work).breaker.state == "closed"
    signals_of(work).put(signal(clock, "transmit-0", breaker="open", until_us=clock.wall_us - 30_000_000))
    work.turn()
    lane.take(*(message(n) for n in range(5)))
    for _ in range(5):
        work.turn()
        assert len(sender.begun) <= 2 or target_of(work).breaker.state == "closed"
        sender.answer(204)
        work.turn()
    clock.advance(1.1)
    work.turn()
    assert told(lane)[-1].breaker == "closed"
    work.close()


def test_a_lane_of_first_attempts_does_not_stop_for_an_opening_whose_time_is_over(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, "transmit-1", breaker="open", until_us=clock.wall_us - 1))
    work.turn()
    lane.take(message(5))
    work.turn()
    assert len(sender.begun) == 1
    work.close()


@pytest.mark.parametrize("of_version", [0, 1])
def test_what_was_seen_under_an_older_record_counts_no_more(tmp_path: Path, clock: Clock, of_version: int):
    lane, work, _sender = opened(tmp_path, destination(version=2))
    signals_of(work).put(signal(clock, suspended="gone", of_version=of_version))
    work.turn()
    assert not target_of(work).holds
    work.close()
    assert lane.unsettled() == 0


def test_a_suspension_is_believed_and_ended_by_a_newer_record(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, suspended="gone"))
    work.turn()
    assert target_of(work).holds, "a destination met later is known by what was said before"
    lane.table.apply(destination(version=2))
    assert not target_of(work).holds
    work.close()


def test_a_lanes_own_word_from_before_its_restart_counts_and_its_echo_does_not(tmp_path: Path, clock: Clock):
    _lane, work, _sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, "transmit-0", suspended="gone", at_us=clock.wall_us + 1))
    work.turn()
    assert not target_of(work).holds, "its echo"
    clock.advance(1)
    signals_of(work).put(signal(clock, "transmit-0", suspended="gone", at_us=clock.wall_us - 60_000_000))
    work.turn()
    assert target_of(work).holds
    work.close()


@pytest.mark.parametrize(
    ("key", "value"), [(b"move/m1", b"\x93\x01\x02\x03"), (None, b"x"), (b"p/crm/transmit-1", b"junk"), (b"\xff", b"")]
)
def test_what_is_no_signal_is_passed_over(tmp_path: Path, clock: Clock, key: bytes | None, value: bytes):
    _lane, work, _sender = opened(tmp_path, destination())
    signals_of(work).put_raw(key, value)
    work.turn()
    work.close()
