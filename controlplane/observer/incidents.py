"""Open and resolve incidents. A cause that affects several tenants at once is more likely ours than theirs."""

from collections import defaultdict
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail

from dataplane.causes import Cause
from dataplane.names import LANE_KINDS
from mgmt.alerts.services.alerts import open_alerts
from mgmt.cells.problems import NEXT_STEPS, ProblemKind
from mgmt.cells.queries.overdue_tasks import overdue_tasks
from mgmt.models import Heartbeat, Incident, Pipe, Tenant

TENANTS: Final = 3
WITHIN: Final = timedelta(hours=1)
FRESH: Final = timedelta(seconds=10)  # age of a heartbeat that still counts
# Between each tenant and its senders, and often open for long.
OF_SENDERS: Final = (Cause.REJECTING, Cause.SEQUENCE_GAP)
BLOCKED: Final = "lane-blocked"
SILENT: Final = "control-plane-silent"
IN_COMMON: Final = "Look for what they have in common on our side."
MOST_LANES: Final = 10  # that a mail names
NOTHING_DONE: Final = (
    "Messages still flow and due work stays in Postgres, but nothing is changed or notified: check Redis, Celery beat "
    "and the workers."
)
RETRY: Final = timedelta(minutes=1)  # after the mail server refused a mail; each attempt may block for seconds
_refused: Final[dict[int, datetime]] = {}  # of this process: when the mail of an incident was refused, by its id
log = structlog.get_logger(__name__)


def watch_incidents(now: datetime) -> int:
    """Open an incident for each cause with recent open alerts of three tenants, and for blocked lanes.

    Resolves incidents that are over. Returns how many were opened.
    """
    tenants: dict[str, set[str]] = defaultdict(set)
    recent = open_alerts().filter(last_at__gte=now - WITHIN).exclude(cause__in=OF_SENDERS)
    for cause, tenant in recent.values_list("cause", "pipe__tenant_id"):
        tenants[cause].add(tenant)
    wide = {cause: len(found) for cause, found in tenants.items() if len(found) >= TENANTS}
    if lanes := _blocked_lanes(now):
        wide[BLOCKED] = Pipe.objects.filter(cell__in={lane.cell for lane in lanes}).values("tenant").distinct().count()
        for lane in lanes:
            log.warning("lane blocked", cell=lane.cell, lane=lane.writer, detail=lane.body["detail"])
    for incident in Incident.objects.filter(resolved_at=None).exclude(cause=SILENT):
        if incident.cause not in wide:
            _end(incident.cause, now)
        elif incident.tenants != wide[incident.cause]:
            Incident.objects.filter(id=incident.id).update(tenants=wide[incident.cause])
    return sum(_open(cause, count, now) for cause, count in wide.items())


def watch_silence(now: datetime, watched_since: datetime) -> bool:
    """Open the incident of a silent control plane, or resolve it; return True if it was opened.

    The Observer's process calls this, because the periodic tasks cannot report their own silence.

    watched_since: start of the Observer's session; earlier silence does not count
    """
    overdue = overdue_tasks(now, watched_since)
    if not overdue:
        _end(SILENT, now)
        return False
    if not _open(SILENT, Tenant.objects.count(), now):
        return False
    send_incident_mails(now, watched_since)  # the task that sends the others may be the one that is silent
    return True


def send_incident_mails(now: datetime, watched_since: datetime | None = None) -> int:
    """Mail the open incidents that are not mailed yet; return the number of mails sent.

    A mail that the server refuses is tried again after RETRY. watched_since: as in `watch_silence`
    """
    sent = 0
    if not settings.PENSTOCK_OPERATOR_MAIL:
        return sent
    for row in Incident.objects.filter(resolved_at=None, told_at=None):
        is_due = row.id not in _refused or now - _refused[row.id] >= RETRY
        if is_due and Incident.objects.filter(id=row.id, told_at=None).update(told_at=now):
            sent += _mail(row, _text(row.cause, now, watched_since), now)
    return sent


def _mail(row: Incident, text: str, now: datetime) -> bool:
    subject = f"[Penstock] incident: {row.cause} at {row.tenants} tenants"
    body = f"The cause {row.cause!r} is open at {row.tenants} tenants. {text}\n"
    try:
        send_mail(subject, body, None, [settings.PENSTOCK_OPERATOR_MAIL])
    except (SMTPException, OSError) as exc:  # the incident is in the log and on the status board; continue
        _refused[row.id] = now
        Incident.objects.filter(id=row.id).update(told_at=None)
        log.warning("incident not mailed", cause=row.cause, error=str(exc))
        return False
    _refused.pop(row.id, None)
    return True


def _text(cause: str, now: datetime, watched_since: datetime | None) -> str:
    if cause == SILENT:
        overdue = overdue_tasks(now, watched_since)
        tasks = (f"{one.task} (last done {one.since:%H:%M:%S} UTC)" if one.since else one.task for one in overdue)
        return f"{NOTHING_DONE} Overdue tasks: {', '.join(tasks)}."
    if cause == BLOCKED:
        lanes = _blocked_lanes(now)[:MOST_LANES]
        named = (f"{lane.writer} of cell {lane.cell}: {lane.body['detail']}" for lane in lanes)
        return "\n".join([NEXT_STEPS[ProblemKind.CELL_BLOCKED], *named])
    return IN_COMMON


def _blocked_lanes(now: datetime) -> list[Heartbeat]:
    """Return the heartbeats of blocked lanes: a topic refuses their records, or their input is gone."""
    lanes = Heartbeat.objects.filter(at__gte=now - FRESH, kind__in=LANE_KINDS).exclude(body__detail="")
    return list(lanes.order_by("cell", "writer"))


def _end(cause: str, now: datetime) -> None:
    if Incident.objects.filter(cause=cause, resolved_at=None).update(resolved_at=now):
        log.info("incident resolved", cause=cause)


def _open(cause: str, count: int, now: datetime) -> bool:
    if Incident.objects.filter(cause=cause, resolved_at=None).exists():
        return False
    fresh = Incident(cause=cause, tenants=count, opened_at=now)
    Incident.objects.bulk_create([fresh], ignore_conflicts=True)
    log.error("incident", cause=cause, tenants=count)
    return True
