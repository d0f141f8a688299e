"""Lanes share the state of a destination in rare signals, and trust each other within limits."""

from pathlib import Path

import msgspec
import pytest

from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, decode_signal
from dataplane.transmit.destinations.targets import STORM, DestinationTarget
from dataplane.transmit.policy.breaker import MIN_VOLUME
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import Clock, destination, opened, signals_of, without_kafka


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def told(lane: MemoryLane) -> list[DestinationSignal]:
    return [decode_signal(record["value"]) for record in lane.producer.of(lane.cell.topics["signals"].name)]


def target_of(work: TransmitWork) -> DestinationTarget:
    return work._targets.find("p", "crm")


def signal(clock: Clock, writer: str = "transmit-1", **fields: object) -> DestinationSignal:
    base = DestinationSignal(SIGNAL_VERSION, "c1", writer, "p", "crm", clock.wall_us, of_version=1)
    return msgspec.structs.replace(base, **fields)


def open_breaker(lane: MemoryLane) -> None:
    sender = lane.work._sender
    lane.take(*(message(n) for n in range(MIN_VOLUME)))
    lane.work.poll()
    sender.answer(500)
    lane.work.poll()


def test_healthy_destination_causes_no_signal(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    for _ in range(5):
        work.poll()
        sender.answer(204)
        clock.advance(1.1)
    assert not told(lane)
    work.close()


def test_state_change_is_published_once_and_at_most_once_a_second(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination())
    open_breaker(lane)
    for _ in range(30):
        clock.advance(0.1)
        work.poll()
    (one,) = told(lane)
    assert (one.breaker, one.writer, one.of_version, one.status) == ("open", "transmit-0", 1, 500)
    assert 0 < one.until_us - clock.wall_us < 6_000_000
    assert lane.producer.of(lane.cell.topics["signals"].name)[0]["key"] == b"p/crm/transmit-0"
    work.close()


def test_suspension_is_published_with_its_cause_and_last_response(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(*(message(n) for n in range(STORM)))
    work.poll()
    sender.answer(403)
    work.poll()
    clock.advance(1.1)
    work.poll()
    (one,) = told(lane)
    assert (one.suspended, one.status, one.in_a_row, one.reason) == ("storm", 403, STORM, "rejected: returned 403")
    work.close()


def test_open_breaker_of_another_lane_is_adopted_and_closed_by_the_probers_signal(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, breaker="open", until_us=clock.wall_us + 5_000_000))
    work.poll()
    lane.take(message(5))
    work.poll()
    assert not sender.begun
    clock.advance(2)
    signals_of(work).put(signal(clock, "transmit-2", breaker="closed"))
    work.poll()
    assert target_of(work).breaker.state == "open", "only a prober can report the recovery"
    clock.advance(1)
    signals_of(work).put(signal(clock, "transmit-retry-0", breaker="closed"))
    work.poll()
    lane.take(message(6))
    work.poll()
    assert len(sender.begun) == 1
    work.close()


@pytest.mark.parametrize("met", [True, False], ids=["known before", "met later"])
def test_prober_probes_after_an_expired_opening_and_publishes_the_recovery(tmp_path: Path, clock: Clock, met: bool):
    lane, work, sender = opened(tmp_path, destination(), kind="transmit-retry")
    if met:
        assert target_of(work).breaker.state == "closed"
    signals_of(work).put(signal(clock, "transmit-0", breaker="open", until_us=clock.wall_us - 30_000_000))
    work.poll()
    lane.take(*(message(n) for n in range(5)))
    for _ in range(5):
        work.poll()
        assert len(sender.begun) <= 2 or target_of(work).breaker.state == "closed"
        sender.answer(204)
        work.poll()
    clock.advance(1.1)
    work.poll()
    assert told(lane)[-1].breaker == "closed"
    work.close()


def test_transmit_lane_does_not_stop_for_an_expired_opening(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, "transmit-1", breaker="open", until_us=clock.wall_us - 1))
    work.poll()
    lane.take(message(5))
    work.poll()
    assert len(sender.begun) == 1
    work.close()


@pytest.mark.parametrize("of_version", [0, 1])
def test_signal_of_an_older_destination_record_is_ignored(tmp_path: Path, clock: Clock, of_version: int):
    lane, work, _sender = opened(tmp_path, destination(version=2))
    signals_of(work).put(signal(clock, suspended="gone", of_version=of_version))
    work.poll()
    assert not target_of(work).holds
    work.close()
    assert lane.unsettled() == 0


def test_suspension_of_another_lane_is_adopted_and_ended_by_a_newer_record(tmp_path: Path, clock: Clock):
    lane, work, _sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, suspended="gone"))
    work.poll()
    assert target_of(work).holds, "an earlier signal applies to a destination that is first used later"
    lane.table.apply(destination(version=2))
    assert not target_of(work).holds
    work.close()


def test_own_signal_from_before_the_restart_counts_and_its_echo_does_not(tmp_path: Path, clock: Clock):
    _lane, work, _sender = opened(tmp_path, destination())
    signals_of(work).put(signal(clock, "transmit-0", suspended="gone", at_us=clock.wall_us + 1))
    work.poll()
    assert not target_of(work).holds, "its own echo"
    clock.advance(1)
    signals_of(work).put(signal(clock, "transmit-0", suspended="gone", at_us=clock.wall_us - 60_000_000))
    work.poll()
    assert target_of(work).holds
    work.close()


@pytest.mark.parametrize(
    ("key", "value"), [(b"move/m1", b"\x93\x01\x02\x03"), (None, b"x"), (b"p/crm/transmit-1", b"junk"), (b"\xff", b"")]
)
def test_record_that_is_no_signal_is_ignored(tmp_path: Path, clock: Clock, key: bytes | None, value: bytes):
    _lane, work, _sender = opened(tmp_path, destination())
    signals_of(work).put_raw(key, value)
    work.poll()
    work.close()
