"""Rejected events that ingest reports are stored once, bounded per tenant, and deleted after their retention."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.observer import rejections as module
from controlplane.observer.trim import REJECTIONS_FOR, trim
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord
from dataplane.ledger.rejections import OTHER, RejectionReport, RejectionSample
from mgmt.models import Pipe, Rejection, RejectionMinute, Tenant, User
from mgmt.rejections.models import MOST_SAMPLES
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.controlplane.test_duplicate_audit_records import Observer

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = int(NOON.timestamp()) // 60
A_SAMPLE = RejectionSample(int(NOON.timestamp()) * 1_000_000, 8, '{"id":"a\x00"}')


def told(
    pipe: str, *, pointer: str = "/id", minute: int = MINUTE, events: int = 1, detail: str = "", sender: str = "abcd"
) -> RejectionReport:
    return RejectionReport(pipe, "shop", "order", "schema", pointer, sender, minute, events, detail, [A_SAMPLE])


def audit(sequence: int, *reports: RejectionReport, writer: str = "ingest-1") -> AuditRecord:
    return AuditRecord(
        AUDIT_VERSION, "", writer, "ingest", 1, [], [], [], [], run="a", sequence=sequence, rejections=list(reports)
    )


def counts() -> dict[tuple[str, int], int]:
    rows = RejectionMinute.objects.values_list("rejection__pointer", "minute", "events")
    return {(pointer, minute - MINUTE): events for pointer, minute, events in rows}


def test_reports_are_added_up_by_kind_and_minute(pipe: Pipe):
    observer = Observer()
    observer.read(audit(1, told(pipe.id, events=2), told(pipe.id, minute=MINUTE + 1, detail="newest")))
    observer.read(audit(2, told(pipe.id, events=3, detail="older"), told(pipe.id, pointer="/total")))
    observer.read(audit(1, told(pipe.id, events=4), writer="ingest-2"))
    assert counts() == {("/id", 0): 9, ("/id", 1): 1, ("/total", 0): 1}
    row = Rejection.objects.get(pointer="/id")
    assert (row.pipe, row.source, row.event_type, row.code, row.sender) == (pipe, "shop", "order", "schema", "abcd")
    assert (row.first_at, row.last_at) == (NOON, NOON + timedelta(minutes=1))
    assert len(row.samples) == 4
    assert row.samples[0] == {"at_us": A_SAMPLE.at_us, "size_bytes": 8, "body": '{"id":"a"}'}


def test_report_that_was_sent_twice_counts_once(pipe: Pipe):
    observer = Observer()
    observer.read(audit(1, told(pipe.id)), audit(1, told(pipe.id)))
    observer.again().read(audit(1, told(pipe.id)))
    assert counts() == {("/id", 0): 1}
    assert len(Rejection.objects.get().samples) == 1


def test_newest_samples_are_kept(pipe: Pipe):
    observer = Observer()
    for number in range(MOST_SAMPLES + 3):
        observer.read(audit(number + 1, told(pipe.id, minute=MINUTE + number)))
    assert len(Rejection.objects.get().samples) == MOST_SAMPLES


def test_tenant_has_a_limited_number_of_kinds_and_every_event_is_counted(
    pipe: Pipe, tenant: Tenant, alice: User, charlie: User, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MOST_OF_TENANT", 3)
    second = create_pipe(tenant=tenant, name="second", spec=a_spec(), author=alice)
    others = create_pipe(tenant=charlie.memberships.get().tenant, name="others", spec=a_spec(), author=charlie)
    observer = Observer()
    observer.read(audit(1, *(told(pipe.id, pointer=f"/{name}") for name in "abcde")))
    observer.read(audit(2, told(second.id, pointer="/f"), told(pipe.id, pointer="/g"), told(others.id)))
    assert Rejection.objects.filter(pipe__tenant=tenant).count() == 5, "three, and one more for each source"
    rest = Rejection.objects.filter(event_type=OTHER).order_by("pipe__name")
    assert [(row.pipe.name, row.pointer, row.sender) for row in rest] == [("orders", "", OTHER), ("second", "", OTHER)]
    assert sum(RejectionMinute.objects.filter(rejection=rest[0]).values_list("events", flat=True)) == 3
    assert sum(RejectionMinute.objects.values_list("events", flat=True)) == 8
    assert Rejection.objects.get(pipe=others).pointer == "/id"


def test_hostile_texts_and_unknown_pipes_do_not_stop_the_observer(pipe: Pipe):
    hostile = RejectionReport(
        pipe.id, "s\x00" * 99, "t\x00" * 999, "c" * 99, "/\x00" * 999, "k" * 99, MINUTE, 1, "\x00"
    )
    Observer().read(audit(1, hostile, told("pipe_unknown"), told("p\x00" * 99)))
    row = Rejection.objects.get()
    assert (len(row.event_type), row.detail) == (100, "")


def test_rows_are_deleted_after_their_retention(pipe: Pipe):
    old = MINUTE - int(REJECTIONS_FOR.total_seconds()) // 60 - 1
    Observer().read(audit(1, told(pipe.id, minute=old), told(pipe.id), told(pipe.id, pointer="/total", minute=old)))
    trim(NOON, attempts_keep_h=1, seals_keep_d=1, ends_keep=timedelta(days=1))
    assert counts() == {("/id", 0): 1}
    assert [row.pointer for row in Rejection.objects.all()] == ["/id"]
