"""Says aloud when messages have been held for half the time that their topic keeps them; after all of it they go."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Sum

from mgmt.models import Alert, OffsetSet
from mgmt.queries.places import HOUR_S
from mgmt.services.alerts import Failure, note_failures, open_alerts

CAUSE: Final = "held-too-long"


def warn_of_long_held(now: datetime, kept_for: timedelta) -> int:
    """Open an alert for each destination whose oldest messages have waited so long; how many were opened."""
    old = OffsetSet.objects.filter(kind=OffsetSet.Kind.HELD, hour__lt=int((now - kept_for / 2).timestamp()) // HOUR_S)
    counts = old.values_list("pipe_id", "destination").annotate(n=Sum("count")).order_by()
    told = set(open_alerts().filter(cause=CAUSE).values_list("pipe_id", "destination"))
    sample = {"reason": f"held for {kept_for.days // 2} of the {kept_for.days} days that held messages are kept"}
    before = Alert.objects.filter(cause=CAUSE).count()
    late = [
        Failure(pipe_id, destination, CAUSE, count, now, sample)
        for pipe_id, destination, count in counts
        if (pipe_id, destination) not in told
    ]
    note_failures(failures=late, now=now)
    return Alert.objects.filter(cause=CAUSE).count() - before
