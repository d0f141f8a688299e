"""Replays in the control plane: their records, the driver's reports, their results, and the rows that they need."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.autoscaler.sleep_inputs import open_work_on
from controlplane.observer.attempt_counts import add_attempt_counts
from controlplane.observer.days import day_of, keep_days, note_days
from controlplane.observer.merge import AttemptCountId
from controlplane.observer.trim import trim
from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.records import desired_records
from dataplane.ledger.bins import Bin
from dataplane.ledger.replay_buckets import SPAN_BITS, replay_buckets
from dataplane.tables.records import ReplayRecord, destination_key, plan_key, replay_key
from dataplane.tables.replays import encode_replay_progress, replay_progress_key
from mgmt.cells.services.pipe_migrations import why_busy
from mgmt.ledger.queries.ledger import accounts
from mgmt.models import AttemptCount, Backfill, FactRow, LedgerDay, Pipe, Replay, SettledOffset
from mgmt.replays.queries import replay_account, replay_losses, replay_timing, replay_units
from mgmt.replays.services.progress import abort_forgotten, end_unanswered, note_replay_progress, store_results
from mgmt.services import abort_replay, pause_replay
from tests.db.provisioning import snapshot
from tests.db.replays import INGEST, NOW, SINCE, UNTIL, a_replay, a_report, publish, replay_fact, replay_facts
from tests.db.signals import store_signals


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    publish(pipe)
    return pipe


@pytest.fixture
def replay(live: Pipe) -> Replay:
    return a_replay(live)


def record_of(replay: Replay) -> ReplayRecord:
    (record,) = desired_records([replay_key(replay.id)]).records
    assert isinstance(record, ReplayRecord)
    return record


def note(replay: Replay, **changes: Any) -> Replay:
    """Store a report of the driver; return the row as it is then."""
    note_replay_progress(progress=a_report(replay, **changes), now=NOW)
    replay.refresh_from_db()
    return replay


def pass_all(offset: int = 1_000) -> None:
    """Mark everything below the offset as settled by process and transmit."""
    for purpose in ("ingest", "egress"):
        SettledOffset.objects.update_or_create(
            topic=f"penstock.c1.{purpose}.g1", partition=0, defaults={"offset": offset}
        )


def complete(replay: Replay, asked: int = 10) -> Replay:
    """Report that all records were read, and `asked` events were sent to the destination crm."""
    return note(replay, reached={INGEST: 1_200}, read=200, asked=asked, units={"crm": asked}, done=True)


def bins_of(replay: Replay) -> dict[str, dict[str, int]]:
    """Return the stored counts by destination and bin."""
    found: dict[str, dict[str, int]] = (replay.result or {})["bins"]
    return found


# -- records


def test_record_has_what_the_driver_needs(live: Pipe):
    row = a_replay(live, where="true", keys=["k"], ids=["m"], rate_per_s=9, rehearsal=True)
    assert record_of(row) == ReplayRecord(
        replay=row.id,
        version=1,
        cell="c1",
        pipe=live.id,
        revision=1,
        destinations=["crm"],
        since_us=int(SINCE.timestamp()) * 1_000_000,
        until_us=int(UNTIL.timestamp()) * 1_000_000,
        bucket=row.bucket,
        rate_per_s=9.0,
        state="running",
        where="true",
        keys=["k"],
        ids=["m"],
        rehearsal=True,
    )


@pytest.mark.parametrize(
    ("state", "published", "ids"),
    [
        ("running", "running", ["m"]),
        ("paused", "paused", ["m"]),
        ("aborting", "ended", ["m"]),
        ("aborted", "ended", []),
        ("done", "ended", []),
        ("failed", "ended", []),
    ],
)
def test_record_of_an_ended_replay_has_no_filters(live: Pipe, state: str, published: str, ids: list[str]):
    row = a_replay(live, ids=["m"])
    Replay.objects.update(state=state)
    record = record_of(row)
    assert (record.state, record.ids) == (published, ids)


def test_each_change_is_published_after_the_plan_and_the_destinations(live: Pipe, replay: Replay):
    def versions() -> dict[str, int]:
        return wanted_versions(snapshot(now=NOW))

    keys = list(versions())
    assert versions()[replay_key(replay.id)] == 1
    assert keys.index(replay_key(replay.id)) > keys.index(plan_key(live.id, 1))
    assert keys.index(replay_key(replay.id)) > keys.index(destination_key(live.id, "crm"))
    pause_replay(replay=replay, now=NOW)
    assert versions()[replay_key(replay.id)] == 2
    complete(replay)
    assert versions()[replay_key(replay.id)] == 3
    Replay.objects.update(finished_at=NOW - timedelta(days=2))
    assert replay_key(replay.id) not in versions()


# -- reports


def test_report_is_stored_by_the_observer(replay: Replay):
    store_signals(replay_progress_key(replay.id), [encode_replay_progress(a_report(replay))], NOW)
    replay.refresh_from_db()
    assert (replay.read, replay.asked, replay.units, replay.filtered, replay.failed) == (100, 80, {"crm": 70}, 7, 3)
    assert (replay.reached, replay.ends, replay.size_bytes) == ({INGEST: 1_100}, {INGEST: 1_200}, 9_000)
    assert (replay.state, replay.version, replay.share) == ("running", 1, 0.5)


def test_first_report_starts_a_replay_and_later_ones_do_not(replay: Replay):
    assert note(replay, reached={}, ends={}, error="waits for revision 1").is_waiting
    first = note(replay).started_at
    assert first is not None
    assert [replay.is_waiting] == [False]
    later = int(NOW.timestamp() + 60) * 1_000_000
    note(replay, at_us=later)
    assert (replay.started_at, replay.progress_at) == (first, first.replace(microsecond=0) + timedelta(seconds=60))


def test_repeated_report_changes_nothing_and_none_changes_an_ended_replay(replay: Replay):
    assert complete(replay).version == 2
    assert (replay.state, replay.finished_at) == ("done", NOW)
    note(replay, read=5)
    complete(replay)
    assert (replay.state, replay.version, replay.read) == ("done", 2, 200)
    gone = msgspec.structs.replace(a_report(replay), replay="replay_0")
    note_replay_progress(progress=gone, now=NOW)  # of a row that was deleted


@pytest.mark.parametrize(
    ("before", "changes", "state"),
    [
        ("running", {"reached": {INGEST: 1_200}}, "done"),
        ("paused", {"reached": {INGEST: 1_200}}, "done"),
        ("running", {"reached": {INGEST: 1_200}, "error": "the first events have expired"}, "done"),
        ("running", {"reached": {}, "ends": {}}, "done"),
        ("running", {"error": "the plan cannot run"}, "failed"),
        ("running", {"reached": {}, "ends": {}, "error": "revision 1 is not published"}, "failed"),
        ("aborting", {}, "aborted"),
        ("aborting", {"reached": {}, "ends": {}}, "aborted"),
        ("aborting", {"error": "stopped"}, "aborted"),
        ("aborting", {"reached": {INGEST: 1_200}}, "done"),
    ],
)
def test_state_at_the_end(replay: Replay, before: str, changes: dict[str, Any], state: str):
    Replay.objects.update(state=before)
    assert note(replay, done=True, **changes).state == state


def test_report_neither_reads_nor_writes_the_selection(replay: Replay):
    with CaptureQueriesContext(connection) as queries:
        note_replay_progress(progress=a_report(replay), now=NOW)
    assert not any('"ids"' in query["sql"] or '"keys"' in query["sql"] for query in queries)


def test_error_without_an_end_is_shown_and_may_pass(replay: Replay):
    assert note(replay, error="waiting for the plan\x00").error == "waiting for the plan"
    assert replay.state == "running"
    assert note(replay).error == ""


def test_abort_that_no_driver_confirms_ends_after_minutes(replay: Replay):
    abort_replay(replay=replay, now=NOW)
    assert end_unanswered(now=NOW + timedelta(minutes=5)) == 0
    assert end_unanswered(now=NOW + timedelta(minutes=5, seconds=1)) == 1
    replay.refresh_from_db()
    assert (replay.state, replay.version) == ("aborted", 3)


def test_running_replay_is_not_ended_by_silence(replay: Replay):
    assert end_unanswered(now=NOW + timedelta(days=30)) == 0


@pytest.mark.parametrize("state", ["running", "paused"])
def test_replay_that_was_started_a_week_ago_is_aborted(replay: Replay, state: str):
    Replay.objects.update(state=state, created_at=NOW)
    assert abort_forgotten(now=NOW + timedelta(days=7)) == 0
    assert abort_forgotten(now=NOW + timedelta(days=7, seconds=1)) == 1
    replay.refresh_from_db()
    assert (replay.state, replay.version) == ("aborting", 2)
    assert abort_forgotten(now=NOW + timedelta(days=8)) == 0


# -- accounts


def test_account_has_each_unit_in_one_bin(replay: Replay):
    replay_facts(replay, range(10), delivered=range(6), dead=[6])
    replay_fact(replay, "ingest", "sent", range(10, 14), "seen")
    replay_fact(replay, "route", "filtered", range(10, 14))
    pass_all(offset=2)  # transmit may still have the rest
    found = replay_account(replay)
    assert {name: count for name, count in found.bins.items() if count} == {
        "delivered": 6,
        "dead": 1,
        "queued": 3,
        "filtered": 4,
    }
    assert found.sealed_at is None
    pass_all()
    found = replay_account(replay)
    assert (found.bins["queued"], found.bins["lost"]) == (0, 3)
    assert found.loss.lost == 3
    units, more = replay_units(replay, Bin.DELIVERED, 2)
    assert ([unit.position for unit in units], more) == (["1-0-0", "1-0-1"], 4)
    losses = replay_losses(replay)
    assert [(one.position, one.destination) for one in losses.messages] == [(f"1-0-{n}", "crm") for n in (7, 8, 9)]
    assert replay_timing(replay).whole is None


def test_account_unites_the_buckets_of_a_replay(replay: Replay):
    """Units are spread by position; one that was counted in two buckets, by two releases, is one unit."""
    offsets = range((1 << SPAN_BITS) - 5, (1 << SPAN_BITS) + 5)
    replay_facts(replay, offsets, delivered=offsets[:-1])
    rows = FactRow.objects.filter(pipe_id=replay.id)
    assert {row.bucket for row in rows} <= set(replay_buckets(replay.bucket))
    assert len({row.bucket for row in rows}) == 2
    (*_, fields) = rows.filter(node="transmit:crm").values()
    FactRow.objects.create(**fields | {"bucket": replay_buckets(replay.bucket)[7]})
    found = replay_account(replay)
    assert (found.accepted, found.bins["delivered"], found.bins["queued"]) == (10, 9, 1)
    units, more = replay_units(replay, Bin.DELIVERED, 20)
    assert (len(units), more) == (9, 0)
    pass_all(2 << SPAN_BITS)
    assert replay_account(replay).bins["lost"] == 1
    assert [one.position for one in replay_losses(replay).messages] == [f"1-0-{offsets[-1]}"]
    assert complete(replay).id == replay.id
    store_results(now=NOW)
    replay.refresh_from_db()
    assert bins_of(replay)["crm"] == {"delivered": 9, "lost": 1}


def test_account_is_apart_from_the_minute_of_the_pipe(replay: Replay):
    replay_facts(replay, range(10), delivered=range(6))
    account = accounts(replay.pipe_id, [replay.bucket])[replay.bucket]
    assert len(account.sent) == 0


def test_result_is_stored_once_nothing_is_queued_or_retried(replay: Replay):
    replay_facts(replay, range(10), delivered=range(6), dead=[6])
    assert store_results(now=NOW) == 0, "it has not ended"
    complete(replay)
    assert store_results(now=NOW) == 0, "three units are queued"
    pass_all()
    assert store_results(now=NOW + timedelta(seconds=59)) == 0, "it is checked once a minute"
    assert store_results(now=NOW + timedelta(seconds=61)) == 1
    assert store_results(now=NOW + timedelta(minutes=9)) == 0
    replay.refresh_from_db()
    assert (replay.result or {}).keys() == {"asked", "bins", "nodes"}
    assert bins_of(replay) == {"crm": {"delivered": 6, "dead": 1, "lost": 3}}
    shown = replay_account(replay)
    assert (shown.bins, shown.accepted) == ({"delivered": 6, "dead": 1, "lost": 3}, 10)
    assert (shown.sealed_at, shown.loss.lost) == (NOW + timedelta(seconds=61), 3)


@pytest.mark.parametrize("missing", [{"asked": 11}, {"units": {"crm": 11}}, {"units": {"crm": 10, "erp": 1}}])
def test_result_waits_for_the_facts_of_all_reported_units(replay: Replay, missing: dict[str, Any]):
    replay_facts(replay, range(10), delivered=range(10))
    pass_all()
    complete(replay)
    Replay.objects.update(**missing)
    assert store_results(now=NOW) == 0
    Replay.objects.update(asked=10, units={"crm": 10})
    assert store_results(now=NOW + timedelta(minutes=2)) == 1


def test_result_waits_for_retries_but_not_longer_than_a_day(replay: Replay):
    replay_facts(replay, range(10), delivered=range(9))
    replay_fact(replay, "transmit:crm", "parked", [9], "1")
    complete(replay)
    pass_all()
    assert store_results(now=NOW + timedelta(hours=24)) == 0
    assert store_results(now=NOW + timedelta(hours=24, minutes=2)) == 1
    replay.refresh_from_db()
    assert bins_of(replay) == {"crm": {"delivered": 9, "retrying": 1}}


def test_rehearsal_is_complete_at_its_end(live: Pipe):
    row = a_replay(live, rehearsal=True)
    complete(row, asked=80)
    assert store_results(now=NOW) == 1
    row.refresh_from_db()
    assert (row.result, replay_account(row).accepted) == ({"asked": 80, "bins": {}, "nodes": []}, 80)


# -- what a replay needs from others


def test_day_stays_open_until_the_result_is_stored(replay: Replay):
    later = NOW + timedelta(days=60)
    replay_facts(replay, range(3), delivered=range(3))
    note_days([replay.bucket], NOW)

    def is_open() -> bool:
        keep_days(later, facts_keep_d=30, seals_keep_d=400)
        return LedgerDay.objects.get(day=day_of(replay.bucket)).closed_at is None

    assert is_open()
    assert replay_account(replay).bins["delivered"] == 3, "the facts of an open day are kept"
    pass_all()
    complete(replay, asked=3)
    store_results(now=NOW)
    assert not is_open()
    replay.refresh_from_db()
    keep_days(later, facts_keep_d=30, seals_keep_d=400)
    assert len(accounts(replay.id, [replay.bucket])[replay.bucket].acked) == 0
    assert replay_account(replay).bins["delivered"] == 3


def test_deliveries_of_copies_count_for_the_destination_of_the_pipe(replay: Replay):
    minute = replay.bucket
    counts = {AttemptCountId(replay.id, "crm", minute): 3, AttemptCountId(replay.pipe_id, "crm", minute): 4}
    add_attempt_counts(counts, [])
    assert list(AttemptCount.objects.values_list("pipe_id", "delivered")) == [(replay.pipe_id, 7)]


def test_cell_does_not_sleep_and_the_pipe_stays_while_a_replay_is_under_way(replay: Replay):
    assert "being replayed" in open_work_on(replay.cell)
    assert why_busy(replay.pipe) == "waiting for the end of a replay"
    complete(replay)
    assert "being replayed" not in open_work_on(replay.cell)
    assert why_busy(replay.pipe) == ""


def test_pipe_stays_while_a_backfill_waits_for_its_replay(replay: Replay):
    """Its events are on the pipe's cell, and a migrated pipe leaves them there."""
    complete(replay)
    row = Backfill.objects.create(
        pipe=replay.pipe, destination="crm", revision=1, beginning="earliest", created_at=replay.created_at
    )
    assert why_busy(replay.pipe) == "waiting for the end of a backfill: its events are on this cell"
    Backfill.objects.filter(id=row.id).update(ended_at=replay.created_at)
    assert why_busy(replay.pipe) == ""


def test_replay_is_deleted_ninety_days_after_its_end(replay: Replay):
    def rows_after(days: int) -> int:
        now = NOW + timedelta(days=days)
        trim(now, attempts_keep_h=1, seals_keep_d=400, ends_keep=timedelta(days=14))
        return Replay.objects.count()

    assert rows_after(1_000) == 1, "it has not ended"
    complete(replay)
    assert (rows_after(89), rows_after(91)) == (1, 0)
