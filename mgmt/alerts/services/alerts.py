"""Services of alerts: failures open them, people acknowledge, snooze and resolve them.

Successful deliveries resolve them automatically.

A constraint permits one open row per destination, cause, status and response; repeated failures raise its count and
send nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Greatest
from msgspec import Struct

from dataplane.causes import Cause
from mgmt.alerts.common_fields import Fields, with_messages
from mgmt.audit.services import record
from mgmt.errors import InvalidValue, NotOpenError
from mgmt.models import (
    Admission,
    Alert,
    AlertChannel,
    DeliveryAttempt,
    Destination,
    Notification,
    OffsetSet,
    Pipe,
    Redrive,
    User,
)
from mgmt.operational_events.services import emit_event
from mgmt.operational_events.types import ALERT_OPENED, ALERT_RESOLVED

log = structlog.get_logger(__name__)
AlertState = Alert.State

# The first e-mail waits for the first burst of failures, so that it counts them; it is sent well within a minute.
NOTIFY_AFTER: Final = timedelta(seconds=10)
# An alert that is opened again this soon after its end sends no second e-mail before this time is over.
QUIET_FOR: Final = timedelta(minutes=30)
WELL_AFTER: Final = timedelta(minutes=5)
SENDING: Final = timedelta(seconds=15)  # longest duration of a request that has begun
MOST_SNOOZE: Final = timedelta(days=30)
WITHIN_QUOTA_AFTER: Final = timedelta(hours=1)
# Alerts that the check which opened them resolves.
CONDITIONS: Final = (
    Cause.FAILING,
    Cause.DELAYED,
    Cause.LOST,
    Cause.HOT_PARTITION,
    Cause.NUMERIC_DRIFT,
    Cause.REJECTING,
    Cause.SEQUENCE_GAP,
)


class FailureGroup(Struct, frozen=True):
    """Failures of one destination with one cause, status and response.

    count: how many   at: time of the newest   sample: one of them, for people
    suspended: True if the destination was suspended for this cause
    status, fingerprint: of the response; 0 and "" if there is none
    examined: fields of some of the messages
    """

    pipe_id: str
    destination: str
    cause: str
    count: int
    at: datetime
    sample: Mapping[str, Any]
    suspended: bool = False
    status: int = 0
    fingerprint: str = ""
    examined: tuple[Fields, ...] = ()


class AlertReport(Struct, frozen=True):
    """Condition of a pipe or destination that lasts until a check finds it over.

    count:   messages that it affects now      details: figures of its cause
    sample:  one failure, for people; {} if there is none
    """

    pipe_id: str
    destination: str
    cause: Cause
    count: int
    details: Mapping[str, Any]
    sample: Mapping[str, Any]


@transaction.atomic
def report_condition(*, report: AlertReport, now: datetime) -> None:
    """Open an alert for a lasting condition, or update the figures of the open one; `count` keeps its highest value."""
    same = {"pipe_id": report.pipe_id, "destination": report.destination, "cause": report.cause}
    changed: dict[str, Any] = {"count": Greatest("count", report.count), "last_at": now, "details": report.details}
    if report.sample:
        changed["sample"] = report.sample
    if not open_alerts().filter(**same).update(**changed):
        _open(Alert(**same, opened_at=now, **(changed | {"count": report.count})), now)


def end_condition(*, pipe_id: str, destination: str, cause: Cause, resolution: str, now: datetime) -> int:
    """Resolve the open alert of a condition that is over. Returns the number of alerts resolved."""
    rows = open_alerts().filter(pipe_id=pipe_id, destination=destination, cause=cause)
    return sum(resolve_alert(alert=row, now=now, resolution=resolution) for row in rows)


@transaction.atomic
def note_failures(*, failures: Iterable[FailureGroup], now: datetime) -> None:
    """Open an alert for each group of failures, or add the group to the open alert. Unknown pipes are skipped."""
    wanted = [failure for failure in failures if failure.count or failure.suspended]
    pipes = {pipe.id: pipe for pipe in Pipe.objects.filter(id__in={failure.pipe_id for failure in wanted})}
    for failure in wanted:
        if failure.pipe_id in pipes:
            _note(pipes[failure.pipe_id], failure, now)


@transaction.atomic
def name_common_fields(*, alert: Alert, named: Sequence[Mapping[str, Any]]) -> int:
    """Store the fields that set an open alert's messages apart. Returns their number."""
    row = open_alerts().select_for_update().get(id=alert.id)
    if row.details.get("common", []) != list(named):
        row.details = {**row.details, "common": list(named)}
        row.save(update_fields=["details"])
    return len(named)


