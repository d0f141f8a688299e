"""Shadow runs in the control plane: their records, the driver's reports, and the runs that nobody ends."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.autoscaler.sleep_inputs import open_work_on
from controlplane.observer.trim import trim
from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.records import desired_records
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import ShadowRecord, decode_record, encode_record, plan_key, shadow_key
from dataplane.tables.shadows import FieldDifference, ShadowSample, encode_shadow_progress, shadow_progress_key
from mgmt.cells.services.pipe_migrations import why_busy
from mgmt.models import Cell, Pipe, PipeMigration, Shadow
from mgmt.services import close_pipe, stop_shadow
from mgmt.shadows.services.progress import (
    end_unanswered_shadows,
    note_shadow_progress,
    stop_unattended_shadows,
)
from tests.db.provisioning import snapshot
from tests.db.replays import publish
from tests.db.shadows import INGEST, NOW, a_draft, a_report, a_shadow
from tests.db.signals import store_signals

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    publish(pipe)
    return pipe


@pytest.fixture
def shadow(live: Pipe) -> Shadow:
    return a_shadow(live)


def note(shadow: Shadow, **changes: Any) -> Shadow:
    """Store a report of the driver; return the row as it is then."""
    note_shadow_progress(progress=a_report(shadow, **changes), now=NOW)
    shadow.refresh_from_db()
    return shadow


# -- records


def test_record_has_what_the_driver_needs(live: Pipe, shadow: Shadow):
    (record,) = desired_records([shadow_key(shadow.id)]).records
    assert record == ShadowRecord(
        shadow=shadow.id,
        version=1,
        cell="c1",
        pipe=live.id,
        spec=parse_pipe_spec(a_draft(live)),
        revision=1,
        since_us=int(shadow.since.timestamp()) * 1_000_000 + shadow.since.microsecond,
        until_us=int(NOW.timestamp()) * 1_000_000,
        most_events=10_000,
        state="running",
    )


def test_record_of_a_run_that_follows_has_no_end(live: Pipe):
    (record,) = desired_records([shadow_key(a_shadow(live, follow=True).id)]).records
    assert isinstance(record, ShadowRecord)
    assert (record.until_us, record.most_events) == (0, 0)


@pytest.mark.parametrize("state", ["stopping", "stopped", "done", "failed"])
def test_record_of_a_run_that_is_not_to_run_is_ended(shadow: Shadow, state: str):
    Shadow.objects.update(state=state)
    (record,) = desired_records([shadow_key(shadow.id)]).records
    assert isinstance(record, ShadowRecord)
    assert record.state == "ended"


def test_record_of_an_ended_run_does_not_have_its_draft(shadow: Shadow):
    steps = [{"op": "set", "path": f"f{number}", "value": "x" * 4_000} for number in range(100)]
    Shadow.objects.update(spec=shadow.spec | {"normalize": steps})
    (record,) = desired_records([shadow_key(shadow.id)]).records
    assert len(encode_record(record)) > 400_000
    stop_shadow(shadow=shadow, now=NOW)
    (record,) = desired_records([shadow_key(shadow.id)]).records
    assert len(encode_record(record)) < 1_000, "every process keeps it, and the control topic, too"
    assert decode_record(encode_record(record)) == record


def test_run_whose_draft_cannot_run_any_more_is_ended_nevertheless(shadow: Shadow):
    Shadow.objects.update(spec={"sources": {}}, state=Shadow.State.STOPPING)
    (record,) = desired_records([shadow_key(shadow.id)]).records
    assert isinstance(record, ShadowRecord)
    assert record.state == "ended"


def test_draft_that_this_version_cannot_run_is_reported_and_keeps_nothing_else_back(live: Pipe, shadow: Shadow):
    Shadow.objects.update(spec={"sources": {}})
    built = desired_records([shadow_key(shadow.id), plan_key(live.id, 1)])
    assert len(built.records) == 1
    assert built.broken[shadow_key(shadow.id)].startswith("the draft cannot run: ")


def test_each_change_is_published_after_the_plan(live: Pipe, shadow: Shadow):
    def versions() -> dict[str, int]:
        return wanted_versions(snapshot(now=NOW))

    keys = list(versions())
    assert keys.index(shadow_key(shadow.id)) > keys.index(plan_key(live.id, 1))
    assert versions()[shadow_key(shadow.id)] == 1
    stop_shadow(shadow=shadow, now=NOW)
    assert versions()[shadow_key(shadow.id)] == 2
    note(shadow, done=True)
    assert versions()[shadow_key(shadow.id)] == 3
    Shadow.objects.update(finished_at=NOW - timedelta(days=2))
    assert shadow_key(shadow.id) not in versions()


# -- reports


def test_report_is_stored_with_the_names_of_the_api(shadow: Shadow):
    row = note(shadow)
    assert (row.state, row.version, row.started_at, row.progress_at) == ("running", 1, NOW, NOW)
    assert (row.read, row.events, row.unread, row.share) == (100, 80, 100, 0.5)
    assert row.units == {"crm": {"equal": 60, "different": 10, "only_live": 5, "only_draft": 3, "not_sent": 2}}
    assert row.fields == {"crm": {"total": 9, "lines.*.sku": 1}}
    assert row.rejected == {"step": 4}
    assert [(one["kind"], one["reason"]) for one in row.samples] == [
        ("different", ""),
        ("only_draft", ""),
        ("only_live", "filter"),
    ]
    assert row.samples[0]["fields"] == [{"path": "total", "live": '"12"', "draft": "12"}]
    assert (row.cost_events, row.live_cpu_us, row.draft_cpu_us) == (4, 200, 300)
    assert row.compared_until == NOW - timedelta(seconds=3)


def test_report_is_safe_to_repeat_and_changes_nothing_after_the_end(shadow: Shadow):
    note(shadow, done=True, reached={INGEST: 1_200})
    first = Shadow.objects.values().get()
    note(shadow, done=True, reached={INGEST: 1_200})
    note(shadow, events=81)
    assert Shadow.objects.values().get() == first
    assert (first["state"], first["version"], first["finished_at"]) == ("done", 2, NOW)


def test_report_of_an_unknown_run_is_ignored(shadow: Shadow):
    note_shadow_progress(progress=msgspec.structs.replace(a_report(shadow), shadow="shadow_0"), now=NOW)
    assert Shadow.objects.get().events == 0


def test_stored_results_have_every_kind_although_the_driver_reports_only_those_that_occur(shadow: Shadow):
    row = note(shadow, units={"crm": {"equal": 60}})
    assert row.units == {"crm": {"equal": 60, "different": 0, "only_live": 0, "only_draft": 0, "not_sent": 0}}


def test_report_of_a_driver_that_waits_does_not_start_the_run(shadow: Shadow):
    row = note(shadow, ends={}, reached={}, error="a table of the draft is missing", events=0, units={})
    assert (row.is_waiting, row.error, row.started_at) == (True, "a table of the draft is missing", None)
    assert not note(shadow).error


@pytest.mark.parametrize(
    ("start", "before", "report", "state"),
    [
        pytest.param({}, "running", {"reached": {INGEST: 1_200}}, "done", id="range is read"),
        pytest.param({}, "running", {"events": 10_000}, "done", id="number of events is reached"),
        pytest.param({}, "stopping", {}, "stopped", id="stopped"),
        pytest.param({}, "stopping", {"reached": {INGEST: 1_200}}, "done", id="complete before the stop"),
        pytest.param({}, "running", {"error": "position 7 ends the process"}, "failed", id="failed"),
        pytest.param({}, "running", {"reached": {INGEST: 1_200}, "error": "x"}, "done", id="complete with a note"),
        pytest.param({"follow": True}, "stopping", {"reached": {INGEST: 1_200}}, "stopped", id="follows"),
        pytest.param({"follow": True}, "running", {"error": "x"}, "failed", id="follows and fails"),
    ],
)
def test_state_of_a_run_that_has_ended(
    live: Pipe, start: dict[str, Any], before: str, report: dict[str, Any], state: str
):
    row = a_shadow(live, **start)
    Shadow.objects.update(state=before)
    row = note(row, done=True, **report)
    assert (row.state, row.finished_at) == (state, NOW)


def test_text_that_postgres_cannot_store_is_stored_without_it(shadow: Shadow):
    sample = ShadowSample("different", "crm", 7, 0, [FieldDifference("a\0b", "\0", None)], "\0")
    row = note(shadow, samples=[sample], fields={"crm": {"a\0b": 1}}, rejected={"x\0": 1}, error="\0" + "e" * 400)
    assert row.samples[0]["fields"] == [{"path": "ab", "live": "", "draft": None}]
    assert (row.fields, row.rejected, row.error) == ({"crm": {"ab": 1}}, {"x": 1}, "e" * 300)


def test_report_neither_reads_nor_writes_the_draft(shadow: Shadow):
    with CaptureQueriesContext(connection) as found:
        note_shadow_progress(progress=a_report(shadow), now=NOW)
    assert [query["sql"] for query in found if '"spec"' in query["sql"]] == []
    assert any("UPDATE" in query["sql"] for query in found)


def test_observer_stores_the_newest_report_of_a_batch(shadow: Shadow):
    values = [encode_shadow_progress(a_report(shadow, events=events)) for events in (10, 20)]
    store_signals(shadow_progress_key(shadow.id), values, NOW)
    shadow.refresh_from_db()
    assert shadow.events == 20


# -- runs that nobody ends


def test_stop_that_no_driver_confirms_ends_after_five_minutes(shadow: Shadow):
    stop_shadow(shadow=shadow, now=NOW)
    assert end_unanswered_shadows(now=NOW + timedelta(minutes=5)) == 0
    assert end_unanswered_shadows(now=NOW + timedelta(minutes=5, seconds=1)) == 1
    shadow.refresh_from_db()
    assert (shadow.state, shadow.version) == ("stopped", 3)
    assert shadow.finished_at is not None


def test_run_of_a_week_is_stopped_with_the_reason(live: Pipe):
    row = a_shadow(live, follow=True)
    assert stop_unattended_shadows(now=NOW + timedelta(days=7)) == 0
    assert stop_unattended_shadows(now=NOW + timedelta(days=7, seconds=1)) == 1
    row.refresh_from_db()
    assert (row.state, row.version, row.why_stopped) == ("stopping", 2, "it ran for 7 days")
    assert stop_unattended_shadows(now=NOW + timedelta(days=8)) == 0


def test_run_of_a_closed_pipe_is_stopped(live: Pipe, shadow: Shadow):
    close_pipe(pipe=live)
    assert stop_unattended_shadows(now=NOW) == 1
    shadow.refresh_from_db()
    assert (shadow.state, shadow.why_stopped) == ("stopping", "the pipe was closed")


def test_migration_stops_the_run_and_waits_for_its_end(live: Pipe, shadow: Shadow):
    assert why_busy(live) == "waiting for the end of a shadow run"
    target = Cell.objects.create(id="c2")
    PipeMigration.objects.create(pipe=live, source_id="c1", target=target, asked_at=NOW)
    assert stop_unattended_shadows(now=NOW) == 1
    shadow.refresh_from_db()
    assert shadow.why_stopped == "the pipe is being migrated to another cell"
    assert why_busy(live) == "waiting for the end of a shadow run"
    note(shadow, done=True)
    assert why_busy(live) == ""


def test_cell_does_not_sleep_while_a_run_is_under_way(live: Pipe, shadow: Shadow):
    cell = Cell.objects.get(id="c1")
    assert f"a draft of pipe {live.id} is being rehearsed" in open_work_on(cell)
    note(shadow, done=True)
    assert "rehearsed" not in str(open_work_on(cell))


def test_runs_are_deleted_ninety_days_after_their_end(live: Pipe, shadow: Shadow):
    def trim_all() -> None:
        trim(NOW, attempts_keep_h=48, seals_keep_d=7, ends_keep=timedelta(days=14))

    trim_all()
    assert Shadow.objects.exists(), "it has not ended"
    Shadow.objects.update(state="done", finished_at=NOW - timedelta(days=89))
    trim_all()
    assert Shadow.objects.exists()
    Shadow.objects.update(finished_at=NOW - timedelta(days=91))
    trim_all()
    assert not Shadow.objects.exists()
