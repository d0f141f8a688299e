"""The daily digest: a morning mail that lists a tenant's active problems. Without problems, no mail is sent."""

from datetime import datetime, time, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from mgmt.alerts.queries.active_problems import ActiveProblems, active_problems
from mgmt.models import AlertChannel

MORNING: Final = time(7)  # UTC
RETRY_AFTER: Final = timedelta(hours=1)
AT_ONCE: Final = 50
log = structlog.get_logger(__name__)


def next_digest(now: datetime) -> datetime:
    """Return the next morning after `now`, in UTC. Pure."""
    today = datetime.combine(now.date(), MORNING, now.tzinfo)
    return today if now < today else today + timedelta(days=1)


def send_digests(now: datetime) -> int:
    """Send the digests that are due; return how many mails were sent.

    A conditional update that postpones the digest by an hour claims it; when it is done, the next one is due the next
    morning. A digest that was interrupted, or that the mail server refused, is tried again after that hour.
    """
    mails = AlertChannel.objects.filter(AlertChannel.ACTIVE, kind=AlertChannel.Kind.MAIL)
    mails.filter(digest_at=None).update(digest_at=next_digest(now))
    due = mails.filter(digest_at__lte=now).select_related("tenant").order_by("digest_at")[:AT_ONCE]
    return sum(_send(row, now) for row in due if _claim(row, now))


def _claim(row: AlertChannel, now: datetime) -> bool:
    return bool(AlertChannel.objects.filter(id=row.id, digest_at=row.digest_at).update(digest_at=now + RETRY_AFTER))


def _send(row: AlertChannel, now: datetime) -> bool:
    """Send one digest if there are problems; return True if a mail was sent."""
    active = active_problems(row.tenant, now)
    error = _mail(row, active) if len(active) else ""
    if not error:
        AlertChannel.objects.filter(id=row.id).update(digest_at=next_digest(now))
    log.info("digest", tenant=row.tenant_id, channel=row.id, problems=len(active), error=error)
    return bool(len(active)) and not error


def _mail(row: AlertChannel, active: ActiveProblems) -> str:
    """Send the mail; return the error, "" if there was none."""
    problems = "1 active problem" if len(active) == 1 else f"{len(active)} active problems"
    context = {"tenant": row.tenant, "problems": active, "web_url": settings.PENSTOCK_WEB_URL}
    text = render_to_string("alerts/emails/digest.txt", context)
    try:
        send_mail(f"[Penstock] {problems} at {row.tenant.name}", text, None, [row.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""
