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
BLOCKED_DO: Final = (
    "If a topic refuses records, repair its size limit, disk or permissions; a lost offset needs "
    "`manage.py lane_offsets`."
)
MOST_LANES: Final = 10  # that a mail names
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
    wide = {cause: len(found) for cause, found in tenants.items() if len(found) >= TENANTS}
    texts = dict.fromkeys(wide, IN_COMMON)
    if lanes := _blocked_lanes(now):
        wide[BLOCKED] = Pipe.objects.filter(cell__in={lane.cell for lane in lanes}).values("tenant").distinct().count()
        named = [f"{lane.writer} of cell {lane.cell}: {lane.body['detail']}" for lane in lanes[:MOST_LANES]]
        texts[BLOCKED] = "\n".join([BLOCKED_DO, *named])
    for incident in Incident.objects.filter(resolved_at=None).exclude(cause=SILENT):
        if incident.cause not in wide:
            _end(incident.cause, now)
        elif incident.tenants != wide[incident.cause]:
            Incident.objects.filter(id=incident.id).update(tenants=wide[incident.cause])
    return sum(_open(cause, count, now, texts[cause]) for cause, count in wide.items())


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


def _blocked_lanes(now: datetime) -> list[Heartbeat]:
    """Return the heartbeats of blocked lanes: a topic refuses their records, or their input is gone."""
    lanes = Heartbeat.objects.filter(at__gte=now - FRESH, kind__in=LANE_KINDS).exclude(body__detail="")
    found = list(lanes.order_by("cell", "writer"))
    for lane in found:
        log.warning("lane blocked", cell=lane.cell, lane=lane.writer, detail=lane.body["detail"])
    return found


def _end(cause: str, now: datetime) -> None:
    if Incident.objects.filter(cause=cause, resolved_at=None).update(resolved_at=now):
        log.info("incident resolved", cause=cause)


def _open(cause: str, count: int, now: datetime, text: str) -> bool:
    """Open an incident unless one is open, and send its mail, again with the next call if the mail server refuses it.

    Returns True if it was opened.
    """
    incident = Incident.objects.filter(cause=cause, resolved_at=None)
    is_new = not incident.exists()
    if is_new:
        Incident.objects.bulk_create([Incident(cause=cause, tenants=count, opened_at=now)], ignore_conflicts=True)
    if not incident.filter(told_at=None).update(told_at=now):
        return False
    if is_new:
        log.error("incident", cause=cause, tenants=count, what=text)
    if settings.PENSTOCK_OPERATOR_MAIL:
        body = f"The cause {cause!r} is open at {count} tenants. {text}\n"
        try:
            send_mail(f"[Penstock] incident: {cause} at {count} tenants", body, None, [settings.PENSTOCK_OPERATOR_MAIL])
        except (SMTPException, OSError) as exc:  # the incident is in the log and on the status board; continue
            incident.update(told_at=None)
            log.warning("incident not mailed", cause=cause, error=str(exc))
    return is_new
