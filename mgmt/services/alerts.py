"""Alerts: opened by failures, acknowledged, snoozed and resolved by people, resolved too when deliveries go well again.

One open row for each destination and cause, held by a constraint; repeats raise its count and say nothing again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest
from msgspec import Struct

from mgmt.models import Alert, AlertChannel, Attempt, Destination, Move, Notice, Pipe, User
from mgmt.services.errors import InvalidValue, NotOpen

log = structlog.get_logger(__name__)
State = Alert.State

# The first mail says more when it waits for the first burst; it is still there long before a minute is over.
TELL_AFTER: Final = timedelta(seconds=10)
# The same cause opened again soon after it was over: the row says so, no second mail does.
QUIET_FOR: Final = timedelta(minutes=30)
WELL_AFTER: Final = timedelta(minutes=5)
MOST_SNOOZE: Final = timedelta(days=30)
QUOTA_EXCEEDED: Final = "quota-exceeded"  # the cause of alerts about events that ingest refused
WITHIN_QUOTA_AFTER: Final = timedelta(hours=1)


class Failure(Struct, frozen=True):
    """Failures of one destination and cause: how many, the newest, one to show. `suspended`: it was for this cause."""

    pipe_id: str
    destination: str
    cause: str
    count: int
    at: datetime
    sample: Mapping[str, Any]
    suspended: bool = False


@transaction.atomic
def note_failures(*, failures: Iterable[Failure], now: datetime) -> None:
    """Open an alert for each, or raise the count of the one that is open."""
    wanted = [failure for failure in failures if failure.count or failure.suspended]
    pipes = {pipe.id: pipe for pipe in Pipe.objects.filter(id__in={failure.pipe_id for failure in wanted})}
    for failure in wanted:
        if failure.pipe_id in pipes:
            _note(pipes[failure.pipe_id], failure, now)


def acknowledge_alert(*, alert: Alert, by: User, now: datetime) -> bool:
    """Somebody has it in hand. False if somebody had already. Raises NotOpen."""
    return _move(
        alert,
        [State.OPENED, State.SNOOZED],
        State.ACKNOWLEDGED,
        acknowledged_by=by,
        acknowledged_at=now,
        snoozed_until=None,
    )


def snooze_alert(*, alert: Alert, until: datetime, now: datetime) -> bool:
    """Put it aside until then. Raises InvalidValue, NotOpen."""
    if not now < until <= now + MOST_SNOOZE:
        raise InvalidValue("until", f"needs a time in the next {MOST_SNOOZE.days} days")
    open_states = [State.OPENED, State.ACKNOWLEDGED, State.SNOOZED]
    return _move(alert, open_states, State.SNOOZED, snoozed_until=until)


def resolve_alert(*, alert: Alert, now: datetime, by: User | None = None, resolution: str = "") -> bool:
    """It is over, and whoever was told of it is told so. False if it was over already."""
    words = resolution or (f"resolved by {by.username}" if by else "resolved")
    with transaction.atomic():
        moved = (
            open_alerts()
            .filter(id=alert.id)
            .update(state=State.RESOLVED, resolved_at=now, resolved_by=by, resolution=words[:200], snoozed_until=None)
        )
        if moved:
            _tell_the_end(alert, now)
    alert.refresh_from_db()
    if moved:
        log.info("alert resolved", alert=alert.id, destination=alert.destination, cause=alert.cause, why=words)
    return moved == 1


def wake_snoozed(*, now: datetime) -> int:
    """Open again what was put aside until now, and tell it again: that is what was asked for."""
    woken = list(Alert.objects.filter(state=State.SNOOZED, snoozed_until__lte=now))
    for alert in woken:
        with transaction.atomic():
            if Alert.objects.filter(id=alert.id, state=State.SNOOZED).update(state=State.OPENED, snoozed_until=None):
                Notice.objects.filter(alert=alert, what="opened").delete()
                _tell(alert, "opened", now)
    return len(woken)


def resolve_what_is_well(*, now: datetime) -> int:
    """Resolve alerts whose destination is sent to, took something after the last failure, and failed no more since.

    What a person started from an alert must be over as well. An alert about no single destination ends by hand, or a
    day after its last failure.
    """
    resolved = 0
    for alert in open_alerts().exclude(probe=Alert.Probe.RUNNING).filter(last_at__lt=now - WELL_AFTER):
        if why := _why_well(alert, now):
            resolved += resolve_alert(alert=alert, now=now, resolution=why)
    return resolved


def resolve_what_was_released(*, now: datetime) -> int:
    """Resolve alerts whose probe was accepted and whose moves are over: the shortest way."""
    resolved = 0
    for alert in open_alerts().filter(probe=Alert.Probe.ACCEPTED):
        if alert.moves.filter(state__in=Move.UNDER_WAY).exists() or alert.last_at > (alert.probe_at or now):
            continue
        moved = sum(alert.moves.values_list("moved", flat=True))
        words = f"the probe was accepted, {moved} message{'s' if moved != 1 else ''} brought back"
        resolved += resolve_alert(alert=alert, now=now, resolution=words)
    return resolved


def open_alerts() -> QuerySet[Alert]:
    """Those that are not over."""
    return Alert.objects.exclude(state=State.RESOLVED)


def _note(pipe: Pipe, failure: Failure, now: datetime) -> None:
    """The conditional update raises what is there; the constraint lets one of two openers through, and the other raises
    that one's alert. One that ends between the two is over: then the failure opens its own.
    """
    same = {"pipe": pipe, "destination": failure.destination, "cause": failure.cause}
    last = Alert.objects.filter(**same, resolved_at__gte=now - QUIET_FOR)
    while not _raise(open_alerts().filter(**same), failure):
        fresh = Alert(
            **same,
            opened_at=failure.at,
            last_at=failure.at,
            count=failure.count,
            suspended=failure.suspended,
            sample=dict(failure.sample),
        )
        Alert.objects.bulk_create([fresh], ignore_conflicts=True)
        if Alert.objects.filter(id=fresh.id).exists():
            log.info("alert opened", alert=fresh.id, pipe=pipe.id, destination=failure.destination, cause=failure.cause)
            if not last.exists():
                _tell(fresh, "opened", now + TELL_AFTER)
            return


def _raise(rows: QuerySet[Alert], failure: Failure) -> int:
    changed: dict[str, Any] = {"count": F("count") + failure.count, "last_at": Greatest("last_at", failure.at)}
    if failure.suspended:
        changed["suspended"] = True
    return rows.update(**changed)


def _move(alert: Alert, was: list[State], becomes: State, **more: Any) -> bool:
    moved = Alert.objects.filter(id=alert.id, state__in=was).update(state=becomes, **more)
    alert.refresh_from_db()
    if not moved and alert.state == State.RESOLVED:
        raise NotOpen("This alert is over. A new failure opens a new one.")
    return moved == 1


def _tell(alert: Alert, what: str, at: datetime) -> None:
    channels = AlertChannel.objects.filter(AlertChannel.ACTIVE, tenant=alert.pipe.tenant_id)
    Notice.objects.bulk_create(
        [Notice(alert=alert, channel=channel, what=what, next_at=at) for channel in channels], ignore_conflicts=True
    )


def _tell_the_end(alert: Alert, now: datetime) -> None:
    """Only who was told of the beginning; what has not been told yet need not be any more."""
    begun = Notice.objects.filter(alert=alert, what="opened")
    begun.filter(state=Notice.State.DUE, tries=0).delete()
    Notice.objects.bulk_create(
        [
            Notice(alert=alert, channel=row.channel, what="resolved", next_at=now)
            for row in begun.select_related("channel")
        ],
        ignore_conflicts=True,
    )


def _why_well(alert: Alert, now: datetime) -> str:
    if not alert.destination:
        return _why_pipe_is_well(alert, now)
    row = Destination.objects.filter(pipe=alert.pipe_id, name=alert.destination).first()
    if row is None or row.state == Destination.State.REMOVED:
        return "the destination was removed"
    if row.state != Destination.State.ACTIVE or alert.moves.filter(state__in=Move.UNDER_WAY).exists():
        return ""
    good = Attempt.objects.filter(
        pipe_id=alert.pipe_id, destination=alert.destination, outcome="delivered", at__gt=alert.last_at
    )
    return "deliveries go well again" if good.exists() else ""


def _why_pipe_is_well(alert: Alert, now: datetime) -> str:
    """Of an alert about no single destination."""
    if alert.suspended:
        return "the pipe was resumed" if alert.pipe.state != Pipe.State.PAUSED else ""
    if alert.cause == QUOTA_EXCEEDED:
        return "nothing was refused for an hour" if alert.last_at < now - WITHIN_QUOTA_AFTER else ""
    return "nothing failed for a day" if alert.last_at < now - timedelta(days=1) else ""
