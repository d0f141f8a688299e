"""Usage rows by day: every microsecond is counted once, however it is read, and old rows are deleted."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.merge import UsageId, tally
from controlplane.observer.store import LedgerStore, PartitionLostError
from controlplane.observer.trim import trim
from controlplane.observer.usage import add_usage
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, encode
from dataplane.ledger.usage import PipeShare, PipeUsage, UsageReport
from dataplane.names import AUDIT_TOPIC
from mgmt.alerts.services.alerts import resolve_recovered
from mgmt.models import Alert, AuditOffset, Pipe
from mgmt.models import Usage as UsageRow
from tests.db.controlplane.test_observer_storage import AUDIT, Message

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PIPES = 10_000


def told(usage: UsageReport, at: datetime = NOON, cell: str = "c1", kind: str = "process") -> AuditRecord:
    return AuditRecord(AUDIT_VERSION, cell, f"{kind}-0", kind, int(at.timestamp()) * 1_000_000, [], [], [], [], usage)


def row(pipe: str | None, **of: str) -> tuple[int, int, int]:
    found = UsageRow.objects.get(pipe_id=pipe, **of)
    return found.units, found.size_bytes, found.cpu_us


def save(store: LedgerStore, first: int, *audits: AuditRecord) -> None:
    batch = AuditBatch(SuccessSampler(5))
    for number, audit in enumerate(audits):
        batch.add(Message(AUDIT, first + number, encode(audit)))
    store.save(batch, maybe_sealed_before=0, now=NOON)


@pytest.fixture
def store() -> LedgerStore:
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=0)
    made = LedgerStore()
    made.offsets = {AUDIT: 0}
    return made


def test_usage_of_pipes_is_added_up_by_day_cell_and_kind(store: LedgerStore):
    usage = UsageReport(900, 100, [PipeUsage("p1", 3, 30, 2), PipeUsage("p2", 5, 50, 1)])
    save(store, 0, told(usage), told(usage))
    save(store, 2, told(usage), told(usage, kind="transmit"), told(usage, NOON + timedelta(days=1)))
    assert row("p1", day="2026-01-01", kind="process") == (9, 90, 1_800)
    assert row("p2", day="2026-01-01", kind="transmit") == (5, 50, 300)
    assert row("p1", day="2026-01-02") == (3, 30, 600)
    assert row(None, day="2026-01-01", kind="process") == (0, 0, 300)


def test_usage_of_ingest_has_no_cell(store: LedgerStore):
    save(store, 0, told(UsageReport(7, 0, [PipeUsage("p1", 1, 10, 11)]), cell="", kind="ingest"))
    assert row("p1", cell="", kind="ingest") == (1, 10, 7)


def test_observer_that_lost_its_partition_adds_no_usage(store: LedgerStore):
    AuditOffset.objects.update(next_offset=9)
    with pytest.raises(PartitionLostError):
        save(store, 0, told(UsageReport(7, 0, [])))
    assert not UsageRow.objects.exists()


def test_writers_of_the_previous_release_report_no_usage(store: LedgerStore):
    save(store, 0, AuditRecord(AUDIT_VERSION, "c1", "process-0", "process", 0, [], [], [], []))
    assert not UsageRow.objects.exists()


usages = st.builds(
    UsageReport,
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.lists(
        st.builds(PipeUsage, st.sampled_from(["p1", "p2"]), st.integers(0, 99), st.integers(0, 999), st.integers(0, 9)),
        max_size=2,
        unique_by=lambda one: one.pipe,
    ),
)
writers = st.lists(
    st.tuples(usages, st.sampled_from(["c1", "c2"]), st.sampled_from(["process", "transmit"]), st.integers(0, 2)),
    max_size=8,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writers, st.integers(0, 8))
def test_rows_of_a_cell_equal_the_reported_usage_to_the_microsecond(
    said: list[tuple[UsageReport, str, str, int]], cut: int
):
    UsageRow.objects.all().delete()
    audits = [told(usage, NOON + timedelta(days=days), cell, kind) for usage, cell, kind, days in said]
    for some in (audits[:cut], audits[cut:]):
        add_usage(tally((0, audit) for audit in some).usage)
    wanted: Counter[tuple[str, str]] = Counter()
    for usage, cell, kind, _ in said:
        wanted[cell, kind] += usage.busy_us + usage.idle_us
    found: Counter[tuple[str, str]] = Counter()
    for one in UsageRow.objects.all():
        found[one.cell, one.kind] += one.cpu_us
    assert +found == +wanted


def test_ten_thousand_pipes_are_stored_in_one_statement(django_assert_num_queries: DjangoAssertNumQueries):
    day = (NOON.date() - date(1970, 1, 1)).days
    usage = {UsageId(f"p{number}", day, "c1", "process"): PipeShare(1, 10, 100) for number in range(PIPES)}
    for _ in range(2):
        with django_assert_num_queries(1):
            add_usage(usage)
    assert UsageRow.objects.filter(cpu_us=200, day=NOON.date()).count() == PIPES


def test_usage_older_than_thirteen_months_is_deleted(store: LedgerStore):
    save(store, 0, told(UsageReport(7, 0, [])))
    for days, left in ((400, True), (402, False)):
        trim(NOON + timedelta(days=days), attempts_keep_h=72, seals_keep_d=400, ends_keep=timedelta(days=14))
        assert UsageRow.objects.exists() == left


def test_many_refused_events_open_one_alert_of_the_pipe_and_few_open_none(pipe: Pipe, store: LedgerStore):
    save(store, 0, told(UsageReport(1, 0, [PipeUsage(pipe.id, 1, 10, 1, 9)]), cell="", kind="ingest"))
    assert not Alert.objects.exists()
    for number in (1, 2):
        save(store, number, told(UsageReport(1, 0, [PipeUsage(pipe.id, 1, 10, 1, 50)]), cell="", kind="ingest"))
    alert = Alert.objects.get()
    assert (alert.cause, alert.destination, alert.count, alert.state) == ("quota-exceeded", "", 100, "opened")
    assert UsageRow.objects.get(pipe=pipe).refused == 109
    later = alert.last_at + timedelta(minutes=61)
    assert resolve_recovered(now=later) == 1
    alert.refresh_from_db()
    assert alert.resolution == "nothing was refused for an hour"
