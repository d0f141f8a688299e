"""Deletes what is older than it is kept for, a little at a time. Seals are kept."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Exists, Model, OuterRef, QuerySet

from mgmt.models import (
    Alert,
    Attempt,
    CloseMark,
    DeadLetter,
    DestinationTest,
    FactRow,
    Finding,
    Heartbeat,
    HeldMessage,
    LagRow,
    LaneSignal,
    Move,
    OffsetSet,
    PatternHour,
    Reach,
    Seal,
    Usage,
)
from mgmt.queries.places import HOUR_S

AT_ONCE: Final = 5_000
TESTS_FOR: Final = timedelta(days=1)
SILENT_FOR: Final = timedelta(hours=1)
MARKS_FOR: Final = timedelta(days=2)
ALERTS_FOR: Final = timedelta(days=90)
HOURS_FOR: Final = timedelta(days=29)  # four weeks are compared
USAGE_FOR: Final = timedelta(days=400)  # a year and the month that it is compared with


def trim(now: datetime, *, attempts_keep_h: int, facts_keep_d: int, ends_keep: timedelta) -> int:
    """One slice of each kind; how many rows went."""
    facts_before = int((now - timedelta(days=facts_keep_d)).timestamp() // 60)
    queries: list[QuerySet[Any]] = [
        Attempt.objects.filter(at__lt=now - timedelta(hours=attempts_keep_h)),
        Heartbeat.objects.filter(at__lt=now - SILENT_FOR),
        LaneSignal.objects.filter(at__lt=now - SILENT_FOR, slow=False),  # told when it changes, and may last for days
        DeadLetter.objects.filter(at__lt=now - ends_keep),
        HeldMessage.objects.filter(at__lt=now - ends_keep),
        OffsetSet.objects.filter(hour__lt=int((now - ends_keep).timestamp()) // HOUR_S),
        Move.objects.filter(finished_at__lt=now - ends_keep),
        Alert.objects.filter(resolved_at__lt=now - ALERTS_FOR),
        DestinationTest.objects.filter(created_at__lt=now - TESTS_FOR),
        Finding.objects.filter(ended_at__lt=now - ALERTS_FOR),
        PatternHour.objects.filter(hour__lt=int((now - HOURS_FOR).timestamp()) // HOUR_S),
        Usage.objects.filter(day__lt=(now - USAGE_FOR).date()),
        CloseMark.objects.filter(noted_at__lt=now - MARKS_FOR),
        *(_sealed(model, facts_before) for model in (FactRow, LagRow, Reach)),
    ]
    return sum(_delete_slice(query) for query in queries)


def _sealed(model: type[Model], before: int) -> QuerySet[Any]:
    """Rows of old buckets whose account is final; an open one keeps all it has."""
    seal = Seal.objects.filter(pipe_id=OuterRef("pipe_id"), bucket=OuterRef("bucket"))
    rows: QuerySet[Any] = model._default_manager.filter(Exists(seal), bucket__lt=before)
    return rows


def _delete_slice(query: QuerySet[Any]) -> int:
    ids = list(query.order_by().values_list("pk", flat=True)[:AT_ONCE])
    return query.model._default_manager.filter(pk__in=ids).delete()[0] if ids else 0
