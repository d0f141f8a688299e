"""A healthy but slow destination gets a lane of its own, and leaves it when it is fast again."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.ledger.facts import SLOW, Fact
from dataplane.names import LaneKind
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, decode_signal
from dataplane.transmit.policy.destination_latency import QUICK_STEPS, SLOW_STEPS, STEP_S, DestinationLatency
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import (
    NODE,
    Clock,
    MemorySender,
    destination,
    opened,
    signals_of,
    without_kafka,
)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def steps(slowness: DestinationLatency, count: int, latency_s: float, now_s: float = 0.0) -> float:
    """Run `count` steps of two responses each; return the time at their end."""
    for _ in range(count):
        slowness.answered(now_s, latency_s)
        now_s += STEP_S
        slowness.answered(now_s, latency_s)
    return now_s


@pytest.mark.parametrize(
    ("slow_steps", "quick_steps", "is_slow"),
    [
        pytest.param(SLOW_STEPS - 1, 0, False, id="a few slow steps are none"),
        pytest.param(SLOW_STEPS, 0, True, id="slow steps in a row"),
        pytest.param(SLOW_STEPS, QUICK_STEPS - 1, True, id="a few quick steps do not bring it back"),
        pytest.param(SLOW_STEPS, QUICK_STEPS, False, id="many in a row do"),
    ],
)
def test_state_changes_only_after_several_steps_in_a_row(slow_steps: int, quick_steps: int, is_slow: bool):
    slowness = DestinationLatency()
    now_s = steps(slowness, slow_steps, 1.5)
    steps(slowness, quick_steps, 0.1, now_s)
    assert slowness.is_slow is is_slow


@pytest.mark.parametrize(
    ("latencies_s", "is_slow"),
    [
        pytest.param([1.5] * (SLOW_STEPS - 1) + [0.7] + [1.5] * (SLOW_STEPS - 1), False, id="while it is not slow"),
        pytest.param([1.5] * SLOW_STEPS + ([0.1] * (QUICK_STEPS - 1) + [0.7]) * 3, True, id="while it is"),
    ],
)
def test_latency_between_the_thresholds_changes_nothing_and_resets_the_streak(latencies_s: list[float], is_slow: bool):
    slowness, now_s = DestinationLatency(), 0.0
    for latency_s in latencies_s:
        now_s = steps(slowness, 1, latency_s, now_s)
    assert slowness.is_slow is is_slow


def test_single_long_response_is_not_slow():
    slowness = DestinationLatency()
    slowness.answered(0.0, 25.0)
    steps(slowness, 50, 0.1, 30.0)
    assert not slowness.is_slow


def opened_beside_a_slow_lane(
    var: Path, kind: LaneKind = "transmit", **to: Any
) -> tuple[MemoryLane, TransmitWork, MemorySender]:
    lane, work, sender = opened(var, destination(**to), kind=kind)
    lanes = {"transmit": 1, "transmit-slow": 1}
    lane.table.apply(msgspec.structs.replace(lane.cell, version=2, lanes=lanes))
    return lane, work, sender


def make_slow(work: TransmitWork, clock: Clock) -> None:
    """Record responses of 1.5 s until the destination is slow."""
    steps(work._targets.find("p", "crm").slowness, SLOW_STEPS, 1.5, clock.now_s)


def slow_records(lane: MemoryLane) -> list[bytes]:
    return [record["value"] for record in lane.producer.of(lane.cell.topics["slow"].name)]


def test_message_of_a_slow_destination_is_diverted_to_the_slow_lane_and_reported(tmp_path: Path, clock: Clock):
    lane, work, sender = opened_beside_a_slow_lane(tmp_path)
    make_slow(work, clock)
    lane.take(message(5, b'{"a":1}'))
    work.poll()
    assert slow_records(lane) == [b'{"a":1}']
    assert not sender.begun
    assert lane.unsettled() == 1, "until its record is stored"
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, Fact.SENT, SLOW): 1}
    work.close()


@pytest.mark.parametrize(
    ("kind", "to", "has_slow_lane"),
    [
        pytest.param("transmit", {}, False, id="no slow lane runs"),
        pytest.param("transmit", {"ordered": True}, True, id="it wants order"),
        pytest.param("transmit-slow", {}, True, id="this is the slow lane"),
        pytest.param("transmit-retry", {}, True, id="this is the retry lane"),
    ],
)
def test_lane_that_may_not_divert_sends(
    tmp_path: Path, clock: Clock, kind: LaneKind, to: dict[str, Any], has_slow_lane: bool
):
    open_lane = opened_beside_a_slow_lane if has_slow_lane else _opened_alone
    lane, work, sender = open_lane(tmp_path, kind, **to)
    make_slow(work, clock)
    lane.take(message(5, topic=lane.slots.topics[0]))
    for _ in range(30):
        clock.advance(0.1)
        work.poll()
    assert len(sender.begun) == 1
    assert not slow_records(lane)
    work.close()


def _opened_alone(var: Path, kind: LaneKind, **to: Any) -> tuple[MemoryLane, TransmitWork, MemorySender]:
    return opened(var, destination(**to), kind=kind)


def signal(clock: Clock, writer: str, *, slow: bool) -> DestinationSignal:
    return DestinationSignal(SIGNAL_VERSION, "c1", writer, "p", "crm", clock.wall_us, slow=slow, of_version=1)


def is_slow(work: TransmitWork) -> bool:
    return work._targets.find("p", "crm").slowness.is_slow


def test_transmit_lane_marks_a_destination_slow_and_only_the_slow_lane_clears_it(tmp_path: Path, clock: Clock):
    _, work, _ = opened_beside_a_slow_lane(tmp_path)
    for writer, slow, expected in (
        ("transmit-retry-0", True, False),
        ("transmit-1", True, True),
        ("transmit-1", False, True),
        ("transmit-retry-0", False, True),
        ("transmit-slow-0", False, False),
    ):
        clock.advance(1)
        is_slow(work)  # the lane knows the destination
        signals_of(work).put(signal(clock, writer, slow=slow))
        work.poll()
        assert is_slow(work) is expected, (writer, slow)
    work.close()


def test_older_signal_does_not_clear_the_slow_state(tmp_path: Path, clock: Clock):
    _, work, _ = opened_beside_a_slow_lane(tmp_path)
    is_slow(work)
    before = signal(clock, "transmit-slow-0", slow=False)
    clock.advance(1)
    signals_of(work).put(signal(clock, "transmit-1", slow=True))
    signals_of(work).put(before)
    work.poll()
    assert is_slow(work)
    work.close()


def test_slow_state_is_published_once_and_a_newer_record_ends_it(tmp_path: Path, clock: Clock):
    lane, work, _ = opened_beside_a_slow_lane(tmp_path)
    make_slow(work, clock)
    for _ in range(3):
        clock.advance(1.1)
        work.poll()
    lane.table.apply(destination(version=2))
    clock.advance(1.1)
    work.poll()
    told = [decode_signal(record["value"]) for record in lane.producer.of(lane.cell.topics["signals"].name)]
    assert [one.slow for one in told] == [True, False]
    work.close()
