"""Backpressure of replays: no more than two jobs of copies wait for a destination, also in the slow lane."""

import itertools
import time
from typing import Any

import pytest
from confluent_kafka import KafkaException

from dataplane.jobs import replay_gate, replay_queue, transmit_offsets
from dataplane.names import lane_group
from dataplane.replay import backlog
from dataplane.replay.decisions import PAUSED
from dataplane.replay.progress_log import read_slow
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import DestinationRecord, PipeRecord, PlanRecord
from dataplane.tables.signals import DestinationSignal, encode_signal, signal_key
from tests.support.patience import Patience
from tests.support.replay_driver import SIGNALS, ReplayDriver, table_of, world_of
from tests.support.replaying import CELL, PARTITIONS, PIPE, TOPICS, GroupReader, LogReader, ReplayWorld, replay

SPEC: dict[str, Any] = {
    "sources": {"shop": {}},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example"}},
}
EVENTS = 40
PER_JOB = 4  # two tasks of two events
TRANSMIT, SLOW = lane_group(CELL, "transmit"), lane_group(CELL, "transmit-slow")
REASON = "waits for destination crm, which is slower than the replay"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ReplayWorld:
    monkeypatch.setattr(replay_gate, "LONG_S", -1.0)
    monkeypatch.setattr(transmit_offsets, "SLOW_FOR_S", 0.0)
    return world_of(EVENTS, monkeypatch)


@pytest.fixture
def driver(world: ReplayWorld) -> ReplayDriver:
    made = ReplayDriver(world, table_of(SPEC))
    made.records["rep_1"] = replay()
    return made


