"""Broken sequences that the sequence query reports: each has one row, however often it is reported."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.observer import sequence_breaks
from controlplane.observer.sequence_breaks import save_breaks
from controlplane.observer.trim import BREAKS_FOR, trim
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord
from dataplane.ledger.sequence_breaks import BreakKind, SequenceBreak
from mgmt.models import Pipe, SequenceBreakRow
from tests.db.controlplane.test_duplicate_audit_records import Observer

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_US = int(NOON.timestamp()) * 1_000_000


def reported(
    pipe: str, position: int = 7, *, kind: BreakKind = "gap", missing: int = 3, at_us: int = NOON_US, key: str = "k"
) -> SequenceBreak:
    ranges = [(41, 40 + missing)] if missing else []
    return SequenceBreak(pipe, 1, "shop", key, kind, NOON_US // 60_000_000, position, at_us, False, 44, 40, ranges)


def audit(*breaks: SequenceBreak) -> AuditRecord:
    return AuditRecord(AUDIT_VERSION, "c1", "sequence", "sequence", 1, [], [], [], [], breaks=list(breaks))


def missing() -> dict[int, int]:
    return dict(SequenceBreakRow.objects.values_list("position", "missing"))


def test_break_is_stored_with_its_fields(pipe: Pipe):
    Observer().read(audit(reported(pipe.id)))
    row = SequenceBreakRow.objects.get()
    assert (row.pipe, row.source, row.key, row.kind, row.at) == (pipe, "shop", "k", "gap", NOON)
    assert (row.position, row.number, row.previous, row.missing, row.is_clock) == (7, 44, 40, 3, False)
    assert row.ranges == [[41, 43]]
    assert row.bucket == NOON_US // 60_000_000


def test_repeated_report_changes_nothing_and_an_older_one_does_not_reopen_a_gap(pipe: Pipe):
    observer = Observer()
    observer.read(audit(reported(pipe.id), reported(pipe.id, missing=2)))
    assert missing() == {7: 2}
    observer.read(audit(reported(pipe.id, missing=0)))
    observer.read(audit(reported(pipe.id, missing=3)))
    assert missing() == {7: 0}
    observer.read(audit(reported(pipe.id, kind="out-of-order", missing=0)))
    assert SequenceBreakRow.objects.count() == 2, "one event may fill one gap and open none, but each kind counts"


def test_breaks_of_unknown_pipes_and_texts_that_postgres_refuses_do_not_stop_the_observer(pipe: Pipe):
    Observer().read(audit(reported("gone"), reported(pipe.id, key="a\x00b" + "x" * 300)))
    assert SequenceBreakRow.objects.get().key == "ab" + "x" * 254


def test_newest_breaks_of_each_kind_are_kept(pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sequence_breaks, "MOST_OF_KIND", 3)
    at_us = int(datetime.now(UTC).timestamp() - 86_400) * 1_000_000
    save_breaks(reported(pipe.id, number, at_us=at_us + number) for number in range(2))
    save_breaks(reported(pipe.id, number, at_us=at_us + number) for number in range(2, 5))
    save_breaks(reported(pipe.id, number, kind="repeated", missing=0, at_us=at_us + number) for number in range(5, 8))
    assert set(missing()) == {2, 3, 4, 5, 6, 7}, "repeats do not displace gaps"


def test_breaks_past_their_retention_are_left_to_the_trim(pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sequence_breaks, "MOST_OF_KIND", 3)
    old_us = int((datetime.now(UTC) - BREAKS_FOR - timedelta(minutes=1)).timestamp()) * 1_000_000
    save_breaks(reported(pipe.id, number, at_us=old_us + number) for number in range(5))
    assert len(missing()) == 5


def test_closed_gaps_displace_no_open_one_and_each_minute_of_the_last_hour_keeps_some(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sequence_breaks, "MOST_OF_KIND", 3)
    now_us = int(datetime.now(UTC).timestamp()) * 1_000_000
    save_breaks([reported(pipe.id, 1, at_us=now_us - 600_000_000)])
    save_breaks(reported(pipe.id, number, missing=0, at_us=now_us) for number in range(10, 20))
    assert missing()[1] == 3
    save_breaks(reported(pipe.id, number, at_us=now_us + number) for number in range(20, 40))
    assert 1 in missing(), "an old open gap stays for the alert"
    assert len(missing()) < 12


def test_breaks_are_deleted_after_their_retention(pipe: Pipe):
    save_breaks([reported(pipe.id, 1), reported(pipe.id, 2, at_us=NOON_US + 1_000_000)])
    trim(NOON + BREAKS_FOR + timedelta(seconds=1), attempts_keep_h=1, seals_keep_d=1, ends_keep=timedelta(days=1))
    assert set(missing()) == {2}
