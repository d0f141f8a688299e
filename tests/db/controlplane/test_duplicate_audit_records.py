"""Audit record that was sent twice: facts are united; timing, usage and samples are counted once."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from pyroaring import BitMap64

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.runs import load_runs
from controlplane.observer.store import LedgerStore, PartitionLostError
from controlplane.observer.trim import RUNS_FOR, trim
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, FactSet, LagSet, encode
from dataplane.ledger.breakdown import SLICES, Breakdown
from dataplane.ledger.fields import FieldCount, FieldObservation
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.usage import PipeUsage, UsageReport
from dataplane.names import AUDIT_TOPIC
from mgmt.models import AuditOffset, FactRow, LagRow, ReportRun
from mgmt.models import FieldSample as SampleRow
from mgmt.models import Usage as UsageRow
from tests.db.controlplane.test_observer_storage import AUDIT, Message

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BUCKET = int(NOON.timestamp()) // 60


def report(sequence: int, run: str = "a", units: range = range(3), writer: str = "ingest-1") -> AuditRecord:
    sketch = LagSketch()
    sketch.add([10] * len(units))
    breakdown = Breakdown()
    breakdown.add([0] * len(units), [[10] * SLICES] * len(units))
    return AuditRecord(
        AUDIT_VERSION,
        "c1",
        writer,
        "ingest",
        int(NOON.timestamp()) * 1_000_000,
        [],
        [],
        [FactSet("p1", "ingest", BUCKET, "sent", "acked", 0, BitMap64(units).serialize())],
        [LagSet("p1", "transmit:crm", BUCKET, "out", sketch.encode(), breakdown.encode())],
        UsageReport(100, 0, [PipeUsage("p1", len(units), 10, 1)]),
        [FieldObservation("p1", "shop", BUCKET, 1, [FieldCount("$", 1, {"object": 1})])],
        run,
        sequence,
    )


class Observer:
    """Observer that stores what it reads; `again` returns one that has only the rows."""

    def __init__(self, offset: int = 0) -> None:
        AuditOffset.objects.update_or_create(topic=AUDIT_TOPIC, partition=0, defaults={"next_offset": offset})
        self.store = LedgerStore()
        self.store.offsets = {AUDIT: offset}
        self.store.counted |= load_runs(0)

    def read(self, *audits: AuditRecord) -> None:
        batch = AuditBatch(SuccessSampler(5), self.store.counted)
        for number, audit in enumerate(audits):
            batch.add(Message(AUDIT, self.store.offsets[AUDIT] + number, encode(audit)))
        self.store.save(batch, maybe_sealed_before=0, now=NOON)

    def again(self) -> "Observer":
        return Observer(self.store.offsets[AUDIT])


def counted() -> tuple[int, int, int, int]:
    """Return units, lags, usage and samples; each lag is of a delivery, which has a breakdown."""
    units = sum(row.count for row in FactRow.objects.all())
    rows = LagRow.objects.values_list("lag_out", "breakdown")
    lags = sum(LagSketch.decode(bytes(lag_out)).count for lag_out, _ in rows if lag_out is not None)
    assert lags == sum(Breakdown.decode(bytes(one)).count for _, one in rows if one is not None)
    return units, lags, sum(row.cpu_us for row in UsageRow.objects.all()), SampleRow.objects.count()


def test_record_twice_in_one_batch_is_counted_once():
    Observer().read(report(1), report(1))
    assert counted() == (3, 3, 100, 1)


def test_record_repeated_in_a_later_batch_is_counted_once():
    observer = Observer()
    observer.read(report(1))
    observer.read(report(1), report(2, units=range(3, 5)))
    assert counted() == (5, 5, 200, 2)


def test_observer_with_only_the_rows_knows_the_counted_records():
    observer = Observer()
    observer.read(report(1))
    observer.again().read(report(1))
    assert counted() == (3, 3, 100, 1)


def test_record_that_could_not_be_stored_counts_when_it_is_read_again():
    observer = Observer()
    AuditOffset.objects.update(next_offset=5)
    with pytest.raises(PartitionLostError):
        observer.read(report(1))
    assert not ReportRun.objects.exists()
    observer.again().read(report(1))
    assert counted() == (3, 3, 100, 1)


def test_each_run_of_a_writer_and_each_writer_has_its_own_sequence():
    observer = Observer()
    observer.read(report(1), report(1, run="b"), report(1, writer="ingest-2"))
    observer.read(report(1), report(2, run="b"))
    assert counted()[1:] == (12, 400, 4)


def test_each_part_of_one_report_is_counted():
    whole = msgspec.structs.replace(report(7, units=range(40)), facts=[], fields=[])
    pipes = [PipeUsage(f"p{number}", 1, 1, 1) for number in range(40)]
    parts = encode_parts(msgspec.structs.replace(whole, usage=UsageReport(400, 0, pipes)), 200)
    assert len(parts) > 3
    observer = Observer()
    batch = AuditBatch(SuccessSampler(5), observer.store.counted)
    for number, value in enumerate([*parts, *parts]):
        batch.add(Message(AUDIT, number, value))
    observer.store.save(batch, maybe_sealed_before=0, now=NOON)
    assert counted() == (0, 40, 400, 0)


def test_records_without_a_sequence_number_are_all_counted():
    Observer().read(report(0, run=""), report(0, run=""))
    assert counted()[1:] == (6, 200, 2)
    assert not ReportRun.objects.exists()


def test_ended_runs_are_deleted_after_a_day():
    Observer().read(report(1))
    for later, left in ((RUNS_FOR, True), (RUNS_FOR + timedelta(seconds=1), False)):
        trim(NOON + later, attempts_keep_h=72, seals_keep_d=400, ends_keep=timedelta(days=14))
        assert ReportRun.objects.exists() is left
