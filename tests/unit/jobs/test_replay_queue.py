"""Replays of a cell in their turns: facts before progress, continuation after a kill, and reasons for people."""

import base64
import time
from collections import Counter
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaError, KafkaException
from cryptography.fernet import Fernet

from dataplane.jobs import run_queue
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.replay_queue import BY_LANE_S
from dataplane.ledger.bins import Bin
from dataplane.ledger.meta import read_meta
from dataplane.ledger.replay_buckets import replay_bucket
from dataplane.ledger.units import format_position, position_of
from dataplane.names import AUDIT_TOPIC, output_topic
from dataplane.replay.decisions import FAILED, PAUSED
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask
from dataplane.spec import parse_pipe_spec
from dataplane.spec.steps import FilterStep
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord, PlanRecord
from dataplane.tables.replays import decode_replay_progress
from dataplane.tables.sealed import bind, salt_place
from tests.support.replay_driver import ReplayDriver, table_of, world_of
from tests.support.replaying import (
    CELL,
    EGRESS,
    NOW_US,
    PARTITIONS,
    PIPE,
    TOPICS,
    ReplayWorld,
    account_of,
    facts_of,
    replay,
)

SIGNALS = TOPICS["signals"].name
SPEC: dict[str, Any] = {
    "sources": {"shop": {}},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example"}},
}
EVENTS = 12


