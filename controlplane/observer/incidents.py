"""The operator's incidents: one cause that hits several tenants at once is rather ours than theirs."""

from collections import defaultdict
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail

from mgmt.models import Incident
from mgmt.services.alerts import open_alerts

TENANTS: Final = 3
WITHIN: Final = timedelta(hours=1)
log = structlog.get_logger(__name__)


def watch_incidents(now: datetime) -> int:
    """Open an incident for each cause with fresh open alerts of three tenants, end those that have fewer; the number
    opened."""
    tenants: dict[str, set[str]] = defaultdict(set)
    for cause, tenant in open_alerts().filter(last_at__gte=now - WITHIN).values_list("cause", "pipe__tenant_id"):
        tenants[cause].add(tenant)
    wide = {cause: len(found) for cause, found in tenants.items() if len(found) >= TENANTS}
    for incident in Incident.objects.filter(resolved_at=None):
        if incident.cause not in wide:
            Incident.objects.filter(id=incident.id, resolved_at=None).update(resolved_at=now)
            log.info("incident over", cause=incident.cause)
        elif incident.tenants != wide[incident.cause]:
            Incident.objects.filter(id=incident.id).update(tenants=wide[incident.cause])
    return sum(_open(cause, count, now) for cause, count in wide.items())


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
