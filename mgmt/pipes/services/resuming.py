"""Resumption of a pipe. If its steps failed, one held message runs first, and the rest follows only if it passes."""

from datetime import datetime

from django.utils import timezone

from dataplane.causes import Cause
from mgmt.alerts.services.alerts import FailureGroup, note_failures, open_alerts
from mgmt.alerts.services.probes import probe_alert
from mgmt.deliveries.queries.message_selection import held_before_steps
from mgmt.errors import FixNotLiveError
from mgmt.models import Alert, Pipe, User
from mgmt.pipes.queries.resuming import is_fix_live
from mgmt.pipes.services.pipes import end_pause


def resume_pipe(*, pipe: Pipe, by: User | None = None, without_fix: bool = False, now: datetime | None = None) -> bool:
    """Resume a pipe; its held messages are released in order. Returns False if it was not paused.

    A pipe that Penstock paused because its steps fail stays paused until one held message has passed the steps
    (mgmt.alerts.services.probes). `without_fix`: the events or a look-up table were corrected, not the revision.
    Raises PipeClosedError, FixNotLiveError, NotOpenError (a test is in progress), NothingToProbeError (the held
    messages cannot be read).
    """
    if pipe.state != Pipe.State.PAUSED or pipe.state_cause != Cause.DEAD_RATE:
        return end_pause(pipe=pipe, by=by)
    if not (without_fix or is_fix_live(pipe)):
        raise FixNotLiveError(
            f"The revision of {pipe.name} that fails is still live. Publish a corrected revision, and resume the pipe "
            "once it is live."
        )
    if held_before_steps(pipe_id=pipe.id) is None:
        return end_pause(pipe=pipe, by=by)
    moment = now or timezone.now()
    probe_alert(alert=_alert_of(pipe, moment), by=by, now=moment)
    return True


def _alert_of(pipe: Pipe, now: datetime) -> Alert:
    """Return the open alert of the pause; open one if a person has resolved it."""
    alerts = open_alerts().filter(pipe=pipe, destination="", cause=Cause.DEAD_RATE)
    if not alerts.exists():
        failure = FailureGroup(pipe.id, "", Cause.DEAD_RATE, 0, now, {"reason": pipe.state_reason}, suspended=True)
        note_failures(failures=[failure], now=now)
    return alerts.select_related("pipe").get()
