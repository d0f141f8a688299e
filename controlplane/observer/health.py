"""Watch the health of destinations: open and resolve the alerts `failing` and `delayed`."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q
from msgspec import Struct

from dataplane.causes import Cause
from dataplane.names import transmit_node
from mgmt.alerts.failure_sample import sample_of
from mgmt.alerts.services.alerts import AlertReport, end_condition, report_condition
from mgmt.deliveries.health import Condition, Health, HealthFigures, HealthPolicy, next_health
from mgmt.deliveries.queries.health import (
    AttemptSums,
    Backlog,
    PipeAndName,
    attempts_since,
    backlog_of,
    destinations_behind,
    open_breakers,
)
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.models import DeadLetter, DeliveryAttempt, Destination, DestinationHealth, Pipe, Redrive

AT_ONCE: Final = 500  # destinations checked in one run, the longest unchecked first
SLICE_MIN: Final = 3  # minutes that are searched for messages that have just become overdue
LOOK_BACK: Final = timedelta(days=1)  # for a destination that was never checked
RECOVERED: Final = "deliveries succeed again"
CAUGHT_UP: Final = "no message waits for long any more"
STOPPED: Final = "the destination is paused, suspended or removed, and its messages are held"


class _Signals(Struct, frozen=True):
    """Signals of all destinations at the time of a check."""

    attempts: Mapping[PipeAndName, AttemptSums]
    breakers: set[PipeAndName]
    behind: set[PipeAndName]
    redriving: set[PipeAndName]


def watch_destinations(now: datetime, policy: HealthPolicy) -> int:
    """Check each destination with failures, an open breaker or waiting messages. Returns the number of failing ones.

    Safe to run twice: the state is stored with the time since which it holds, and an alert is opened once.
    """
    signals = _signals(now, policy)
    failing = {key for key, sums in signals.attempts.items() if sums.failed}
    rows = _rows(failing | signals.breakers | signals.behind)[:AT_ONCE]
    return sum(_check(row, signals, policy, now) for row in rows)


def _signals(now: datetime, policy: HealthPolicy) -> _Signals:
    overdue = bucket_at(now - policy.waits)
    under_way = Redrive.objects.filter(state__in=Redrive.UNDER_WAY)
    return _Signals(
        attempts=attempts_since(bucket_at(now) - policy.window_min + 1),
        breakers=open_breakers(now),
        behind=destinations_behind(overdue - SLICE_MIN, overdue),
        redriving=set(under_way.values_list("pipe_id", "destination")),
    )


def _rows(suspects: set[PipeAndName]) -> list[Destination]:
    """Return the suspects, and the destinations that were unhealthy at the last check."""
    unhealthy = Q(health__failing_since__isnull=False) | Q(health__delayed_since__isnull=False)
    unhealthy |= Q(health__oldest_at__isnull=False) | Q(health__failed__gt=0)
    rows = Destination.objects.filter(unhealthy | Q(pipe_id__in={pipe_id for pipe_id, _ in suspects}))
    found = [
        row
        for row in rows.select_related("health", "pipe")
        if hasattr(row, "health") or (row.pipe_id, row.name) in suspects
    ]
    return sorted(found, key=lambda row: row.health.checked_at.timestamp() if hasattr(row, "health") else 0)


def _check(row: Destination, signals: _Signals, policy: HealthPolicy, now: datetime) -> bool:
    key = (row.pipe_id, row.name)
    known = row.health if hasattr(row, "health") else DestinationHealth(destination=row)
    if row.state != Destination.State.ACTIVE or row.pipe.state == Pipe.State.PAUSED:
        _store(known, Health(), AttemptSums(), Backlog(), now)
        _resolve(row, Health(), STOPPED, STOPPED, now)
        return False
    sums = signals.attempts.get(key, AttemptSums())
    backlog = backlog_of(pipe_id=row.pipe_id, destination=row.name, since=_since(known, policy, now))
    figures = HealthFigures(
        delivered=sums.delivered,
        failed=sums.failed,
        breaker_open=key in signals.breakers,
        oldest=now - start_of(backlog.minutes[0][0]) if backlog.minutes else None,
        redriving=key in signals.redriving,
    )
    health = next_health(_health_of(known), figures, policy, now)
    _store(known, health, sums, backlog, now)
    _report(row, health, known, now)
    _resolve(row, health, RECOVERED, CAUGHT_UP, now)
    return health.failing.since is not None


def _since(known: DestinationHealth, policy: HealthPolicy, now: datetime) -> int:
    """Return the first bucket that may have messages waiting: all older ones were settled at the last check."""
    if known.oldest_at is not None:
        return bucket_at(known.oldest_at)
    earliest = now - LOOK_BACK
    checked = max(known.checked_at, earliest) if known.checked_at else earliest
    return max(bucket_at(checked - policy.waits) - SLICE_MIN, bucket_at(earliest))


def _health_of(known: DestinationHealth) -> Health:
    return Health(
        Condition(known.failing_since, known.failing_well_since),
        Condition(known.delayed_since, known.delayed_well_since),
    )


def _store(known: DestinationHealth, health: Health, sums: AttemptSums, backlog: Backlog, now: datetime) -> None:
    known.checked_at = now
    known.delivered, known.failed = sums
    known.waiting, known.waiting_minutes = backlog.waiting, [list(minute) for minute in backlog.minutes]
    known.oldest_at = start_of(backlog.minutes[0][0]) if backlog.minutes else None
    known.failing_since, known.failing_well_since = health.failing.since, health.failing.well_since
    known.delayed_since, known.delayed_well_since = health.delayed.since, health.delayed.well_since
    known.save()


def _report(row: Destination, health: Health, known: DestinationHealth, now: datetime) -> None:
    details = {
        "attempts": known.delivered + known.failed,
        "failed": known.failed,
        "waiting": known.waiting,
        "oldest_at": known.oldest_at.isoformat() if known.oldest_at else None,
    }
    for cause, condition in _conditions(health):
        if condition.since is not None and condition.well_since is None:  # while all is well, keep the last figures
            report = AlertReport(row.pipe_id, row.name, cause, known.waiting, details, _sample(row))
            report_condition(report=report, now=now)


def _resolve(row: Destination, health: Health, recovered: str, caught_up: str, now: datetime) -> None:
    for (cause, condition), words in zip(_conditions(health), (recovered, caught_up), strict=True):
        if condition.since is None:
            end_condition(pipe_id=row.pipe_id, destination=row.name, cause=cause, resolution=words, now=now)


def _conditions(health: Health) -> Iterable[tuple[Cause, Condition]]:
    return ((Cause.FAILING, health.failing), (Cause.DELAYED, health.delayed))


def _sample(row: Destination) -> dict[str, Any]:
    """Return the newest failed attempt as the sample of an alert; {} if none is stored."""
    rows = DeliveryAttempt.objects.filter(pipe_id=row.pipe_id, destination=row.name, outcome__in=("retry", "parked"))
    last = rows.order_by("-at").first()
    if last is None:
        return {}
    letter = DeadLetter(
        destination=row.name,
        message_id=last.message_id,
        position=last.position,
        node=transmit_node(row.name),
        detail=last.reason,
        answer=f"{last.status}\n{last.answer}" if last.status else "",
    )
    return sample_of(letter, row)