def acknowledge_alert(*, alert: Alert, by: User, now: datetime) -> bool:
    """Acknowledge an alert. Returns False if it was acknowledged already. Raises NotOpenError if it is resolved.

    An alert about a loss is resolved by that: there is nothing to wait for.
    """
    if alert.cause == Cause.LOST and alert.state != AlertState.RESOLVED:
        return resolve_alert(alert=alert, now=now, by=by, resolution=f"acknowledged by {by.username}")
    return _move(
        alert,
        by,
        [AlertState.OPENED, AlertState.SNOOZED],
        AlertState.ACKNOWLEDGED,
        acknowledged_by=by,
        acknowledged_at=now,
        snoozed_until=None,
    )


def snooze_alert(*, alert: Alert, until: datetime, now: datetime, by: User | None = None) -> bool:
    """Snooze an alert for 30 days at most. Raises InvalidValue for `until`, NotOpenError if it is resolved."""
    if not now < until <= now + MOST_SNOOZE:
        raise InvalidValue("until", f"needs a time in the next {MOST_SNOOZE.days} days")
    open_states = [AlertState.OPENED, AlertState.ACKNOWLEDGED, AlertState.SNOOZED]
    return _move(alert, by, open_states, AlertState.SNOOZED, snoozed_until=until)


def resolve_alert(*, alert: Alert, now: datetime, by: User | None = None, resolution: str = "") -> bool:
    """Resolve an alert and notify the channels that were notified of it. Returns False if it was resolved already."""
    before, words = alert.state, resolution or (f"resolved by {by.username}" if by else "resolved")
    with transaction.atomic():
        moved = (
            open_alerts()
            .filter(id=alert.id)
            .update(
                state=AlertState.RESOLVED, resolved_at=now, resolved_by=by, resolution=words[:200], snoozed_until=None
            )
        )
        alert.refresh_from_db()
        if moved:
            _notify_end(alert, now)
            emit_event(type_=ALERT_RESOLVED, pipe=alert.pipe, data=_event_data(alert))
            if by is not None:
                _record(alert, by, before, AlertState.RESOLVED)
    if moved:
        log.info("alert resolved", alert=alert.id, destination=alert.destination, cause=alert.cause, why=words)
    return moved == 1


def wake_snoozed(*, now: datetime) -> int:
    """Open alerts whose snooze has ended and notify their channels again. Returns their number."""
    woken = list(Alert.objects.filter(state=AlertState.SNOOZED, snoozed_until__lte=now))
    for alert in woken:
        with transaction.atomic():
            if Alert.objects.filter(id=alert.id, state=AlertState.SNOOZED).update(
                state=AlertState.OPENED, snoozed_until=None
            ):
                begun = Notification.objects.filter(alert=alert, what="opened")
                begun.update(state=Notification.State.DUE, next_at=now, tries=0)
                _notify(alert, "opened", now)
    return len(woken)


def resolve_recovered(*, now: datetime) -> int:
    """Resolve alerts whose destination is active and accepted a message after the last failure. Returns their number.

    The last failure must be five minutes old, and each release or redrive of the alert must have ended. An alert about
    a whole pipe is resolved when the pipe, or its admission, is resumed, an hour after the last refusal for a quota,
    when its dead letters have run again, or a day after its last failure.
    """
    resolved = 0
    found = open_alerts().exclude(probe=Alert.Probe.RUNNING).exclude(cause__in=CONDITIONS)
    for alert in found.filter(last_at__lt=now - WELL_AFTER):
        if why := _why_recovered(alert, now):
            resolved += resolve_alert(alert=alert, now=now, resolution=why)
    return resolved


def resolve_released(*, now: datetime) -> int:
    """Resolve alerts whose probe was accepted and whose redrives have ended, without the wait of five minutes."""
    resolved = 0
    for alert in open_alerts().filter(probe=Alert.Probe.ACCEPTED):
        if alert.moves.filter(state__in=Redrive.UNDER_WAY).exists() or alert.last_at > (alert.probe_at or now):
            continue
        moved = sum(alert.moves.values_list("moved", flat=True))
        words = f"the probe was accepted; {moved} message{'s' if moved != 1 else ''} released or redriven"
        resolved += resolve_alert(alert=alert, now=now, resolution=words)
    return resolved


