"""Watch for events that keep being rejected: open, update and resolve the alert `rejecting` of their pipe."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Sum

from dataplane.causes import Cause
from mgmt.alerts.rejecting import MOST_LISTED, RecentRejections, RejectingPolicy, persisting
from mgmt.alerts.services.alerts import AlertReport, end_condition, open_alerts, report_condition
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Alert, Pipe, Rejection, RejectionMinute
from mgmt.rejections.advice import reason_of
from mgmt.rejections.queries import sender_names, sender_words

OVER: Final = "no event was rejected for {minutes} minutes"
CLOSED: Final = "the pipe is closed"


def watch_rejections(now: datetime, policy: RejectingPolicy) -> int:
    """Check the recently rejected events of all pipes. Returns the number of pipes with an alert.

    Safe to run twice: an alert is opened once, and its figures are those of the window.
    """
    open_ = {alert.pipe_id: alert for alert in open_alerts().filter(cause=Cause.REJECTING).select_related("pipe")}
    recent = _recent(now, policy)
    alerted = 0
    for pipe_id in sorted({*recent, *open_}):
        alert = open_.get(pipe_id)
        kinds = persisting(recent.get(pipe_id, ()), _kinds_of(alert), policy)
        if kinds:
            _report(pipe_id, kinds, policy, now)
            alerted += 1
        elif alert is not None:
            is_closed = alert.pipe.state == Pipe.State.CLOSED
            words = CLOSED if is_closed else OVER.format(minutes=policy.window_min)
            end_condition(pipe_id=pipe_id, destination="", cause=Cause.REJECTING, resolution=words, now=now)
    return alerted


def _recent(now: datetime, policy: RejectingPolicy) -> Mapping[str, list[RecentRejections]]:
    """Return the events that were rejected in the window, by pipe."""
    rows = RejectionMinute.objects.filter(minute__gt=bucket_at(now) - policy.window_min)
    rows = rows.exclude(rejection__pipe__state=Pipe.State.CLOSED).order_by()
    found: dict[str, list[RecentRejections]] = {}
    figures = rows.values_list("rejection__pipe", "rejection").annotate(n=Sum("events"), minutes=Count("minute"))
    for pipe_id, rejection, events, minutes in figures:
        found.setdefault(pipe_id, []).append(RecentRejections(rejection, events, minutes))
    return found


def _kinds_of(alert: Alert | None) -> frozenset[int]:
    return frozenset(alert.details.get("kinds", ()) if alert is not None else ())


def _report(pipe_id: str, kinds: Sequence[RecentRejections], policy: RejectingPolicy, now: datetime) -> None:
    listed = kinds[:MOST_LISTED]
    details = {
        "window_min": policy.window_min,
        "rejections": _described(pipe_id, listed),
        "more": len(kinds) - len(listed),
        "kinds": [one.rejection for one in kinds],
    }
    count = sum(one.events for one in kinds)
    report_condition(report=AlertReport(pipe_id, "", Cause.REJECTING, count, details, {}), now=now)


def _described(pipe_id: str, kinds: Iterable[RecentRejections]) -> list[dict[str, Any]]:
    figures = {one.rejection: one.events for one in kinds}
    rows = Rejection.objects.filter(pk__in=figures).in_bulk()
    names = sender_names(Pipe(id=pipe_id))
    return [
        {
            "id": row.pk,
            "source": row.source,
            "event_type": row.event_type,
            "code": row.code,
            "reason": reason_of(row.code).words,
            "detail": row.detail,
            "pointer": row.pointer,
            "sender": sender_words(row.sender, names),
            "events": events,
        }
        for number, events in figures.items()
        if (row := rows.get(number)) is not None
    ]
