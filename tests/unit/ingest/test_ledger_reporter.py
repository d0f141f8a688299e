"""ACKs are reported to the ledger unchanged until the report is stored; only then the journal drops them."""

import errno
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from pyroaring import BitMap64

from dataplane.ingest import ledger_reporter as module
from dataplane.ingest.journal import AckJournal, JournalledAck
from dataplane.ingest.ledger_reporter import LATE_S, MOST_UNREPORTED, EventCounts, LedgerReporter
from dataplane.ingest.rejections import RejectedEvent, RejectionBook, RejectionKey
from dataplane.ingest.version_traffic import TrafficBook
from dataplane.ledger.audit import AuditRecord, decode_audit
from dataplane.ledger.usage import PipeUsage
from dataplane.ledger.version_traffic import HOUR_US, VersionTraffic
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.telemetry.usage import UsageBook

Report = Callable[[KafkaError | None, Any], None]


class MemoryProducer:
    """Producer that keeps its records; the test decides on their delivery."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Report]] = []
        self.fails: Exception | None = None

    def produce(self, topic: str, value: bytes, *, key: str, on_delivery: Report) -> None:
        assert topic == AUDIT_TOPIC
        assert key in ("c1", "c2", "ingest-1"), "a retried record is sent to the same partition"
        if self.fails is not None:
            raise self.fails
        self.sent.append((value, on_delivery))

    def poll(self, seconds: float) -> int:
        """Report nothing: only the test's `report` does."""
        time.sleep(seconds)
        return 0

    def report(self, error: KafkaError | None = None) -> AuditRecord:
        value, report = self.sent.pop(0)
        report(error, None)
        return decode_audit(value)


def counts_of(
    usage: UsageBook | None = None, rejections: RejectionBook | None = None, traffic: TrafficBook | None = None
) -> EventCounts:
    return EventCounts(usage or UsageBook(), rejections or RejectionBook(), traffic or TrafficBook())


def teller(
    folder: Path, producer: MemoryProducer, report_bytes: int = REPORT_BYTES
) -> tuple[LedgerReporter, AckJournal]:
    journal = AckJournal(folder, "ingest-1")
    told = LedgerReporter(producer, journal, "ingest-1", counts_of(), report_bytes=report_bytes)
    return told, journal


def answer(told: LedgerReporter, journal: AckJournal, *positions: int, cell: str = "c1") -> None:
    acks = [JournalledAck(cell, "p", 7, list(positions))]
    journal.write(acks)
    told.on_delivery(acks)


def positions(audit: AuditRecord) -> set[int]:
    return {position for found in audit.facts for position in BitMap64.deserialize(found.positions)}


def left_behind(folder: Path) -> set[int]:
    return {position for ack in AckJournal(folder, "ingest-1").left_behind for position in ack.positions}


def test_report_contains_all_acks_so_far_and_the_journal_then_drops_them(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1, 2)
    told.report_if_due(0)
    assert left_behind(tmp_path) == {1, 2}, "kept while the report is in flight"
    audit = producer.report()
    told.report_if_due(0)
    assert (audit.cell, audit.writer, audit.kind) == ("c1", "ingest-1", "ingest")
    assert positions(audit) == {1, 2}
    assert left_behind(tmp_path) == set()


