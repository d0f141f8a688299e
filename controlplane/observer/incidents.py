"""The operator's incidents: a cause that is ours. One that hits several tenants at once is rather ours than theirs."""

from collections import defaultdict
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail

from dataplane.names import LANE_KINDS
from mgmt.models import Heartbeat, Incident, Pipe
from mgmt.services.alerts import open_alerts

TENANTS: Final = 3
WITHIN: Final = timedelta(hours=1)
FRESH: Final = timedelta(seconds=10)  # a heartbeat to believe
BLOCKED: Final = "lane-blocked"
log = structlog.get_logger(__name__)


def watch_incidents(now: datetime) -> int:
    """Open an incident for each cause with fresh open alerts of three tenants and for lanes that cannot go on.

    Ends those that are over. Returns how many were opened.
    """
    tenants: dict[str, set[str]] = defaultdict(set)
    for cause, tenant in open_alerts().filter(last_at__gte=now - WITHIN).values_list("cause", "pipe__tenant_id"):
        tenants[cause].add(tenant)
    wide = {cause: len(found) for cause, found in tenants.items() if len(found) >= TENANTS} | _blocked(now)
    for incident in Incident.objects.filter(resolved_at=None):
        if incident.cause not in wide:
            Incident.objects.filter(id=incident.id, resolved_at=None).update(resolved_at=now)
            log.info("incident over", cause=incident.cause)
        elif incident.tenants != wide[incident.cause]:
            Incident.objects.filter(id=incident.id).update(tenants=wide[incident.cause])
    return sum(_open(cause, count, now) for cause, count in wide.items())


def _blocked(now: datetime) -> dict[str, int]:
    """How many tenants have pipes in cells of which a lane says that it cannot go on: a topic refuses its records, or
    what it was to read is gone."""
    lanes = Heartbeat.objects.filter(at__gte=now - FRESH, kind__in=LANE_KINDS).exclude(body__detail="")
    cells = dict(lanes.values_list("cell", "body__detail"))
    tenants = Pipe.objects.filter(cell__in=cells).values("tenant").distinct().count()
    for cell, detail in cells.items():
        log.warning("lane blocked", cell=cell, detail=detail)
    return {BLOCKED: tenants} if cells else {}


def _open(cause: str, count: int, now: datetime) -> bool:
    if Incident.objects.filter(cause=cause, resolved_at=None).exists():
        return False
    fresh = Incident(cause=cause, tenants=count, opened_at=now)
    Incident.objects.bulk_create([fresh], ignore_conflicts=True)
    if not Incident.objects.filter(cause=cause, resolved_at=None, told_at=None).update(told_at=now):
        return False
    log.error("incident", cause=cause, tenants=count)
    if settings.PENSTOCK_OPERATOR_MAIL:
        text = f"The cause {cause!r} is open at {count} tenants. Look at what they have in common on our side.\n"
        try:
            send_mail(f"[Penstock] incident: {cause} at {count} tenants", text, None, [settings.PENSTOCK_OPERATOR_MAIL])
        except (SMTPException, OSError) as exc:  # it is in the log and on the staff's page; the rest goes on
            log.warning("incident not mailed", cause=cause, error=str(exc))
    return True