class KilledError(BaseException):
    """The driver is killed here."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ReplayWorld:
    return world_of(EVENTS, monkeypatch)


@pytest.fixture
def table() -> ControlTable:
    return table_of(SPEC)


def ids(world: ReplayWorld) -> Counter[str]:
    return Counter(read_meta(one.headers()).id for one in world.copies())


def account(world: ReplayWorld, name: str = "rep_1") -> Any:
    return account_of(facts_of(fact for audit in world.audits() for fact in audit.facts if fact.pipe == name))


def test_replay_sends_every_event_once_and_counts_it(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.run_all()
    assert ids(world) == Counter(f"m{number}" for number in range(EVENTS))
    progress = driver.stored()
    assert progress is not None
    assert (progress.done, progress.error, progress.asked, progress.units) == (True, "", EVENTS, {"crm": EVENTS})
    assert progress.reached == progress.ends
    assert {len(tasks) for tasks in driver.jobs} == {2}
    assert account(world).count(Bin.QUEUED) == len(account(world).acked) == EVENTS
    for audit in world.audits():
        assert (audit.writer, audit.kind, audit.inputs) == ("replay", "replay", [])
        assert {(fact.pipe, fact.bucket) for fact in audit.facts} == {("rep_1", replay_bucket(999, 0))}
        assert {mark.topic for mark in audit.outputs} == {EGRESS}
    last = world.audits()[-1].outputs
    assert {mark.partition: mark.offset for mark in last} == {
        number: len(world.kafka.logs[EGRESS, number]) - 1 for number in range(PARTITIONS)
    }


@pytest.mark.parametrize("kill_at", range(1, 10))
def test_driver_killed_at_any_store_skips_nothing_and_repeats_one_job(
    world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch, kill_at: int
):
    stores = 0
    await_stored = QueryLedgerReporter.await_stored

    def killed(reporter: QueryLedgerReporter) -> None:
        nonlocal stores
        stores += 1
        if stores == kill_at:
            raise KilledError
        await_stored(reporter)

    monkeypatch.setattr(QueryLedgerReporter, "await_stored", killed)
    driver = ReplayDriver(world, table)
    driver.stops_at = {1: 2, 2: 1}
    driver.records["rep_1"] = replay()
    try:
        driver.run_all()
        is_killed = False
    except KilledError:
        is_killed = True
    in_progress = sum(one.range.end - one.range.first for one in driver.jobs[-1]) if driver.jobs else 0
    world.ingest(99, ingest_time_us=NOW_US)  # of the range's times, but after its ends were stored
    again = ReplayDriver(world, table)
    before = again.stored()
    again.records["rep_1"] = replay()
    again.run_all()
    found = ids(world)
    resolved = before is not None
    due = {f"m{number}" for number in range(EVENTS)} | (set() if resolved else {"m99"})
    assert set(found) == due, "no event is skipped, and a restart has the same range"
    assert found.total() - len(due) <= in_progress
    progress = again.stored()
    assert progress is not None
    assert (progress.done, progress.asked) == (True, len(due))
    assert len(account(world).acked) == len(due)
    assert is_killed or kill_at > 8


def test_facts_are_stored_before_the_progress(world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []
    append = world.kafka.append

    def noted(topic: str, *record: Any) -> tuple[int, int]:
        order.append({AUDIT_TOPIC: "facts", SIGNALS: "progress", EGRESS: "copy"}[topic])
        return append(topic, *record)

    monkeypatch.setattr(world.kafka, "append", noted)
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.run_all()
    kinds = [kind for number, kind in enumerate(order) if not number or order[number - 1] != kind]
    jobs = len(driver.jobs)
    assert kinds == ["progress", *["copy", "facts", "progress"] * jobs]


def test_rehearsal_stores_no_facts_and_no_copies(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay(rehearsal=True, rate_per_s=0.01)
    driver.run_all()
    assert world.copies() == []
    assert [fact for audit in world.audits() for fact in audit.facts] == []
    progress = driver.stored()
    assert progress is not None
    assert (progress.asked, progress.units, progress.error) == (EVENTS, {"crm": EVENTS}, "")


def test_error_of_spark_is_retried_from_the_progress(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    assert driver.turn(), "its offsets"
    driver.failure = RuntimeError("Spark is away")
    assert driver.turn()
    stored = driver.stored()
    assert stored is not None
    assert (stored.error, stored.done, world.copies()) == (FAILED, False, [])
    driver.run_all()
    assert ids(world) == Counter(f"m{number}" for number in range(EVENTS))
    ended = driver.stored()
    assert ended is not None
    assert ended.error == ""


def test_error_of_kafka_at_the_start_is_retried(
    world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any, **__: Any) -> Any:
        raise KafkaException("away")

    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    with monkeypatch.context() as refused:
        refused.setattr(type(world.reader()), "offsets_for_times", refuse)
        assert driver.turn()
    stored = driver.stored()
    assert stored is not None
    assert (stored.error, stored.ends) == (FAILED, {})
    driver.run_all()
    assert len(ids(world)) == EVENTS


def test_paused_replay_waits_and_continues(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.turn()
    driver.turn()
    some = len(world.copies())
    assert 0 < some < EVENTS
    driver.records["rep_1"] = replay(state="paused", version=2)
    assert not driver.turn()
    assert not driver.turn()
    stored = driver.stored()
    assert stored is not None
    assert (stored.error, len(world.copies())) == (PAUSED, some)
    driver.records["rep_1"] = replay(version=3)
    driver.run_all()
    assert ids(world).total() == EVENTS


def test_reason_is_published_once(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay(state="paused")
    for _ in range(5):
        assert not driver.turn()
    assert len(world.kafka.logs[SIGNALS, 0]) == 1


def test_aborted_replay_ends(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.turn()
    driver.turn()
    some = len(world.copies())
    driver.records["rep_1"] = replay(state="ended", version=2)
    driver.turn()
    stored = driver.stored()
    assert stored is not None
    assert (stored.done, stored.error, stored.asked, len(world.copies())) == (True, "aborted", some, some)
    assert driver.queue.ended == {"rep_1"}


def test_replay_that_is_done_is_not_run_again(world: ReplayWorld, table: ControlTable):
    for _ in range(2):
        driver = ReplayDriver(world, table)
        driver.records["rep_1"] = replay()
        driver.run_all()
    assert driver.jobs == []
    assert ids(world).total() == EVENTS


def test_deleted_events_are_reported_and_the_rest_is_sent(world: ReplayWorld, table: ControlTable):
    world.delete_below(1, 2)
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.run_all()
    stored = driver.stored()
    assert stored is not None
    assert stored.error.startswith("events before ")
    assert (stored.asked, stored.done) == (EVENTS - 2, True)


def test_rate_holds_between_jobs(world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dataplane.replay.task.TASK_S", 0.0)
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay(rate_per_s=4.0)
    driver.turn()
    began_s = time.monotonic()
    assert driver.turn()
    assert len(world.copies()) == 2, "one of each task, and half a second of the rate"
    assert not driver.turn()
    while not driver.turn():
        time.sleep(0.01)
    assert time.monotonic() - began_s >= 0.5


def test_second_replay_of_a_tenant_waits_for_the_first(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records = {"rep_1": replay(), "rep_2": replay(replay="rep_2", bucket=1_000)}
    driver.turn()
    waiting = driver.stored("rep_2")
    assert waiting is not None
    assert waiting.error == "waits for the replay rep_1"
    driver.run_all()
    assert ids(world) == Counter({f"m{number}": 2 for number in range(EVENTS)})
    by_replay = [read_meta(one.headers()).replay for one in world.copies()]
    assert Counter(by_replay) == {"rep_1": EVENTS, "rep_2": EVENTS}
    ended = driver.stored("rep_2")
    assert ended is not None
    assert ended.error == ""


def test_salt_is_passed_to_the_tasks_and_its_lack_refuses_the_replay(world: ReplayWorld, table: ControlTable):
    hashing = parse_pipe_spec(SPEC | {"normalize": [{"op": "mask", "path": "a", "how": "hash"}]})
    table.apply(PlanRecord(PIPE, 3, hashing))
    key = Fernet.generate_key().decode()
    sealed = bind(base64.b64encode(b"salt").decode(), salt_place("t"))
    salt = Fernet(key).encrypt(sealed.encode()).decode()
    table.apply(PipeRecord(PIPE, 2, "t", "orders", CELL, "active", [(2, 100)], salt=salt))
    without = ReplayDriver(world, table)
    without.records["rep_1"] = replay(revision=3)
    without.turn()
    stored = without.stored()
    assert stored is not None
    assert (stored.done, stored.error) == (True, "the secret of the revision's hash steps cannot be decrypted")
    able = ReplayDriver(world, table, (key,))
    able.records["rep_2"] = replay(replay="rep_2", revision=3)
    able.run_all()
    assert {task.salt for tasks in able.jobs for task in tasks} == {b"salt"}


def test_host_without_a_look_up_table_is_waited_for(
    world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch
):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.turn()
    waiting = lambda task: TaskResult(task.range.place, task.range.first, waits="no table")  # noqa: E731
    monkeypatch.setattr(driver, "_run_one", waiting)
    assert driver.turn()
    stored = driver.stored()
    assert stored is not None
    assert (stored.error, stored.done) == ("no table", False)
    assert not driver.turn(), "it tries again later"


def crashed(task: ReplayTask) -> TaskResult:
    return TaskResult(task.range.place, task.range.first, error="the process of the task ended", crashed=True)


def test_event_that_ends_its_process_ends_the_replay_and_is_named(
    world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch
):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.turn()
    monkeypatch.setattr(driver, "_run_one", crashed)
    for _ in range(run_queue.MOST_CRASHES - 1):
        assert driver.turn()
        assert (stored := driver.stored()) is not None
        assert (stored.done, stored.error) == (False, FAILED)
    driver.turn()
    assert (stored := driver.stored()) is not None
    assert stored.done
    assert f"an event at or shortly after {format_position(position_of(1, 0, 0))}" in stored.error


def test_crashes_between_which_a_replay_advances_do_not_end_it(
    world: ReplayWorld, table: ControlTable, monkeypatch: pytest.MonkeyPatch
):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay()
    driver.turn()
    works = driver._run_one
    for _ in range(2):
        monkeypatch.setattr(driver, "_run_one", crashed)
        for _ in range(run_queue.MOST_CRASHES - 1):
            driver.turn()
        monkeypatch.setattr(driver, "_run_one", works)
        driver.stops_at = dict.fromkeys(range(PARTITIONS), 1)
        driver.turn()
    driver.run_all()
    assert (stored := driver.stored()) is not None
    assert (stored.done, stored.error) == (True, "")
    assert ids(world).total() == EVENTS


def test_replay_whose_plan_does_not_compile_stops_no_other(world: ReplayWorld, table: ControlTable):
    """A released revision is kept forever, and a later release may refuse what it has."""
    spec = msgspec.structs.replace(parse_pipe_spec(SPEC), normalize=[FilterStep("body.(")])
    table.apply(PlanRecord("q", 2, spec))
    table.apply(PipeRecord("q", 1, "t2", "bills", CELL, "active", [(2, 100)]))
    driver = ReplayDriver(world, table)
    driver.records = {"rep_0": replay(replay="rep_0", pipe="q"), "rep_1": replay()}
    for _ in range(20):
        driver.turn()
    assert driver.queue.ended == {"rep_1"}
    assert ids(world).total() == EVENTS
    waiting = driver.stored("rep_0")
    assert waiting is not None
    assert waiting.error == FAILED
    driver.records["rep_0"] = msgspec.structs.replace(driver.records["rep_0"], version=2, state="ended")
    driver.turn()
    assert driver.queue.ended == {"rep_0", "rep_1"}


def test_condition_does_not_see_what_the_pipe_masks(table: ControlTable, world: ReplayWorld):
    """Its counts would reveal the value, also of a field that only a newer revision masks."""
    for number, card in enumerate(["4111", "5500"]):
        world.ingest(100 + number, b'{"card":"%s","n":1}' % card.encode())
    steps = [{"op": "mask", "path": "card", "how": "redact"}]
    table.apply(PlanRecord(PIPE, 3, parse_pipe_spec(SPEC | {"normalize": steps})))
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay(rehearsal=True, where='has(body.n) && body.card == "4111"')
    driver.run_all()
    stored = driver.stored()
    assert stored is not None
    assert (stored.asked, stored.failed) == (0, 0)


FEED = output_topic(PIPE, "feed")
BOTH: dict[str, Any] = {
    "sources": {"shop": {}},
    "destinations": {"crm": SPEC["destinations"]["crm"], "feed": {"type": "topic"}},
}


def test_lanes_send_the_copies_for_a_topic_that_is_gone_and_those_of_others_are_not_repeated(world: ReplayWorld):
    driver = ReplayDriver(world, table_of(BOTH))
    driver.records["rep_1"] = replay(destinations=["crm", "feed"])
    world.refused[FEED] = KafkaError(KafkaError._UNKNOWN_TOPIC)
    driver.run_all()
    copies = Counter((meta.destination, meta.id) for meta in (read_meta(m.headers()) for m in world.copies()))
    assert {copies["feed", f"m{number}"] for number in range(EVENTS)} == {1}
    assert {copies["crm", f"m{number}"] for number in range(EVENTS)} <= {1, 2}, "only the failed job is repeated"
    progress = driver.stored()
    assert progress is not None
    assert (progress.done, progress.error, progress.units) == (True, "", {"crm": EVENTS, "feed": EVENTS})
    assert account(world).count(Bin.QUEUED) == 2 * EVENTS
    notes = [decode_replay_progress(m.value()).error for m in world.kafka.logs[SIGNALS, 0]]
    assert set(notes) == {""}, "the job is repeated at once, without a note about an error"


def test_tasks_write_to_a_topic_again_after_a_while(world: ReplayWorld, monkeypatch: pytest.MonkeyPatch):
    driver = ReplayDriver(world, table_of(BOTH))
    driver.records["rep_1"] = replay(destinations=["feed"])
    world.refused[FEED] = KafkaError(KafkaError._UNKNOWN_TOPIC)
    driver.run_all()
    record = driver.table.destination(PIPE, "feed")
    assert record is not None
    assert not driver.queue._does_write(record)
    later_s = time.monotonic() + BY_LANE_S
    monkeypatch.setattr("time.monotonic", lambda: later_s)
    assert driver.queue._does_write(record)


def test_copies_on_topics_are_in_the_usage_of_the_pipe(world: ReplayWorld):
    driver = ReplayDriver(world, table_of(BOTH))
    driver.records["rep_1"] = replay(destinations=["crm", "feed"])
    driver.run_all()
    found = [one for audit in world.audits() if audit.usage is not None for one in audit.usage.pipes]
    assert {one.pipe for one in found} == {PIPE}
    assert (sum(one.units for one in found), sum(one.size_bytes for one in found)) == (EVENTS, EVENTS * len(b"{}"))
    usages = [audit.usage for audit in world.audits() if audit.usage is not None]
    assert sum(usage.busy_us for usage in usages) > 0
    assert {audit.kind for audit in world.audits() if audit.usage is not None} == {"replay"}


def test_cpu_time_of_a_replay_that_selects_no_event_is_in_the_usage_too(world: ReplayWorld, table: ControlTable):
    driver = ReplayDriver(world, table)
    driver.records["rep_1"] = replay(ids=["none"])
    driver.run_all()
    assert world.copies() == []
    assert sum(audit.usage.busy_us for audit in world.audits() if audit.usage is not None) > 0