def test_failed_report_is_sent_again_unchanged_before_the_next_one(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    told.report_if_due(0)
    answer(told, journal, 2)
    first = producer.report(KafkaError(KafkaError._MSG_TIMED_OUT))
    told.report_if_due(0)
    assert len(producer.sent) == 1
    assert producer.report() == first
    told.report_if_due(0)
    assert positions(producer.report()) == {2}


def test_report_is_retried_after_a_full_queue(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    producer.fails = BufferError()
    told.report_if_due(0)
    assert not producer.sent
    producer.fails = None
    told.report_if_due(0)
    assert positions(producer.report()) == {1}


def test_acks_written_while_a_report_is_in_flight_are_never_dropped_with_it(tmp_path: Path):
    """The delivery report arrives on another thread, at any time between two calls of the reporter."""
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    told.report_if_due(0)
    answer(told, journal, 2)
    producer.report()
    assert 2 in left_behind(tmp_path)
    told.report_if_due(0)  # drops the first, begins the second
    assert left_behind(tmp_path) == {2}
    producer.report()
    told.report_if_due(0)
    assert left_behind(tmp_path) == set()


def test_journal_keeps_all_acks_until_every_cell_has_its_report(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1, cell="c1")
    answer(told, journal, 2, cell="c2")
    told.report_if_due(0)
    producer.report()
    told.report_if_due(0)
    assert left_behind(tmp_path) == {1, 2}
    producer.report()
    told.report_if_due(0)
    assert left_behind(tmp_path) == set()


def test_acks_left_behind_by_a_killed_run_are_reported_first(tmp_path: Path):
    _, journal = teller(tmp_path, MemoryProducer())
    journal.write([JournalledAck("c1", "p", 7, [1, 2])])  # and then killed
    producer = MemoryProducer()
    told, _ = teller(tmp_path, producer)
    told.report_if_due(0)
    assert positions(producer.report()) == {1, 2}


def test_finish_ends_in_time_and_leaves_the_rest_in_the_journal(tmp_path: Path):
    told, journal = teller(tmp_path, MemoryProducer())
    answer(told, journal, 1)
    told.finish(0.02)
    assert left_behind(tmp_path) == {1}


class StoringProducer(MemoryProducer):
    """Producer whose records are all stored at the next poll."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[AuditRecord] = []

    def poll(self, seconds: float) -> int:
        while self.sent:
            self.stored.append(self.report())
        return super().poll(seconds)


@pytest.mark.parametrize("in_flight", [False, True])
def test_finish_reports_acks_that_are_newer_than_the_last_round(tmp_path: Path, *, in_flight: bool):
    producer = StoringProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    told.report_if_due(60)
    if not in_flight:
        producer.poll(0)
        told.report_if_due(60)
    answer(told, journal, 2)
    assert told.finish(5) is True
    assert set().union(*map(positions, producer.stored)) == {1, 2}
    assert left_behind(tmp_path) == set()


def test_finish_reports_nothing_as_complete_while_the_journal_cannot_be_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    producer = StoringProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)

    def refuse() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal, "rotate", refuse)
    assert told.finish(0.02) is False


def test_usage_is_reported_separately_for_all_cells_also_without_new_acks(tmp_path: Path):
    producer = MemoryProducer()
    journal, usage = AckJournal(tmp_path, "ingest-1"), UsageBook()
    told = LedgerReporter(producer, journal, "ingest-1", counts_of(usage))
    told.report_if_due(0)
    assert not producer.sent, "not due yet"
    usage.add("p", 2, 30, 12)
    usage.hasten()
    told.report_if_due(0)
    audit = producer.report()
    assert audit.usage is not None
    assert (audit.cell, audit.kind, audit.facts, audit.usage.pipes) == ("", "ingest", [], [PipeUsage("p", 2, 30, 12)])
    told.report_if_due(0)
    assert not producer.sent, "no further report is due"


def test_finish_reports_the_usage_since_the_last_report(tmp_path: Path):
    producer = MemoryProducer()
    usage = UsageBook()
    told = LedgerReporter(producer, AckJournal(tmp_path, "ingest-1"), "ingest-1", counts_of(usage))
    usage.add("p", 1, 1, 11)
    told.finish(0.02)
    assert producer.report().usage is not None


def test_report_beyond_the_record_limit_is_split_and_the_journal_waits_for_the_last_part(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer, report_bytes=500)
    for pipe in range(50):
        acks = [JournalledAck("c1", f"pipe_{pipe}", 7, [pipe])]
        journal.write(acks)
        told.on_delivery(acks)
        told.passed(acks[0], [5], [10])
    found, sequences = [], []
    told.report_if_due(0)
    while producer.sent:
        assert len(producer.sent) == 1, "one part after another"
        assert left_behind(tmp_path) == set(range(50))
        audit = producer.report()
        found += sorted(positions(audit))
        sequences.append(audit.sequence)
        told.report_if_due(0)
    assert sorted(found) == list(range(50))
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) > 10
    assert left_behind(tmp_path) == set()


def test_every_report_has_its_own_run_and_sequence_and_a_resent_one_keeps_them(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    sequences = []
    for error in (KafkaError(KafkaError._MSG_TIMED_OUT), None):
        answer(told, journal, 1)
        told.report_if_due(0)
        audit = producer.report(error)
        sequences.append((audit.run, audit.sequence))
        told.report_if_due(0)
    assert sequences[0] == sequences[1], "it is the same report, stored or not"
    assert producer.report().sequence == 2
    another, other_journal = teller(tmp_path / "another", producer)
    answer(another, other_journal, 1)
    another.report_if_due(0)
    audit = producer.report()
    assert (audit.run != sequences[0][0], audit.sequence) == (True, 1)


REFUSED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


@pytest.mark.parametrize("failure", [REFUSED, BufferError(), None])
def test_unstored_reports_are_late_and_name_the_reason(
    tmp_path: Path, failure: Exception | None, monkeypatch: pytest.MonkeyPatch
):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    producer.fails = failure
    answer(told, journal, 1)
    for _ in range(3):
        told.report_if_due(0)
        if producer.sent:
            producer.report(REFUSED.args[0])
    assert (told.late_s, told.trouble) == (0, "")
    now_s[0] += LATE_S + 1
    assert told.late_s == LATE_S + 1
    assert re.match(r"reports to the ledger are not stored: .*(denied|full|failed|AUTHORIZATION)", told.trouble)
    producer.fails = None
    told.report_if_due(0)
    producer.report()
    told.report_if_due(0)
    assert (told.late_s, told.trouble, told.unreported) == (0, "", 0)
    now_s[0] += 3_600
    answer(told, journal, 2)
    assert told.late_s == 0, "no report was due in the meantime"


def test_failed_rotation_of_the_journal_makes_reports_late_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    with monkeypatch.context() as broken:
        broken.setattr(journal, "rotate", _no_room)
        told.report_if_due(0)
        now_s[0] += LATE_S + 1
        assert "No space left" in told.trouble
    told.report_if_due(0)
    assert positions(producer.report()) == {1}


def _no_room() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_acks_that_could_not_be_encoded_stay_in_memory_and_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    with monkeypatch.context() as broken:
        broken.setattr(module, "encode_parts", _no_memory)
        with pytest.raises(MemoryError):
            told.report_if_due(0)
    answer(told, journal, 2)
    told.report_if_due(0)
    assert left_behind(tmp_path) == {1, 2}
    assert positions(producer.report()) == {1, 2}


def _no_memory(*_: object) -> None:
    raise MemoryError


def test_reporter_is_full_at_a_million_unreported_events(tmp_path: Path):
    producer = MemoryProducer()
    told, _ = teller(tmp_path, producer)
    told.on_delivery([JournalledAck("c1", "p", 7, range(MOST_UNREPORTED - 1))])  # type: ignore[arg-type]  # as good as a list, and small
    full = [told.is_full]
    told.report_if_due(0)
    told.on_delivery([JournalledAck("c2", "p", 7, [1])])  # events of a report in flight count as well
    full.append(told.is_full)
    producer.report()
    told.report_if_due(0)
    full.append(told.is_full)
    assert full == [False, True, False]


def test_rejections_are_reported_for_all_cells_and_a_failed_report_is_repeated_with_its_number(tmp_path: Path):
    producer = MemoryProducer()
    book = RejectionBook()
    told = LedgerReporter(producer, AckJournal(tmp_path, "ingest-1"), "ingest-1", counts_of(rejections=book))
    book.add(RejectedEvent(RejectionKey("p", "shop", "", "schema", "/id", "abcd", 7), "needs a number", None))
    told.report_if_due(0)
    assert not producer.sent, "not due yet"
    book.hasten()
    told.report_if_due(0)
    refused = producer.report(KafkaError(KafkaError._MSG_TIMED_OUT))
    book.add(RejectedEvent(RejectionKey("p", "shop", "", "schema", "/id", "abcd", 8), "", None))
    told.report_if_due(0)
    stored = producer.report()
    assert (stored.cell, stored.kind, stored.sequence) == ("", "ingest", refused.sequence)
    assert stored.rejections == refused.rejections
    assert [(one.pipe, one.minute, one.events, one.detail) for one in stored.rejections] == [
        ("p", 7, 1, "needs a number")
    ]
    assert told.finish(0.02) is False
    assert [one.minute for one in producer.report().rejections] == [8], "also at the end of the process"


def test_traffic_by_version_is_reported_for_all_cells_and_not_twice(tmp_path: Path):
    producer, book = MemoryProducer(), TrafficBook()
    told = LedgerReporter(producer, AckJournal(tmp_path, "ingest-1"), "ingest-1", counts_of(traffic=book))
    book.accept("p", "shop", ["orders@1", "orders@1", ""], 3 * HOUR_US)
    book.reject("p", "shop", "orders@1", 3 * HOUR_US)
    told.report_if_due(0)
    assert not producer.sent, "not due yet"
    book.hasten()
    told.report_if_due(0)
    stored = producer.report()
    assert (stored.cell, stored.kind, stored.usage) == ("", "ingest", None)
    assert stored.traffic == [VersionTraffic("p", "shop", "orders@1", 3, 2, 1)]
    told.report_if_due(0)
    assert not producer.sent
