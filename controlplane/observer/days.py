"""Daily partitions of the ledger's tables: created ahead, and dropped as a whole once old and closed.

A day's rows cannot be deleted one by one when ten thousand pipes leave two hundred million of them. A bucket is the
minute of ingest or close to it, so a day's partition is written on that day. Rows of a day without a partition are kept
in the default partition, and moved when the day's partition is created.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

import structlog
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from controlplane.locks import held
from mgmt.models import FactRow, HighOffset, LagRow, LedgerDay, PipeRollup, Replay, Seal

DAY_MIN: Final = 24 * 60
AHEAD: Final = 3  # days for which the Observer may be down or locked out
SETTLED_AFTER: Final = timedelta(days=2)  # a younger day is open: its minutes may still get facts
FACTS: Final[list[type[Model]]] = [FactRow, LagRow, HighOffset, PipeRollup]
SEALS: Final[list[type[Model]]] = [Seal]
LOCK: Final = "observer.days"
LOCK_WAIT_MS: Final = 2_000  # a change may wait for the next run, but readers must not queue behind it
_FIRST: Final = date(1970, 1, 1)
log = structlog.get_logger(__name__)


def day_of(bucket: int) -> date:
    """Return the day, in UTC, of a bucket (minutes since the epoch)."""
    return _FIRST + timedelta(days=bucket // DAY_MIN)


def buckets_of(day: date) -> tuple[int, int]:
    """Return the day's first bucket and the next day's first bucket."""
    first = (day - _FIRST).days * DAY_MIN
    return first, first + DAY_MIN


def note_days(buckets: Iterable[int], now: datetime) -> None:
    """Open the days of buckets that get facts in this transaction, including days that were closed."""
    days = {day_of(bucket) for bucket in buckets}
    LedgerDay.objects.bulk_create([LedgerDay(day=day) for day in sorted(days)], ignore_conflicts=True)
    may_be_closed = LedgerDay.objects.filter(day__in=days, day__lt=_settled_before(now))
    may_be_closed.update(closed_at=None)  # locks the row, so that _close_before waits for this transaction


def open_days() -> Iterator[Q]:
    """Yield, for each day that may have unsealed buckets, the condition for the buckets of that day."""
    for day in LedgerDay.objects.filter(closed_at=None).order_by("day").values_list("day", flat=True):
        yield _within(day)


def unsealed(day: Q) -> QuerySet[FactRow]:
    """Return the facts of the day's unsealed buckets. Those of replays, which are never sealed, are left out.

    day: condition from open_days, which limits the query to that day's partition of both tables
    """
    seal = Seal.objects.filter(day, pipe_id=OuterRef("pipe_id"), bucket=OuterRef("bucket"))
    return FactRow.objects.filter(day, FactRow.OF_PIPES, ~Exists(seal))


def keep_days(now: datetime, *, facts_keep_d: int, seals_keep_d: int) -> None:
    """Create partitions for the next days, close sealed days, and drop days past their retention. Safe to run twice.

    facts_keep_d, seals_keep_d: retention in days
    """
    with held(LOCK) as ours:
        if not ours:
            return
        today = now.astimezone(UTC).date()
        for model in FACTS + SEALS:
            existing = _days_of(model)
            for day in (today + timedelta(days=ahead) for ahead in range(AHEAD)):
                if day not in existing:
                    _create_partition(model, day)
        _close_before(_settled_before(now), now)
        for models, keep_d in ((FACTS, facts_keep_d), (SEALS, seals_keep_d)):
            for model in models:
                _drop_before(model, today - timedelta(days=keep_d))


def _settled_before(now: datetime) -> date:
    return (now - SETTLED_AFTER).astimezone(UTC).date()


def _within(day: date) -> Q:
    first, following = buckets_of(day)
    return Q(bucket__gte=first, bucket__lt=following)


def _close_before(settled: date, now: datetime) -> None:
    for day in LedgerDay.objects.filter(closed_at=None, day__lt=settled).values_list("day", flat=True):
        with transaction.atomic():
            row = LedgerDay.objects.select_for_update().get(day=day)
            if not unsealed(_within(day)).exists() and not _has_open_replay(day):
                row.closed_at = now
                row.save(update_fields=["closed_at"])


def _has_open_replay(day: date) -> bool:
    """Return True if a replay that was created on the day still needs its facts: it may run for weeks."""
    return Replay.objects.filter(_within(day), result_at=None).exists()


def _drop_before(model: type[Model], first_kept: date) -> None:
    """Drop closed days before `first_kept`. Open days stay at any age: unsealed buckets keep all their rows."""
    open_ = list(LedgerDay.objects.filter(closed_at=None, day__lt=first_kept).values_list("day", flat=True))
    for day, partition in _days_of(model).items():
        if day < first_kept and day not in open_:
            _alter([f"DROP TABLE {partition}"])
    kept = Q(bucket__gte=buckets_of(first_kept)[0])
    for day in open_:
        kept |= _within(day)
    model._default_manager.filter(~kept).delete()  # rows of the default partition


def _days_of(model: type[Model]) -> dict[date, str]:
    """Return the daily partitions of the table, by day."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [table])
        ends = [name.rpartition("_")[2] for (name,) in cursor.fetchall()]
    return {date.fromisoformat(end): f"{table}_{end}" for end in ends if end.isdecimal()}


def _create_partition(model: type[Model], day: date) -> None:
    table, (first, following) = model._meta.db_table, buckets_of(day)
    partition = f"{table}_{day:%Y%m%d}"
    _alter(
        [
            f"CREATE TABLE {partition} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)",
            f"WITH moved AS (DELETE FROM {table}_other WHERE bucket >= {first} AND bucket < {following} RETURNING *)"  # noqa: S608
            f" INSERT INTO {partition} SELECT * FROM moved",
            f"ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({first}) TO ({following})",
        ]
    )


def _alter(statements: list[str]) -> None:
    """Run all statements or none.

    None if other queries would have to wait long for the lock, or wrote rows of this day to the default partition.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}")
            for statement in statements:
                cursor.execute(statement)
    except (OperationalError, IntegrityError) as exc:
        log.warning("ledger partition change postponed", statement=statements[-1], error=str(exc))
