"""Reporting to the ledger what was ACKed: unchanged until stored, and the journal let go only then."""

import errno
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from pyroaring import BitMap64

from dataplane.ingest import telling as module
from dataplane.ingest.journal import Ack, AckJournal
from dataplane.ingest.telling import LATE_S, MOST_UNREPORTED, Teller
from dataplane.ledger.audit import Audit, decode_audit
from dataplane.ledger.usage import PipeUsage
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.usage import UsageBook

Report = Callable[[KafkaError | None, Any], None]


class MemoryProducer:
    """Keeps what is produced; the test says what becomes of it."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Report]] = []
        self.fails: Exception | None = None

    def produce(self, topic: str, value: bytes, *, key: str, on_delivery: Report) -> None:
        assert topic == AUDIT_TOPIC
        assert key in ("c1", "c2", "ingest-1"), "a record that is sent again goes to the same partition"
        if self.fails is not None:
            raise self.fails
        self.sent.append((value, on_delivery))

    def poll(self, seconds: float) -> int:
        """No report comes by itself."""
        time.sleep(seconds)
        return 0

    def report(self, error: KafkaError | None = None) -> Audit:
        value, report = self.sent.pop(0)
        report(error, None)
        return decode_audit(value)


def teller(folder: Path, producer: MemoryProducer, report_bytes: int = REPORT_BYTES) -> tuple[Teller, AckJournal]:
    journal = AckJournal(folder, "ingest-1")
    return Teller(producer, journal, "ingest-1", UsageBook(), report_bytes), journal


def answer(told: Teller, journal: AckJournal, *positions: int, cell: str = "c1") -> None:
    acks = [Ack(cell, "p", 7, list(positions))]
    journal.write(acks)
    told.acked(acks)


def positions(audit: Audit) -> set[int]:
    return {position for found in audit.facts for position in BitMap64.deserialize(found.positions)}


def left_behind(folder: Path) -> set[int]:
    return {position for ack in AckJournal(folder, "ingest-1").left_behind for position in ack.positions}


def test_a_round_tells_everything_so_far_and_the_journal_lets_it_go(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1, 2)
    told.tell_if_due(0)
    assert left_behind(tmp_path) == {1, 2}, "kept while it is on its way"
    audit = producer.report()
    told.tell_if_due(0)
    assert (audit.cell, audit.writer, audit.kind) == ("c1", "ingest-1", "ingest")
    assert positions(audit) == {1, 2}
    assert left_behind(tmp_path) == set()


def test_a_round_that_failed_is_sent_again_unchanged_and_the_next_waits(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    told.tell_if_due(0)
    answer(told, journal, 2)
    first = producer.report(KafkaError(KafkaError._MSG_TIMED_OUT))
    told.tell_if_due(0)
    assert len(producer.sent) == 1
    assert producer.report() == first
    told.tell_if_due(0)
    assert positions(producer.report()) == {2}


def test_a_full_queue_is_tried_again(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    producer.fails = BufferError()
    told.tell_if_due(0)
    assert not producer.sent
    producer.fails = None
    told.tell_if_due(0)
    assert positions(producer.report()) == {1}


def test_acks_that_come_while_a_report_does_are_never_let_go_with_it(tmp_path: Path):
    """The report comes on another thread, at any moment between two turns of ours."""
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    told.tell_if_due(0)
    answer(told, journal, 2)
    producer.report()
    assert 2 in left_behind(tmp_path)
    told.tell_if_due(0)  # lets the first go, begins the second
    assert left_behind(tmp_path) == {2}
    producer.report()
    told.tell_if_due(0)
    assert left_behind(tmp_path) == set()


def test_the_journal_keeps_everything_until_every_cell_has_been_told(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1, cell="c1")
    answer(told, journal, 2, cell="c2")
    told.tell_if_due(0)
    producer.report()
    told.tell_if_due(0)
    assert left_behind(tmp_path) == {1, 2}
    producer.report()
    told.tell_if_due(0)
    assert left_behind(tmp_path) == set()


def test_what_a_killed_run_left_behind_is_told_first_thing(tmp_path: Path):
    _, journal = teller(tmp_path, MemoryProducer())
    journal.write([Ack("c1", "p", 7, [1, 2])])  # and killed
    producer = MemoryProducer()
    told, _ = teller(tmp_path, producer)
    told.tell_if_due(0)
    assert positions(producer.report()) == {1, 2}


def test_finish_gives_up_in_time_and_leaves_the_rest_in_the_journal(tmp_path: Path):
    told, journal = teller(tmp_path, MemoryProducer())
    answer(told, journal, 1)
    told.finish(0.02)
    assert left_behind(tmp_path) == {1}


def test_what_was_spent_is_told_apart_for_all_cells_and_with_no_traffic_too(tmp_path: Path):
    producer = MemoryProducer()
    journal, usage = AckJournal(tmp_path, "ingest-1"), UsageBook()
    told = Teller(producer, journal, "ingest-1", usage)
    told.tell_if_due(0)
    assert not producer.sent, "not due yet"
    usage.add("p", 2, 30, 12)
    usage.hasten()
    told.tell_if_due(0)
    audit = producer.report()
    assert audit.usage is not None
    assert (audit.cell, audit.kind, audit.facts, audit.usage.pipes) == ("", "ingest", [], [PipeUsage("p", 2, 30, 12)])
    told.tell_if_due(0)
    assert not producer.sent, "nothing more is due"


def test_finish_tells_what_was_spent_since(tmp_path: Path):
    producer = MemoryProducer()
    usage = UsageBook()
    told = Teller(producer, AckJournal(tmp_path, "ingest-1"), "ingest-1", usage)
    usage.add("p", 1, 1, 11)
    told.finish(0.02)
    assert producer.report().usage is not None


def test_a_report_that_is_too_large_for_a_record_is_split_and_the_journal_waits_for_the_last_part(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer, report_bytes=500)
    for pipe in range(50):
        acks = [Ack("c1", f"pipe_{pipe}", 7, [pipe])]
        journal.write(acks)
        told.acked(acks)
        told.passed(acks[0], [5], [10])
    found, sequences = [], []
    told.tell_if_due(0)
    while producer.sent:
        assert len(producer.sent) == 1, "one part after the other"
        assert left_behind(tmp_path) == set(range(50))
        audit = producer.report()
        found += sorted(positions(audit))
        sequences.append(audit.sequence)
        told.tell_if_due(0)
    assert sorted(found) == list(range(50))
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) > 10
    assert left_behind(tmp_path) == set()


def test_every_round_has_its_own_numbers_and_a_resent_one_keeps_them(tmp_path: Path):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    sequences = []
    for error in (KafkaError(KafkaError._MSG_TIMED_OUT), None):
        answer(told, journal, 1)
        told.tell_if_due(0)
        audit = producer.report(error)
        sequences.append((audit.run, audit.sequence))
        told.tell_if_due(0)
    assert sequences[0] == sequences[1], "stored or not, it is the same report"
    assert producer.report().sequence == 2
    another, other_journal = teller(tmp_path / "another", producer)
    answer(another, other_journal, 1)
    another.tell_if_due(0)
    audit = producer.report()
    assert (audit.run != sequences[0][0], audit.sequence) == (True, 1)


REFUSED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


@pytest.mark.parametrize("failure", [REFUSED, BufferError(), None])
def test_reports_that_cannot_be_stored_are_late_and_say_why(
    tmp_path: Path, failure: Exception | None, monkeypatch: pytest.MonkeyPatch
):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    producer.fails = failure
    answer(told, journal, 1)
    for _ in range(3):
        told.tell_if_due(0)
        if producer.sent:
            producer.report(REFUSED.args[0])
    assert (told.late_s, told.trouble) == (0, "")
    now_s[0] += LATE_S + 1
    assert told.late_s == LATE_S + 1
    assert re.match(r"reports to the ledger are not stored: .*(denied|full|failed|AUTHORIZATION)", told.trouble)
    producer.fails = None
    told.tell_if_due(0)
    producer.report()
    told.tell_if_due(0)
    assert (told.late_s, told.trouble, told.unreported) == (0, "", 0)
    now_s[0] += 3_600
    answer(told, journal, 2)
    assert told.late_s == 0, "nothing was owed meanwhile"


def test_a_journal_that_cannot_rotate_makes_reports_late_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    with monkeypatch.context() as broken:
        broken.setattr(journal, "rotate", _no_room)
        told.tell_if_due(0)
        now_s[0] += LATE_S + 1
        assert "No space left" in told.trouble
    told.tell_if_due(0)
    assert positions(producer.report()) == {1}


def _no_room() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_could_not_be_encoded_stays_in_the_books_and_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    producer = MemoryProducer()
    told, journal = teller(tmp_path, producer)
    answer(told, journal, 1)
    with monkeypatch.context() as broken:
        broken.setattr(module, "encode_parts", _no_memory)
        with pytest.raises(MemoryError):
            told.tell_if_due(0)
    answer(told, journal, 2)
    told.tell_if_due(0)
    assert left_behind(tmp_path) == {1, 2}
    assert positions(producer.report()) == {1, 2}


def _no_memory(*_: object) -> None:
    raise MemoryError


def test_beyond_a_million_unreported_events_no_more_are_to_be_taken(tmp_path: Path):
    producer = MemoryProducer()
    told, _ = teller(tmp_path, producer)
    told.acked([Ack("c1", "p", 7, range(MOST_UNREPORTED - 1))])  # type: ignore[arg-type]  # as good as a list, and small
    full = [told.is_full]
    told.tell_if_due(0)
    told.acked([Ack("c2", "p", 7, [1])])  # those under way count as well
    full.append(told.is_full)
    producer.report()
    told.tell_if_due(0)
    full.append(told.is_full)
    assert full == [False, True, False]
