"""Daily ledger partitions: created ahead, closed when sealed, reopened by late facts, dropped whole."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import Model

from controlplane.observer.days import buckets_of, day_of, keep_days, note_days, open_days, unsealed
from mgmt.models import FactRow, HighOffset, LagRow, LedgerDay, Seal

pytestmark = pytest.mark.django_db
NOW = datetime(2031, 5, 10, 12, 30, tzinfo=UTC)
TODAY = NOW.date()


def keep(now: datetime = NOW, facts_keep_d: int = 30, seals_keep_d: int = 400) -> None:
    keep_days(now, facts_keep_d=facts_keep_d, seals_keep_d=seals_keep_d)


def fact(day: date, pipe: str = "p1", minute: int = 7) -> None:
    bucket = buckets_of(day)[0] + minute
    FactRow.objects.create(
        pipe_id=pipe, bucket=bucket, node="ingest", fact="sent", child=0, audit_partition=0, positions=b"", count=0
    )
    LagRow.objects.create(pipe_id=pipe, bucket=bucket, node="ingest", audit_partition=0, lag_out=b"")
    HighOffset.objects.create(pipe_id=pipe, bucket=bucket, topic="t", partition=0, offset=1)
    note_days([bucket], NOW)


def seal(day: date, pipe: str = "p1", minute: int = 7) -> None:
    bucket = buckets_of(day)[0] + minute
    Seal.objects.create(pipe_id=pipe, bucket=bucket, sealed_at=NOW, accepted=1, unacked=0, lost=0, bins={}, nodes=[])


def lies_in(model: type[Model]) -> list[str]:
    """Return the partitions that hold the model's rows."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT DISTINCT tableoid::regclass::text FROM {model._meta.db_table} ORDER BY 1")  # noqa: S608
        return [name for (name,) in cursor.fetchall()]


def is_closed(day: date) -> bool:
    return LedgerDay.objects.get(day=day).closed_at is not None


def test_minute_belongs_to_its_day():
    first, following = buckets_of(TODAY)
    assert {day_of(first), day_of(following - 1)} == {TODAY}
    assert day_of(following) == TODAY + timedelta(days=1)
    assert day_of(int(NOW.timestamp()) // 60) == TODAY


def test_days_are_created_ahead_and_earlier_rows_are_moved_into_them():
    fact(TODAY)
    assert lies_in(FactRow) == ["mgmt_factrow_other"]
    keep()
    keep()
    fact(TODAY + timedelta(days=2))
    for model in (FactRow, LagRow, HighOffset):
        table = model._meta.db_table
        assert lies_in(model) == [f"{table}_20310510", f"{table}_20310512"]
        assert model._default_manager.count() == 2


def test_day_is_closed_when_each_of_its_minutes_is_sealed_and_reopened_by_a_late_fact():
    day = TODAY - timedelta(days=3)
    fact(day)
    fact(day, "p2")
    seal(day)
    keep()
    assert not is_closed(day)
    assert FactRow.objects.filter(next(open_days())).count() == 2
    seal(day, "p2")
    keep()
    assert is_closed(day)
    assert list(open_days()) == []
    fact(day, "p3")
    assert not is_closed(day)


def test_unsealed_minutes_of_a_day_are_read_from_its_partitions_only():
    keep()
    fact(TODAY)
    asked = set(re.findall(r"mgmt_(?:factrow|seal)_(?:\d{8}|other)", unsealed(next(open_days())).explain()))
    assert asked == {"mgmt_factrow_20310510", "mgmt_seal_20310510"}


def test_day_that_may_still_receive_facts_is_not_closed():
    fact(TODAY - timedelta(days=1))
    seal(TODAY - timedelta(days=1))
    keep()
    assert not is_closed(TODAY - timedelta(days=1))


def test_old_days_are_dropped_whole_their_seals_later_and_an_open_day_stays():
    made, stuck = TODAY, TODAY + timedelta(days=1)
    keep()
    for day in (made, stuck):
        fact(day)
    seal(made)
    long_after = NOW + timedelta(days=60)
    keep(long_after)
    assert lies_in(FactRow) == ["mgmt_factrow_20310511"]
    assert LagRow.objects.count() == HighOffset.objects.count() == 1
    assert Seal.objects.count() == 1
    keep(NOW + timedelta(days=410))
    assert not Seal.objects.exists()
    assert FactRow.objects.count() == 1


def test_rows_outside_all_days_are_deleted_by_the_same_rule():
    day = TODAY - timedelta(days=50)
    fact(day)
    fact(day, "p2")
    seal(day)
    keep()
    assert FactRow.objects.count() == 2
    seal(day, "p2")
    keep()
    assert not FactRow.objects.exists()
    assert Seal.objects.count() == 2


def test_facts_of_a_replay_keep_no_day_open_and_are_dropped_with_it():
    fact(TODAY)
    fact(TODAY, "replay_1")
    seal(TODAY)
    keep()
    later = NOW + timedelta(days=3)
    keep(later)
    assert is_closed(TODAY)
    note_days([buckets_of(TODAY)[0] + 7], later)  # a late fact of the replay
    assert not is_closed(TODAY)
    assert not unsealed(next(open_days())).exists(), "no Observer takes it for an open minute"
    keep(NOW + timedelta(days=31))
    assert not FactRow.objects.exists()
    assert not LagRow.objects.exists()
