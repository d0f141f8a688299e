"""The books' tables by day: partitions are made ahead, and one that is old and closed goes whole.

A day's rows cannot be deleted one by one where ten thousand pipes leave two hundred million of them. A bucket is the
minute of ingest or close to it, so a day's partition is written on that day; what lies outside of all days, because
nobody made them, is kept in the default partition and carried over when its day is made.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

import structlog
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from controlplane.locks import held
from mgmt.models import FactRow, LagRow, LedgerDay, Reach, Seal

DAY_MIN: Final = 24 * 60
AHEAD: Final = 3  # days for which the Observer may be away or locked out
SETTLED_AFTER: Final = timedelta(days=2)  # a younger day is open: its minutes may still get facts
FACTS: Final[list[type[Model]]] = [FactRow, LagRow, Reach]
SEALS: Final[list[type[Model]]] = [Seal]
LOCK: Final = "observer.days"
LOCK_WAIT_MS: Final = 2_000  # rather tomorrow than that readers queue behind us
_FIRST: Final = date(1970, 1, 1)
log = structlog.get_logger(__name__)


def day_of(bucket: int) -> date:
    """The day that a minute since the epoch lies in, UTC."""
    return _FIRST + timedelta(days=bucket // DAY_MIN)


def buckets_of(day: date) -> tuple[int, int]:
    """The day's first bucket, and the next day's."""
    first = (day - _FIRST).days * DAY_MIN
    return first, first + DAY_MIN


def note_days(buckets: Iterable[int], now: datetime) -> None:
    """Facts come for these minutes in this transaction: their days are open, also those that were closed."""
    days = {day_of(bucket) for bucket in buckets}
    LedgerDay.objects.bulk_create([LedgerDay(day=day) for day in sorted(days)], ignore_conflicts=True)
    may_be_closed = LedgerDay.objects.filter(day__in=days, day__lt=_settled_before(now))
    may_be_closed.update(closed_at=None)  # with its lock: whoever looks whether the day can be closed waits for us


def open_days() -> Iterator[Q]:
    """For each day with minutes that may not be sealed: which buckets are its own."""
    for day in LedgerDay.objects.filter(closed_at=None).order_by("day").values_list("day", flat=True):
        yield _within(day)


def unsealed(day: Q) -> QuerySet[FactRow]:
    """Facts of the day's minutes that are not sealed. `day`, from open_days, limits both tables to its partitions."""
    seal = Seal.objects.filter(day, pipe_id=OuterRef("pipe_id"), bucket=OuterRef("bucket"))
    return FactRow.objects.filter(day, ~Exists(seal))


def keep_days(now: datetime, *, facts_keep_d: int, seals_keep_d: int) -> None:
    """Make the days to come, close those that are sealed, drop those that are kept no longer. Safe to run twice."""
    with held(LOCK) as ours:
        if not ours:
            return
        today = now.astimezone(UTC).date()
        for model in FACTS + SEALS:
            made = _days_of(model)
            for day in (today + timedelta(days=ahead) for ahead in range(AHEAD)):
                if day not in made:
                    _make(model, day)
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
            if not unsealed(_within(day)).exists():
                row.closed_at = now
                row.save(update_fields=["closed_at"])


def _drop_before(model: type[Model], first_kept: date) -> None:
    """What is open stays, whatever its age: a minute that is not sealed keeps all it has."""
    open_ = list(LedgerDay.objects.filter(closed_at=None, day__lt=first_kept).values_list("day", flat=True))
    for day, partition in _days_of(model).items():
        if day < first_kept and day not in open_:
            _alter([f"DROP TABLE {partition}"])
    kept = Q(bucket__gte=buckets_of(first_kept)[0])
    for day in open_:
        kept |= _within(day)
    model._default_manager.filter(~kept).delete()  # what lies outside of all days


def _days_of(model: type[Model]) -> dict[date, str]:
    """The partitions of the table that are days, by day."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [table])
        ends = [name.rpartition("_")[2] for (name,) in cursor.fetchall()]
    return {date.fromisoformat(end): f"{table}_{end}" for end in ends if end.isdecimal()}


def _make(model: type[Model], day: date) -> None:
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
    """All of them or none: none if others would have to wait for us for long, or wrote where we move from."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}")
            for statement in statements:
                cursor.execute(statement)
    except (OperationalError, IntegrityError) as exc:
        log.warning("a day of the books is left for the next time", statement=statements[-1], error=str(exc))