def run_jobs(driver: ReplayDriver) -> int:
    """Run jobs of PER_JOB events until none is due; return the number of all jobs so far."""
    for _ in range(50):
        driver.stops_at = dict.fromkeys(range(PARTITIONS), PER_JOB // 2)
        if not driver.turn():
            break
    return len(driver.jobs)


def reason(driver: ReplayDriver) -> str:
    stored = driver.stored()
    assert stored is not None
    return stored.error


def report(world: ReplayWorld, writer: str, *, slow: bool, at_us: int, name: str = "crm") -> None:
    signal = DestinationSignal(1, CELL, writer, PIPE, name, at_us, slow=slow)
    world.kafka.append(SIGNALS, encode_signal(signal), [], signal_key(signal).encode(), 0)


def test_destination_that_takes_nothing_gets_two_jobs_and_is_named(world: ReplayWorld, driver: ReplayDriver):
    world.delivers[TRANSMIT], world.stuck[TRANSMIT] = False, 0
    assert run_jobs(driver) == 2
    assert PER_JOB < len(world.copies()) <= 2 * PER_JOB
    patience = Patience(30)
    while reason(driver) != REASON and not patience.is_over:
        driver.turn()  # due again after the pause of its lower rate
    assert (len(driver.jobs), reason(driver)) == (2, REASON)
    world.delivers[TRANSMIT] = True
    driver.run_all()
    assert (len(world.copies()), reason(driver)) == (EVENTS, "")


def test_first_job_is_as_fast_as_the_endpoint_has_concurrent_requests(
    driver: ReplayDriver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(replay_queue, "start_pace", backlog.start_pace)
    run_jobs(driver)
    assert sum(task.units_per_s for task in driver.jobs[0]) == 64


def test_short_wait_is_not_reported(world: ReplayWorld, driver: ReplayDriver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replay_gate, "LONG_S", 60.0)
    world.delivers[TRANSMIT], world.stuck[TRANSMIT] = False, 0
    assert run_jobs(driver) == 2
    assert reason(driver) == ""


def test_pause_while_copies_wait_lowers_no_rate(
    world: ReplayWorld, driver: ReplayDriver, monkeypatch: pytest.MonkeyPatch
):
    world.delivers[SLOW], world.stuck[SLOW] = False, 0
    world.kafka.append(TOPICS["slow"].name, b"{}", [], None, 0)
    report(world, "transmit-0", slow=True, at_us=1)
    assert run_jobs(driver) == 2
    driver.records["rep_1"] = replay(state="paused")
    later_s = time.monotonic() + 3_600
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    driver.turn()
    assert reason(driver) == PAUSED
    world.delivers[SLOW] = True
    driver.records["rep_1"] = replay()
    driver.stops_at = dict.fromkeys(range(PARTITIONS), PER_JOB // 2)
    assert driver.turn()
    assert sum(task.units_per_s for task in driver.jobs[-1]) > 1_000


def test_destination_that_takes_all_is_never_waited_for(world: ReplayWorld, driver: ReplayDriver):
    assert run_jobs(driver) == EVENTS // PER_JOB
    assert reason(driver) == ""


@pytest.mark.parametrize("error", [None, KafkaException("no coordinator")])
def test_unknown_offsets_do_not_block_for_ever(
    world: ReplayWorld, driver: ReplayDriver, error: KafkaException | None, monkeypatch: pytest.MonkeyPatch
):
    world.delivers[TRANSMIT], world.offsets_error = False, error
    assert run_jobs(driver) == 2
    monkeypatch.setattr(backlog, "UNKNOWN_S", 0.0)
    driver.run_all()
    assert len(world.copies()) == EVENTS


def test_copies_in_the_slow_lane_count_while_their_destination_is_slow(world: ReplayWorld, driver: ReplayDriver):
    """Copies for a slow destination pass egress at once, and wait on the slow lane's topic."""
    world.delivers[SLOW], world.stuck[SLOW] = False, 0
    world.kafka.append(TOPICS["slow"].name, b"{}", [], None, 0)
    report(world, "transmit-0", slow=True, at_us=1)
    assert run_jobs(driver) == 2
    assert reason(driver) == REASON
    world.delivers[SLOW] = True
    driver.run_all()
    assert len(world.copies()) == EVENTS


def test_copies_are_not_forgotten_if_the_slow_lane_cannot_be_asked(
    world: ReplayWorld, driver: ReplayDriver, monkeypatch: pytest.MonkeyPatch
):
    for group in (TRANSMIT, SLOW):
        world.delivers[group], world.stuck[group] = False, 0
    world.kafka.append(TOPICS["slow"].name, b"{}", [], None, 0)
    report(world, "transmit-0", slow=True, at_us=1)
    assert run_jobs(driver) == 2
    world.delivers[TRANSMIT] = True
    watermarks, slow = LogReader.get_watermark_offsets, TOPICS["slow"].name

    def refuse_once(reader: LogReader, place: Any, timeout: float) -> Any:
        if place.topic != slow:
            return watermarks(reader, place, timeout)
        monkeypatch.setattr(LogReader, "get_watermark_offsets", watermarks)
        raise KafkaException("away")

    monkeypatch.setattr(LogReader, "get_watermark_offsets", refuse_once)
    patience = Patience(30)
    while reason(driver) != REASON and not patience.is_over:
        driver.turn()
    assert LogReader.get_watermark_offsets is watermarks, "it was asked"
    assert run_jobs(driver) == 2


def test_run_that_becomes_due_during_a_turn_does_not_skip_the_gate(
    world: ReplayWorld, driver: ReplayDriver, monkeypatch: pytest.MonkeyPatch
):
    world.delivers[TRANSMIT], world.stuck[TRANSMIT] = False, 0
    assert run_jobs(driver) == 2
    clock, due_s = itertools.count(time.monotonic(), 1.0), time.monotonic() + 0.5
    driver.queue._states["rep_1"].due_s = due_s
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))  # each reading is a second later
    for _ in range(3):
        driver.turn()
    assert time.monotonic() > due_s
    assert len(driver.jobs) == 2


def test_messages_of_others_in_the_slow_lane_do_not_count(world: ReplayWorld, driver: ReplayDriver):
    world.delivers[SLOW], world.stuck[SLOW] = False, 0
    world.kafka.append(TOPICS["slow"].name, b"{}", [], None, 0)
    report(world, "transmit-0", slow=True, at_us=1, name="erp")
    assert run_jobs(driver) == EVENTS // PER_JOB


def test_replays_of_a_turn_ask_for_the_committed_offsets_once(world: ReplayWorld, monkeypatch: pytest.MonkeyPatch):
    """Each question takes seconds while a group has no coordinator, and a cell may have a replay of each tenant."""
    driver, asked = ReplayDriver(world, table_of(SPEC), offsets_known_for_s=60.0), []
    committed = GroupReader.committed

    def counted(reader: GroupReader, *args: Any, **kwargs: Any) -> Any:
        asked.append(reader)
        return committed(reader, *args, **kwargs)

    monkeypatch.setattr(GroupReader, "committed", counted)
    for number in range(5):
        driver.table.apply(PipeRecord(f"p{number}", 1, f"t{number}", "orders", CELL, "active", [(2, 100)]))
        driver.table.apply(PlanRecord(f"p{number}", 2, parse_pipe_spec(SPEC)))
        to = parse_pipe_spec(SPEC).destinations["crm"]
        driver.table.apply(DestinationRecord(f"p{number}", "crm", 1, "active", to, []))
        driver.records[f"rep_{number}"] = replay(replay=f"rep_{number}", pipe=f"p{number}")
    for _ in range(6):
        driver.turn()
    assert len(driver.jobs) == 1
    assert len(asked) == len(transmit_offsets.KINDS)


def test_rehearsal_waits_for_no_destination(world: ReplayWorld, driver: ReplayDriver):
    world.delivers[TRANSMIT], world.stuck[TRANSMIT] = False, 0
    driver.records["rep_1"] = replay(rehearsal=True)
    assert run_jobs(driver) == EVENTS // PER_JOB


def test_slow_destinations_are_those_of_the_newest_signals(world: ReplayWorld):
    now_us = time.time_ns() // 1_000
    report(world, "transmit-0", slow=True, at_us=now_us)
    report(world, "transmit-1", slow=False, at_us=now_us + 1)
    assert read_slow(world.reader(), SIGNALS) == {(PIPE, "crm")}, "a lane of first attempts may not know it yet"
    report(world, "transmit-slow-0", slow=False, at_us=now_us + 2)
    assert read_slow(world.reader(), SIGNALS) == set()
    world.kafka.append(SIGNALS, b"newer", [], b"p/crm/transmit-7", 0)
    report(world, "transmit-1", slow=True, at_us=now_us + 3)
    assert read_slow(world.reader(), SIGNALS) == {(PIPE, "crm")}
