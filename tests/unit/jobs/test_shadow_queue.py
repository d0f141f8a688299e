"""Shadow runs of a cell in their turns: exact counts after a kill, deleted events, live traffic, masks and crashes."""

import base64
import time
from typing import Any

import msgspec
import pytest
from cryptography.fernet import Fernet

from dataplane.jobs import ledger_reporter, run_queue, shadow_queue
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.ledger.units import format_position, position_of
from dataplane.replay.decisions import FAILED, NO_SLOT
from dataplane.shadow import result
from dataplane.shadow.decisions import DEDUP_US, FIRST_RECORDS
from dataplane.shadow.job import PartComparison, PartRead, ShadowJob
from dataplane.spec.steps import FilterStep
from dataplane.tables.records import PipeRecord, PlanRecord
from dataplane.tables.sealed import bind, salt_place
from tests.support.replaying import CELL, EGRESS, HOUR_US, NOW_US, PARTITIONS, PIPE
from tests.support.shadowing import CRM, SIGNALS, ShadowDriver, ShadowWorld, shadow, spec_of

EVENTS = 40
DRAFT = spec_of(normalize=[{"op": "filter", "when": "body.n % 4 != 0"}])
EXPECTED = {"crm": {"equal": 30, "only_live": 10}}


class KilledError(BaseException):
    """The driver is killed here."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ShadowWorld:
    made = ShadowWorld()
    monkeypatch.setattr(ledger_reporter, "lane_producer", lambda *_, **__: made.producer())
    monkeypatch.setattr(ledger_reporter, "make_offset_client", lambda *_: made.reader())
    monkeypatch.setattr(run_queue, "back_off_s", lambda *_: 0.0)
    monkeypatch.setattr(shadow_queue, "IDLE_S", 0.0)
    monkeypatch.setattr(shadow_queue, "TABLES_S", 0.0)
    return made


def fill(world: ShadowWorld, first: int = 0, count: int = EVENTS) -> None:
    """Ingest events a second apart, and process them."""
    for number in range(first, first + count):
        at_us = NOW_US + number * 1_000_000
        world.process(world.ingest(number, b'{"n": %d}' % number, partition=number % PARTITIONS, ingest_time_us=at_us))


def size_of_jobs(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(shadow_queue, "next_size", lambda *_: size)


def test_past_range_is_compared_in_several_jobs(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    found = driver.run_all()
    assert (found.done, found.error, found.events, found.read, found.units) == (True, "", EVENTS, EVENTS, EXPECTED)
    assert found.reached == found.ends
    assert found.compared_until_us == shadow().until_us
    assert len(driver.jobs) == 5
    assert all(len(job.ranges) == PARTITIONS for job in driver.jobs), "each job covers the same time everywhere"
    assert len({sample.position for sample in found.samples}) == 5


@pytest.mark.parametrize("kill_at", range(1, 9))
def test_driver_killed_at_any_store_counts_each_event_once(
    world: ShadowWorld, monkeypatch: pytest.MonkeyPatch, kill_at: int
):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    stores = 0
    await_stored = QueryLedgerReporter.await_stored

    def killed(reporter: QueryLedgerReporter) -> None:
        nonlocal stores
        stores += 1
        if stores == kill_at:
            raise KilledError
        await_stored(reporter)

    monkeypatch.setattr(QueryLedgerReporter, "await_stored", killed)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    try:
        driver.run_all()
        is_killed = False
    except KilledError:
        is_killed = True
    assert is_killed == (kill_at <= 7)
    again = ShadowDriver(world)
    again.records["shd_1"] = shadow(DRAFT)
    found = again.run_all()
    assert (found.done, found.error, found.events, found.read, found.units) == (True, "", EVENTS, EVENTS, EXPECTED)


def test_run_that_follows_compares_what_process_has_committed(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT, until_us=0)
    committed = dict.fromkeys(range(PARTITIONS), 5)
    monkeypatch.setattr(world, "ends", lambda: committed)
    before_us = time.time_ns() // 1_000
    driver.turns(3)
    found = driver.stored()
    assert (found.events, found.done, set(found.ends.values())) == (20, False, {5})
    assert 0 < found.compared_until_us < before_us, "each partition has a backlog"
    monkeypatch.undo()
    monkeypatch.setattr(shadow_queue, "IDLE_S", 0.0)
    monkeypatch.setattr(shadow_queue, "QUIET_US", 0)
    driver.turns(3)
    found = driver.stored()
    assert (found.events, found.units, found.done) == (EVENTS, EXPECTED, False)
    assert found.compared_until_us > before_us, "no partition has a backlog"
    driver.records["shd_1"] = shadow(DRAFT, until_us=0, state="ended", version=2)
    ended = driver.run_all()
    assert (ended.done, ended.error, ended.units) == (True, "", EXPECTED)


def test_number_of_events_ends_a_run(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT, until_us=0, most_events=16)
    found = driver.run_all()
    assert (found.events, found.done, found.error) == (16, True, "")


def test_events_of_a_pipe_with_dedup_are_compared_after_their_verdict(
    world: ShadowWorld, monkeypatch: pytest.MonkeyPatch
):
    world.table.apply(PlanRecord(PIPE, 1, spec_of(dedup={"paths": ["n"], "window_s": 3600}), 2))
    now_us = NOW_US + 2_000_000 + DEDUP_US
    monkeypatch.setattr(shadow_queue, "now_us", lambda: now_us)
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT, until_us=0)
    driver.turns(3)
    assert driver.stored().events == 3


def test_deleted_events_are_named_and_the_rest_is_compared(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    for number in range(PARTITIONS):
        world.delete_below(number, 4)
    found = driver.run_all()
    assert found.events == EVENTS - 4 * PARTITIONS
    assert found.error.startswith("events before ")
    assert found.error.endswith("are no longer retained")


def test_events_whose_deliveries_are_deleted_are_named_and_not_compared(world: ShadowWorld):
    fill(world)
    for number in range(PARTITIONS):
        world.lows[EGRESS, number] = 4
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    found = driver.run_all()
    assert found.done
    assert found.error.startswith("events before ")
    assert "what was sent of them is no longer retained" in found.error
    assert 0 < found.events <= EVENTS - 4 * PARTITIONS
    assert set(found.units["crm"]) == {"equal", "only_live"}, "nothing seems to be missing"


def test_run_waits_for_a_slot_and_has_at_most_two_tasks(world: ShadowWorld):
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    assert not driver.turn(slots=0)
    assert driver.stored().error == NO_SLOT
    driver.turn(slots=9)
    driver.turn(slots=9)
    assert driver.tasks == [2]
    assert (driver.stored().error, driver.stored().units) == ("", EXPECTED)


def test_run_pauses_as_long_as_its_last_job_took(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    driver.before_job = slow
    driver.turn()
    began_s = time.monotonic()
    assert not driver.turn()
    while not driver.turn():
        time.sleep(0.01)
    assert time.monotonic() - began_s >= 0.55, "the pause, and the next job"


def test_all_runs_together_leave_half_of_the_time_to_the_lanes(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records = {name: shadow(DRAFT, shadow=name) for name in ("shd_1", "shd_2")}
    driver.turns(2)
    driver.before_job = slow
    driver.turns(1)
    assert not driver.turn(), "the other run pauses, too"
    assert len(driver.jobs) == 1


def slow(job: ShadowJob) -> None:
    del job
    time.sleep(0.3)


def crashed(job: ShadowJob) -> list[PartRead | PartComparison]:
    del job
    return [PartRead(error="ended", crashed=True)]


def test_event_that_ends_its_process_ends_the_run_and_is_named(world: ShadowWorld):
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    driver.before_job = crashed
    for _ in range(run_queue.MOST_CRASHES - 1):
        driver.turns(1)
        assert (driver.stored().done, driver.stored().error) == (False, FAILED)
    driver.turns(1)
    found = driver.stored()
    assert found.done
    assert format_position(position_of(1, 0, 0)) in found.error
    sizes = [sum(one.end - one.first for one in job.ranges) for job in driver.jobs]
    assert sizes[-1] == 1, "smaller jobs have found it"
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] < FIRST_RECORDS


def test_job_with_an_error_counts_nothing_and_is_repeated(world: ShadowWorld):
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    driver.before_job = lambda _job: [PartRead(read=9), PartComparison(events=9), PartRead(error="Kafka is away")]
    assert driver.turn()
    assert (driver.stored().error, driver.stored().events) == (FAILED, 0)
    driver.before_job = lambda _job: [PartComparison(waits="no table")]
    driver.turns(1)
    assert (driver.stored().error, driver.stored().events) == ("no table", 0)
    driver.before_job = lambda _job: None
    assert driver.run_all().units == EXPECTED


@pytest.mark.parametrize(
    "large",
    [PartRead(is_large=True), PartComparison(is_large=True), PartRead(is_cut=True)],
    ids=lambda one: repr(one)[:30],
)
def test_job_that_is_too_large_is_repeated_as_a_smaller_one(
    world: ShadowWorld, monkeypatch: pytest.MonkeyPatch, large: PartRead | PartComparison
):
    monkeypatch.setattr(shadow_queue, "FIRST_RECORDS", 30)
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    driver.before_job = lambda _job: [PartComparison(events=9), large]
    driver.turns(1)
    assert (driver.stored().error, driver.stored().events) == ("", 0)
    driver.before_job = lambda _job: None
    assert driver.run_all().units == EXPECTED
    sizes = [sum(one.end - one.first for one in job.ranges) for job in driver.jobs]
    assert sizes[:2] == [EVENTS, EVENTS // 4]


def test_deliveries_that_were_not_read_in_time_do_not_stop_a_small_job(world: ShadowWorld):
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    driver.before_job = lambda _job: [PartComparison(events=9), PartRead(is_cut=True)]
    driver.turns(1)
    assert driver.stored().events == 9


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ([PartRead(events_s=0.1, sent_s=9.0), PartComparison(events=9, took_s=0.1)], 2 * FIRST_RECORDS),
        ([PartRead(events_s=3.0), PartComparison(events=9, took_s=2.0)], FIRST_RECORDS // 2),
    ],
)
def test_only_the_time_for_its_events_makes_the_next_job_smaller(
    world: ShadowWorld, monkeypatch: pytest.MonkeyPatch, parts: list[PartRead | PartComparison], size: int
):
    monkeypatch.setattr("dataplane.shadow.decisions.MOST_EVENTS", 10**6)
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT, until_us=0)
    driver.turn()
    driver.before_job = lambda _job: parts
    driver.turns(1)
    assert driver.queue._paces["shd_1"].size == size


def test_plan_that_does_not_compile_ends_the_run_with_a_reason(world: ShadowWorld):
    driver = ShadowDriver(world)
    broken = msgspec.structs.replace(spec_of(), normalize=[FilterStep("body.(")])
    driver.records["shd_1"] = shadow(broken)
    found = driver.run_all()
    assert found.done
    assert found.error.startswith("a plan does not compile: ")


def test_run_of_a_closed_pipe_ends_with_what_it_has(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(DRAFT)
    driver.turn()
    driver.turn()
    world.table.apply(PipeRecord(PIPE, 2, "t", "orders", CELL, "closed", [(1, 100)]))
    found = driver.run_all()
    assert (found.done, found.error, found.events) == (True, "the pipe is closed", 8)


def test_masks_of_any_revision_hide_values_in_samples(world: ShadowWorld):
    secret = "ann@example.com"
    old = spec_of(normalize=[{"op": "mask", "path": "email"}])
    world.table.apply(PlanRecord(PIPE, 7, old))
    world.process(world.ingest(0, b'{"email": "%s", "n": 1}' % secret.encode()))
    driver = ShadowDriver(world)
    renames = [{"op": "rename", "path": "email", "to": "mail"}, {"op": "map", "path": "to", "expr": "body.mail"}]
    driver.records["shd_1"] = shadow(spec_of(normalize=renames))
    found = driver.run_all()
    (sample,) = found.samples
    assert {one.path for one in sample.fields} == {"email", "mail", "to"}
    assert secret not in str(found)
    assert secret.encode() not in b"".join(record.value() for record in world.kafka.logs[SIGNALS, 0])


def test_salt_is_passed_to_the_job_and_its_lack_ends_the_run(world: ShadowWorld):
    fill(world)
    hashing = spec_of(normalize=[{"op": "mask", "path": "n", "how": "hash"}])
    key = Fernet.generate_key().decode()
    sealed = bind(base64.b64encode(b"salt").decode(), salt_place("t"))
    salt = Fernet(key).encrypt(sealed.encode()).decode()
    world.table.apply(PipeRecord(PIPE, 2, "t", "orders", CELL, "active", [(1, 100)], salt=salt))
    without = ShadowDriver(world)
    without.records["shd_1"] = shadow(hashing)
    assert without.run_all().error == "the secret of the hash steps cannot be decrypted"
    able = ShadowDriver(world, (key,))
    able.records["shd_2"] = shadow(hashing, shadow="shd_2")
    able.run_all()
    assert {job.salt for job in able.jobs} == {b"salt"}


def test_runs_take_turns_although_one_never_ends(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    fill(world)
    size_of_jobs(monkeypatch, 8)
    driver = ShadowDriver(world)
    driver.records = {
        "shd_1": shadow(DRAFT, until_us=0),
        "shd_2": shadow(DRAFT, shadow="shd_2", version=2),
    }
    driver.turns(20)
    assert driver.queue.ended == {"shd_2"}
    assert driver.stored("shd_1").units == driver.stored("shd_2").units == EXPECTED


def test_further_fields_of_a_destination_are_counted_together(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    size_of_jobs(monkeypatch, 4)
    for number in range(80):
        at_us = NOW_US + number * 1_000
        world.process(world.ingest(number, b'{"f%d": 1}' % number, ingest_time_us=at_us))
    driver = ShadowDriver(world)
    steps: list[dict[str, Any]] = [{"op": "map", "path": "$", "expr": "{}"}]
    driver.records["shd_1"] = shadow(spec_of(normalize=steps), since_us=NOW_US - HOUR_US)
    found = driver.run_all()
    assert found.units == {"crm": {"different": 80}}
    assert len(found.fields["crm"]) <= 51
    assert sum(found.fields["crm"].values()) == 80
    assert found.fields["crm"][""] == 30


def test_progress_that_is_too_large_for_a_record_is_cut(world: ShadowWorld, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(result, "PROGRESS_BYTES", 600)
    fill(world)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(spec_of(normalize=[{"op": "set", "path": "x", "value": "y" * 200}]))
    found = driver.run_all()
    assert (found.error, found.units) == ("", {"crm": {"different": EVENTS}})
    assert all(len(one.value()) <= 700 for one in world.kafka.logs[SIGNALS, 0])


def test_destination_of_a_third_revision_is_only_live(world: ShadowWorld):
    other = spec_of(destinations={**CRM, "third": {"type": "http", "url": "https://third.example"}})
    world.process(world.ingest(0), other)
    driver = ShadowDriver(world)
    driver.records["shd_1"] = shadow(spec_of())
    assert driver.run_all().units == {"crm": {"equal": 1}, "third": {"only_live": 1}}
