"""Confirmation mails for the e-mail addresses of alert channels; made from rows, like notices and digests."""

from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse

from mgmt.models import AlertChannel
from mgmt.services.channels import CONFIRMATION_MAX_AGE, confirmation_token

AT_ONCE: Final = 50
AGAIN: Final = timedelta(minutes=5)
GIVE_UP: Final = timedelta(hours=1)  # after the request; the page offers to send it again
log = structlog.get_logger(__name__)


def send_confirmations(now: datetime) -> int:
    """Send the confirmation mails that are due; return how many went out.

    A row is claimed by moving its time on, so that one of two workers sends the mail, and a worker that dies is
    followed by another try.
    """
    due = AlertChannel.objects.filter(confirmation_due_at__lte=now).select_related("tenant")
    return sum(_send(row, now) for row in due.order_by("confirmation_due_at")[:AT_ONCE] if _claim(row, now))


def _claim(row: AlertChannel, now: datetime) -> bool:
    asked_at = row.confirmation_asked_at or now
    again_at = now + AGAIN if now + AGAIN < asked_at + GIVE_UP else None
    mine = AlertChannel.objects.filter(id=row.id, confirmed_at=None, confirmation_due_at=row.confirmation_due_at)
    return bool(mine.update(confirmation_due_at=again_at))


def _send(row: AlertChannel, now: datetime) -> bool:
    error = _mail(row)
    if not error:
        asked = AlertChannel.objects.filter(id=row.id, confirmation_asked_at=row.confirmation_asked_at)
        asked.update(confirmation_due_at=None)  # unless it was asked for again meanwhile
    event = log.warning if error else log.info
    event("confirmation mail", tenant=row.tenant_id, channel=row.id, at=now.isoformat(), error=error)
    return not error


def _mail(row: AlertChannel) -> str:
    """Return the error, "" if it was sent."""
    path = reverse("console:confirm_channel", args=[confirmation_token(row)])
    context = {
        "tenant": row.tenant,
        "url": f"{settings.PENSTOCK_WEB_URL}{path}",
        "days": CONFIRMATION_MAX_AGE.days,
    }
    text = render_to_string("emails/confirm_channel.txt", context)
    try:
        send_mail("[Penstock] Confirm this address for alerts", text, None, [row.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""
