"""Send confirmation mails to the e-mail addresses of alert channels, from rows, as notices and digests are."""

from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse

from mgmt.alerts.services.channels import CONFIRMATION_MAX_AGE, confirmation_token
from mgmt.models import AlertChannel

AT_ONCE: Final = 50
AGAIN: Final = timedelta(minutes=5)
GIVE_UP: Final = timedelta(hours=1)  # after the request; the page offers to send it again
log = structlog.get_logger(__name__)


def send_confirmations(now: datetime) -> int:
    """Send the confirmation mails that are due; return how many were sent.

    A conditional update that postpones a row's time claims it: only one of two workers sends the mail, and after a
    worker has crashed the mail is tried again.
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
    """Send the mail; return the error, "" if there was none."""
    path = reverse("console:confirm_channel", args=[confirmation_token(row)])
    context = {
        "tenant": row.tenant,
        "url": f"{settings.PENSTOCK_WEB_URL}{path}",
        "days": CONFIRMATION_MAX_AGE.days,
    }
    text = render_to_string("alerts/emails/confirm_channel.txt", context)
    try:
        send_mail("[Penstock] Confirm this address for alerts", text, None, [row.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""
