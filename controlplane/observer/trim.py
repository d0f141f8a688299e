"""Delete rows past their retention, in slices. The ledger's tables are dropped by day (controlplane.observer.days)."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet

from mgmt.audit.services import delete_expired
from mgmt.deliveries.queries.message_selection import HOUR_S
from mgmt.deliveries.queries.throughput import DELIVERIES_KEPT_H
from mgmt.event_types.models import HOURS_KEPT_D
from mgmt.idempotency.services import KEYS_FOR
from mgmt.models import (
    Alert,
    AttemptCount,
    CloseMark,
    DeadLetter,
    DeliveryAttempt,
    DestinationTest,
    FieldHour,
    FieldSample,
    Finding,
    Heartbeat,
    HeldMessage,
    IdempotentResponse,
    LaneSignal,
    LateCount,
    LimitCount,
    NumberState,
    OffsetSet,
    PatternHour,
    Redrive,
    Rejection,
    RejectionMinute,
    Replay,
    ReportRun,
    SequenceBreakRow,
    Shadow,
    Usage,
    VersionHour,
)
from mgmt.patterns.blocks import block_at
from mgmt.rejections.models import REJECTIONS_KEPT_D
from mgmt.replays.models import REPLAYS_KEPT_D
from mgmt.sequences.models import BREAKS_KEPT_D
from mgmt.shadows.models import SHADOWS_KEPT_D

AT_ONCE: Final = 5_000
TESTS_FOR: Final = timedelta(days=1)
SILENT_FOR: Final = timedelta(hours=1)
COUNTS_FOR: Final = timedelta(hours=DELIVERIES_KEPT_H)  # the pipe page says from when on it has them
RUNS_FOR: Final = timedelta(days=1)  # a writer reports once a minute at least
MARKS_FOR: Final = timedelta(days=2)
ALERTS_FOR: Final = timedelta(days=90)
HOURS_FOR: Final = timedelta(days=29)  # four weeks are compared
REJECTIONS_FOR: Final = timedelta(days=REJECTIONS_KEPT_D)
BREAKS_FOR: Final = timedelta(days=BREAKS_KEPT_D)
REPLAYS_FOR: Final = timedelta(days=REPLAYS_KEPT_D)
SHADOWS_FOR: Final = timedelta(days=SHADOWS_KEPT_D)
VERSIONS_FOR: Final = timedelta(days=HOURS_KEPT_D)
SAMPLES_FOR: Final = timedelta(hours=2)  # a block is judged within one hour, or never
AUDIT_KEEP_D: Final = 400
USAGE_FOR: Final = timedelta(days=400)  # a year, and the month with which it is compared


def trim(
    now: datetime, *, attempts_keep_h: int, seals_keep_d: int, ends_keep: timedelta, audit_keep_d: int = AUDIT_KEEP_D
) -> bool:
    """Delete one slice of each kind; return True if rows of some kind are left.

    attempts_keep_h: retention of attempts in hours; seals_keep_d: retention of counts of late events in days;
    ends_keep: retention of dead letters, held messages, their offsets and redrives; audit_keep_d: retention of entries
    of audit logs in days
    """
    seals_before = int((now - timedelta(days=seals_keep_d)).timestamp() // 60)
    queries: list[QuerySet[Any]] = [
        DeliveryAttempt.objects.filter(at__lt=now - timedelta(hours=attempts_keep_h)),
        AttemptCount.objects.filter(minute__lt=int((now - COUNTS_FOR).timestamp()) // 60),
        Heartbeat.objects.filter(at__lt=now - SILENT_FOR),
        LaneSignal.objects.filter(
            at__lt=now - SILENT_FOR, slow=False
        ),  # slow is reported on change only, and may last for days
        DeadLetter.objects.filter(at__lt=now - ends_keep),
        HeldMessage.objects.filter(at__lt=now - ends_keep),
        OffsetSet.objects.filter(hour__lt=int((now - ends_keep).timestamp()) // HOUR_S),
        Redrive.objects.filter(finished_at__lt=now - ends_keep),
        Replay.objects.filter(finished_at__lt=now - REPLAYS_FOR),
        Shadow.objects.filter(finished_at__lt=now - SHADOWS_FOR),
        Alert.objects.filter(resolved_at__lt=now - ALERTS_FOR),
        DestinationTest.objects.filter(created_at__lt=now - TESTS_FOR),
        Finding.objects.filter(ended_at__lt=now - ALERTS_FOR),
        PatternHour.objects.filter(hour__lt=int((now - HOURS_FOR).timestamp()) // HOUR_S),
        FieldHour.objects.filter(hour__lt=int((now - HOURS_FOR).timestamp()) // HOUR_S),
        NumberState.objects.filter(block__lt=block_at(now - HOURS_FOR)),
        FieldSample.objects.filter(block__lt=block_at(now - SAMPLES_FOR)),
        Usage.objects.filter(day__lt=(now - USAGE_FOR).date()),
        CloseMark.objects.filter(noted_at__lt=now - MARKS_FOR),
        LateCount.objects.filter(bucket__lt=seals_before),
        RejectionMinute.objects.filter(minute__lt=int((now - REJECTIONS_FOR).timestamp()) // 60),
        Rejection.objects.filter(last_at__lt=now - REJECTIONS_FOR),
        VersionHour.objects.filter(hour__lt=int((now - VERSIONS_FOR).timestamp()) // HOUR_S),
        SequenceBreakRow.objects.filter(at__lt=now - BREAKS_FOR),
        ReportRun.objects.filter(at__lt=now - RUNS_FOR),
        LimitCount.objects.filter(ends_at__lt=now),
        IdempotentResponse.objects.filter(created_at__lt=now - KEYS_FOR),
    ]
    expired = delete_expired(before=now - timedelta(days=audit_keep_d), most=AT_ONCE)
    return AT_ONCE in [expired, *[_delete_slice(query) for query in queries]]


def _delete_slice(query: QuerySet[Any]) -> int:
    ids = list(query.order_by().values_list("pk", flat=True)[:AT_ONCE])
    if ids:
        query.model._default_manager.filter(pk__in=ids).delete()
    return len(ids)  # not the count of `delete`, which includes the rows that go with them
