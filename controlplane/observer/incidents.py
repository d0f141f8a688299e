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
NOTHING_DONE: Final = (
    "Messages still flow and due work stays in Postgres, but nothing is changed or notified: check Redis, Celery beat "
    "and the workers."
)
log = structlog.get_logger(__name__)


def watch_incidents(now: datetime) -> int:
    """Open an incident for each cause with recent open alerts of three tenants, and for blocked lanes.

    Resolves incidents that are over. Returns how many were opened.
    """
    tenants: dict[str, set[str]] = defaultdict(set)
    recent = open_alerts().filter(last_at__gte=now - WITHIN).exclude(cause__in=OF_SENDERS)
    for cause, tenant in recent.values_list("cause", "pipe__tenant_id"):
        tenants[cause].add(tenant)
    wide = {cause: len(found) for cause, found in tenants.items() if len(found) >= TENANTS} | _blocked(now)
    for incident in Incident.objects.filter(resolved_at=None).exclude(cause=SILENT):
        if incident.cause not in wide:
            _end(incident.cause, now)
        elif incident.tenants != wide[incident.cause]:
            Incident.objects.filter(id=incident.id).update(tenants=wide[incident.cause])
    return sum(_open(cause, count, now, IN_COMMON) for cause, count in wide.items())


def watch_silence(now: datetime, watched_since: datetime) -> bool:
    """Open the incident of a silent control plane, or resolve it; return True if it was opened.

    The Observer's process calls this, because the periodic tasks cannot report their own silence.

    watched_since: start of the Observer's session; earlier silence does not count
    """
    overdue = overdue_tasks(now, watched_since)
    if not overdue:
        _end(SILENT, now)
        return False
    tasks = ", ".join(f"{one.task} (last done {one.since:%H:%M:%S} UTC)" if one.since else one.task for one in overdue)
    return _open(SILENT, Tenant.objects.count(), now, f"{NOTHING_DONE} Overdue tasks: {tasks}.")


def _blocked(now: datetime) -> dict[str, int]:
    """Count the tenants with pipes in cells with a blocked lane: a topic refuses its records, or its input is gone."""
    lanes = Heartbeat.objects.filter(at__gte=now - FRESH, kind__in=LANE_KINDS).exclude(body__detail="")
    cells = dict(lanes.values_list("cell", "body__detail"))
    tenants = Pipe.objects.filter(cell__in=cells).values("tenant").distinct().count()
    for cell, detail in cells.items():
        log.warning("lane blocked", cell=cell, detail=detail)
    return {BLOCKED: tenants} if cells else {}


def _end(cause: str, now: datetime) -> None:
    if Incident.objects.filter(cause=cause, resolved_at=None).update(resolved_at=now):
        log.info("incident resolved", cause=cause)


def _open(cause: str, count: int, now: datetime, text: str) -> bool:
    if Incident.objects.filter(cause=cause, resolved_at=None).exists():
        return False
    fresh = Incident(cause=cause, tenants=count, opened_at=now)
    Incident.objects.bulk_create([fresh], ignore_conflicts=True)
    if not Incident.objects.filter(cause=cause, resolved_at=None, told_at=None).update(told_at=now):
        return False
    log.error("incident", cause=cause, tenants=count, what=text)
    if settings.PENSTOCK_OPERATOR_MAIL:
        body = f"The cause {cause!r} is open at {count} tenants. {text}\n"
        try:
            send_mail(f"[Penstock] incident: {cause} at {count} tenants", body, None, [settings.PENSTOCK_OPERATOR_MAIL])
        except (SMTPException, OSError) as exc:  # the incident is in the log and on the staff's page; continue
            log.warning("incident not mailed", cause=cause, error=str(exc))
    return True