def open_alerts() -> QuerySet[Alert]:
    """Return all alerts that are not resolved."""
    return Alert.objects.exclude(state=AlertState.RESOLVED)


def _note(pipe: Pipe, failure: FailureGroup, now: datetime) -> None:
    """Add failures to the open alert, or open one.

    Safe against concurrent calls: the constraint admits one of two inserts, and the other caller's next update then
    adds to that alert. If the alert is resolved between the two, the next round opens a new one.
    """
    while not _raise(_alert_of(pipe, failure), failure):
        fresh = Alert(
            **_new_key(pipe, failure),
            opened_at=failure.at,
            last_at=failure.at,
            count=failure.count,
            suspended=failure.suspended,
            sample=dict(failure.sample),
            details=with_messages({}, failure.examined) if failure.examined else {},
        )
        if _open(fresh, now):
            return


def _alert_of(pipe: Pipe, failure: FailureGroup) -> QuerySet[Alert]:
    """Return the open alert of this kind of failure, or that of the rest if it is full."""
    same = open_alerts().filter(pipe=pipe, destination=failure.destination, cause=failure.cause)
    exact = same.filter(status=failure.status, fingerprint=failure.fingerprint)
    if exact.exists():
        return exact
    newest = same.filter(status=failure.status).order_by("-last_at").first()
    if failure.suspended and not failure.count and newest:  # a suspension alone has no response to compare
        return same.filter(id=newest.id)
    return same.filter(fingerprint=Alert.OTHER) if _is_full(pipe, failure) else exact


def _new_key(pipe: Pipe, failure: FailureGroup) -> dict[str, Any]:
    same = {"pipe": pipe, "destination": failure.destination, "cause": failure.cause}
    if _is_full(pipe, failure):
        return {**same, "status": 0, "fingerprint": Alert.OTHER}
    return {**same, "status": failure.status, "fingerprint": failure.fingerprint}


def _is_full(pipe: Pipe, failure: FailureGroup) -> bool:
    """Return True if the destination has so many open alerts that this kind of failure gets none of its own."""
    rows = open_alerts().filter(pipe=pipe, destination=failure.destination).exclude(fingerprint=Alert.OTHER)
    return bool(failure.fingerprint or failure.status) and rows.count() >= Alert.MOST_KINDS


def _open(fresh: Alert, now: datetime) -> bool:
    """Insert the alert and notify the channels; return False if another open one is about the same.

    One that reopens soon after its end is sent only if it is still open when the quiet time is over: so a destination
    that alternates sends no mail after mail, and a lasting failure is not silent.
    """
    names = ("pipe_id", "destination", "cause", "status", "fingerprint")
    same = Alert.objects.filter(**{name: getattr(fresh, name) for name in names})
    ended_at = same.filter(resolved_at__gte=now - QUIET_FOR).aggregate(Max("resolved_at"))["resolved_at__max"]
    Alert.objects.bulk_create([fresh], ignore_conflicts=True)
    if not Alert.objects.filter(id=fresh.id).exists():
        return False
    log.info("alert opened", alert=fresh.id, pipe=fresh.pipe_id, destination=fresh.destination, cause=fresh.cause)
    emit_event(type_=ALERT_OPENED, pipe=fresh.pipe, data=_event_data(fresh))
    _notify(fresh, "opened", max(now + NOTIFY_AFTER, ended_at + QUIET_FOR) if ended_at else now + NOTIFY_AFTER)
    return True


def _event_data(alert: Alert) -> dict[str, Any]:
    """Return an alert's fields for operational events, without its sample and figures: they contain values of messages.

    The URL is not made by `reverse`, because the Observer opens alerts also while a page cannot be imported.
    """
    return {
        "alert": alert.id,
        "destination": alert.destination,
        "cause": str(alert.cause),
        "status": alert.status,
        "suspended": alert.suspended,
        "count": alert.count,
        "opened_at": alert.opened_at.isoformat(),
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
        "resolution": alert.resolution,
        "url": f"{settings.PENSTOCK_WEB_URL}/pipes/{alert.pipe_id}/alerts/{alert.id}/",
    }


def _raise(rows: QuerySet[Alert], failure: FailureGroup) -> int:
    changed: dict[str, Any] = {"count": F("count") + failure.count, "last_at": Greatest("last_at", failure.at)}
    if failure.suspended:
        changed["suspended"] = True
    if failure.examined and (row := rows.select_for_update().first()):
        changed["details"] = with_messages(row.details, failure.examined)
    return rows.update(**changed)


