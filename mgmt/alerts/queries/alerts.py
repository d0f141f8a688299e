"""Queries of alerts for pages and API."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from dataplane.causes import Cause
from mgmt.models import Alert

OPEN: list[str] = [Alert.State.OPENED, Alert.State.ACKNOWLEDGED, Alert.State.SNOOZED]
MOST_LISTED: Final = 200


def alerts_of(*, pipe_ids: Iterable[str], state: str = "", only_open: bool = False) -> QuerySet[Alert]:
    """Return the alerts of these pipes, newest first. `only_open`: opened, acknowledged and snoozed alerts."""
    rows = Alert.objects.filter(pipe_id__in=list(pipe_ids)).select_related("pipe", "acknowledged_by", "resolved_by")
    if only_open:
        rows = rows.filter(state__in=OPEN)
    if state:
        rows = rows.filter(state=state)
    return rows.order_by("-id")


def open_alerts_by_need(*, pipe_ids: Iterable[str]) -> QuerySet[Alert]:
    """Return open alerts: unacknowledged ones first, then acknowledged and snoozed ones; each by number of messages."""
    need = Case(
        When(state=Alert.State.OPENED, then=Value(0)),
        When(state=Alert.State.ACKNOWLEDGED, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    return alerts_of(pipe_ids=pipe_ids, only_open=True).annotate(need=need).order_by("need", "-count", "id")


def open_alert_count(tenant_id: str) -> int:
    """Count a tenant's open alerts; acknowledged and snoozed alerts do not count."""
    return Alert.objects.filter(pipe__tenant_id=tenant_id, state=Alert.State.OPENED).count()


def alerts_within(*, pipe_id: str, since: datetime, until: datetime) -> list[Alert]:
    """Return a pipe's alerts that are open now, or that were opened or resolved in a period; the newest MOST_LISTED."""
    period = (since, until)
    rows = Alert.objects.filter(
        Q(state__in=OPEN) | Q(opened_at__range=period) | Q(resolved_at__range=period), pipe_id=pipe_id
    )
    return list(rows.order_by("-id")[:MOST_LISTED])


def open_loss_alerts(pipe_ids: Iterable[str]) -> dict[str, Alert]:
    """Return the open alert about lost messages of each pipe that has one."""
    rows = Alert.objects.filter(pipe__id__any_of=pipe_ids, cause=Cause.LOST, state__in=OPEN)
    return {row.pipe_id: row for row in rows}
