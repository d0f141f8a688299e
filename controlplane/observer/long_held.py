"""Open an alert when messages were held for half the retention of their topic, which deletes them at its end."""

from datetime import datetime, timedelta

from django.db.models import Sum

from dataplane.causes import Cause
from mgmt.alerts.services.alerts import FailureGroup, note_failures, open_alerts
from mgmt.deliveries.queries.message_selection import HOUR_S
from mgmt.models import Alert, OffsetSet


def warn_of_long_held(now: datetime, kept_for: timedelta) -> int:
    """Open an alert for each destination whose oldest messages were held for half of `kept_for`; return how many."""
    old = OffsetSet.objects.filter(kind=OffsetSet.Kind.HELD, hour__lt=int((now - kept_for / 2).timestamp()) // HOUR_S)
    counts = old.values_list("pipe_id", "destination").annotate(n=Sum("count")).order_by()
    alerted = set(open_alerts().filter(cause=Cause.HELD_TOO_LONG).values_list("pipe_id", "destination"))
    sample = {"reason": f"held for {kept_for.days // 2} of the {kept_for.days} days that held messages are kept"}
    before = Alert.objects.filter(cause=Cause.HELD_TOO_LONG).count()
    late = [
        FailureGroup(pipe_id, destination, Cause.HELD_TOO_LONG, count, now, sample)
        for pipe_id, destination, count in counts
        if (pipe_id, destination) not in alerted
    ]
    note_failures(failures=late, now=now)
    return Alert.objects.filter(cause=Cause.HELD_TOO_LONG).count() - before
