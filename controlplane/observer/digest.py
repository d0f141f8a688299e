"""The daily digest: a mail in the morning that lists what is down. Where nothing is, no mail goes out."""

from datetime import datetime, time, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from mgmt.models import AlertChannel
from mgmt.queries.down import Down, down_of

MORNING: Final = time(7)  # UTC
AGAIN: Final = timedelta(hours=1)
AT_ONCE: Final = 50
log = structlog.get_logger(__name__)


def next_digest(now: datetime) -> datetime:
    """The next morning after `now`. Pure."""
    today = datetime.combine(now.date(), MORNING, now.tzinfo)
    return today if now < today else today + timedelta(days=1)


def send_digests(now: datetime) -> int:
    """Mail what is due; how many mails went out.

    A digest is claimed by moving its time on by an hour, and to the next morning when it is done: what was cut off, or
    refused by the mail server, is tried again after that hour.
    """
    mails = AlertChannel.objects.filter(AlertChannel.ACTIVE, kind=AlertChannel.Kind.MAIL)
    mails.filter(digest_at=None).update(digest_at=next_digest(now))
    due = mails.filter(digest_at__lte=now).select_related("tenant").order_by("digest_at")[:AT_ONCE]
    return sum(_send(row, now) for row in due if _claim(row, now))


def _claim(row: AlertChannel, now: datetime) -> bool:
    return bool(AlertChannel.objects.filter(id=row.id, digest_at=row.digest_at).update(digest_at=now + AGAIN))


def _send(row: AlertChannel, now: datetime) -> bool:
    """Whether a mail went out."""
    down = down_of(row.tenant, now)
    error = _mail(row, down) if len(down) else ""
    if not error:
        AlertChannel.objects.filter(id=row.id).update(digest_at=next_digest(now))
    log.info("digest", tenant=row.tenant_id, channel=row.id, down=len(down), error=error)
    return bool(len(down)) and not error


def _mail(row: AlertChannel, down: Down) -> str:
    """The error, "" if it went out."""
    things = f"{len(down)} thing is" if len(down) == 1 else f"{len(down)} things are"
    context = {"tenant": row.tenant, "down": down, "web_url": settings.PENSTOCK_WEB_URL}
    text = render_to_string("emails/digest.txt", context)
    try:
        send_mail(f"[Penstock] {things} down at {row.tenant.name}", text, None, [row.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""