@transaction.atomic
def _move(alert: Alert, by: User | None, was: list[AlertState], becomes: AlertState, **more: Any) -> bool:
    before = alert.state
    moved = Alert.objects.filter(id=alert.id, state__in=was).update(state=becomes, **more)
    alert.refresh_from_db()
    if not moved and alert.state == AlertState.RESOLVED:
        raise NotOpenError("This alert is resolved. A new failure opens a new one.")
    if moved:
        _record(alert, by, before, becomes)
    return moved == 1


def _record(alert: Alert, by: User | None, before: str, becomes: AlertState) -> None:
    until = {"until": alert.snoozed_until} if becomes == AlertState.SNOOZED else {}
    states: dict[str, Any] = {"before": {"state": before}, "after": {"state": becomes, **until}}
    record(pipe=alert.pipe, by=by, action=f"alert.{becomes}", target=alert, **states)


def _notify(alert: Alert, what: str, at: datetime) -> None:
    channels = AlertChannel.objects.filter(AlertChannel.ACTIVE, tenant=alert.pipe.tenant_id)
    Notification.objects.bulk_create(
        [Notification(alert=alert, channel=channel, what=what, next_at=at) for channel in channels],
        ignore_conflicts=True,
    )


def _notify_end(alert: Alert, now: datetime) -> None:
    """Notify the channels that may know of the opening, and stop its notifications: none may arrive after the end.

    A pager would open an incident that nothing ends. A request that has begun may still arrive: the end waits for it.
    """
    begun = Notification.objects.filter(alert=alert, what="opened")
    due = begun.filter(state=Notification.State.DUE)
    due.filter(tries=0, sent_at=None).delete()
    tried = set(due.filter(tries__gt=0).values_list("channel_id", flat=True))
    due.exclude(sent_at=None).update(state=Notification.State.SENT)  # the repetition after a snooze
    due.update(state=Notification.State.FAILED, error="resolved before it was sent")
    rows = [
        Notification(
            alert=alert, channel_id=channel, what="resolved", next_at=now + SENDING if channel in tried else now
        )
        for channel in begun.values_list("channel_id", flat=True)
    ]
    Notification.objects.bulk_create(rows, ignore_conflicts=True)


def _why_recovered(alert: Alert, now: datetime) -> str:
    if not alert.destination:
        return _why_pipe_recovered(alert, now)
    row = Destination.objects.filter(pipe=alert.pipe_id, name=alert.destination).first()
    if row is None or row.state == Destination.State.REMOVED:
        return "the destination was removed"
    if row.state != Destination.State.ACTIVE or alert.moves.filter(state__in=Redrive.UNDER_WAY).exists():
        return ""
    good = DeliveryAttempt.objects.filter(
        pipe_id=alert.pipe_id, destination=alert.destination, outcome="delivered", at__gt=alert.last_at
    )
    return "deliveries succeed again" if good.exists() else ""


def _why_pipe_recovered(alert: Alert, now: datetime) -> str:
    """Return why an alert about a whole pipe can be resolved; "" if it cannot."""
    if alert.cause == Cause.ADMISSION:
        is_held = Admission.objects.filter(pipe=alert.pipe_id, ended_at=None).exclude(held_at=None).exists()
        return "" if is_held else "the admission was resumed"
    if alert.suspended:
        return "the pipe was resumed" if alert.pipe.state != Pipe.State.PAUSED else ""
    if alert.cause == Cause.QUOTA_EXCEEDED:
        return "nothing was refused for an hour" if alert.last_at < now - WITHIN_QUOTA_AFTER else ""
    if _have_run_again(alert):
        return "its dead letters ran again, and nothing failed since"
    return "nothing failed for a day" if alert.last_at < now - timedelta(days=1) else ""


def _have_run_again(alert: Alert) -> bool:
    """Return True if the dead letters of the alert's cause have run through the steps again since its last failure."""
    of_pipe = {"pipe_id": alert.pipe_id, "destination": ""}
    runs = Redrive.objects.filter(**of_pipe, what=Redrive.What.REDRIVE, created_at__gt=alert.last_at)
    if runs.filter(state__in=Redrive.UNDER_WAY).exists() or not runs.filter(state=Redrive.State.DONE).exists():
        return False
    left = OffsetSet.objects.filter(**of_pipe, kind=OffsetSet.Kind.DEAD, cause=alert.cause, count__gt=0)
    return not left.exists()
