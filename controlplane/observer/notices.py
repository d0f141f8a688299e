"""Tells alerts: mails and signed webhooks for the notices that are due, made from the rows as they are now.

A notice is claimed by moving its next time on, so that a sender that dies is followed by another try; a receiver may so
be told twice, under the same webhook-id.
"""

import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import send_mail
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse

from dataplane.spec.guard import parse_networks
from dataplane.transmit.sender import Answer, Ground, Post, Sender
from dataplane.transmit.signature import sign, signer
from mgmt.models import Alert, AlertChannel, Notice
from mgmt.services.rotation import channel_place
from mgmt.services.secrets import decrypt

AT_ONCE: Final = 50
MOST_TRIES: Final = 8
LEASE: Final = timedelta(seconds=60)
WEBHOOK_MS: Final = 5_000
TURN_S: Final = 0.2
log = structlog.get_logger(__name__)


def send_due(now: datetime) -> int:
    """Tell what is due; how many were told."""
    rows = Notice.objects.filter(state=Notice.State.DUE, next_at__lte=now).order_by("next_at")
    active = AlertChannel.objects.filter(AlertChannel.ACTIVE)  # again: a release of before made notices for others
    rows = rows.filter(channel__in=active)
    due = [row for row in rows.select_related("alert__pipe__tenant", "channel")[:AT_ONCE] if _claim(row, now)]
    mails = [row for row in due if row.channel.kind == AlertChannel.Kind.MAIL]
    hooks = [row for row in due if row.channel.kind == AlertChannel.Kind.WEBHOOK]
    said = {row.id: _mail(row) for row in mails} | (_call(hooks, now) if hooks else {})
    for row in due:
        _note(row, said.get(row.id, "nothing came back"), now)
    return sum(not error for error in said.values())


def told(notice: Notice) -> dict[str, Any]:
    """What a webhook says."""
    alert = notice.alert
    return {
        "type": f"alert.{notice.what}",
        "alert": alert.id,
        "tenant": alert.pipe.tenant_id,
        "pipe": {"id": alert.pipe_id, "name": alert.pipe.name},
        "destination": alert.destination,
        "cause": alert.cause,
        "suspended": alert.suspended,
        "count": alert.count,
        "opened_at": alert.opened_at.isoformat(),
        "last_at": alert.last_at.isoformat(),
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
        "duration_s": _duration_s(alert),
        "resolution": alert.resolution,
        "sample": {name: alert.sample.get(name) for name in ("message_id", "position", "status", "reason")},
        "url": page_of(alert),
    }


def page_of(alert: Alert) -> str:
    """Where people see it."""
    return f"{settings.PENSTOCK_WEB_URL}{reverse('console:alert', args=[alert.pipe_id, alert.id])}"


def _claim(row: Notice, now: datetime) -> bool:
    ours = Notice.objects.filter(id=row.id, state=Notice.State.DUE, next_at=row.next_at)
    row.tries += 1
    return bool(ours.update(next_at=now + LEASE, tries=F("tries") + 1))


def _note(row: Notice, error: str, now: datetime) -> None:
    mine = Notice.objects.filter(id=row.id)
    if not error:
        mine.update(state=Notice.State.SENT, sent_at=now, error="")
    elif row.tries >= MOST_TRIES:
        mine.update(state=Notice.State.FAILED, error=error[:200])
    else:
        mine.update(next_at=now + timedelta(seconds=10 * 2**row.tries), error=error[:200])
    event = log.warning if error else log.info
    event("alert told", alert=row.alert_id, channel=row.channel_id, what=row.what, tries=row.tries, error=error)


def _mail(row: Notice) -> str:
    """The error, "" if it went out."""
    alert = row.alert
    context = {"alert": alert, "url": page_of(alert), "duration": timedelta(seconds=_duration_s(alert) or 0)}
    where = alert.destination or alert.pipe.name
    subject = f"[Penstock] {'Resolved: ' if row.what == 'resolved' else ''}{alert.cause} at {where}"
    text = render_to_string(f"emails/alert_{row.what}.txt", context)
    try:
        send_mail(subject, text, None, [row.channel.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""


def _call(rows: list[Notice], now: datetime) -> dict[int, str]:
    """The error of each, "" if it was accepted. All at once, each for at most WEBHOOK_MS, through the address guard."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    sender = Sender(Ground(allowed, https_only=settings.PRODUCTION, own=settings.PENSTOCK_OWN_INGEST))
    said: dict[int, str] = {}
    try:
        for row in rows:
            try:
                sender.begin(_post(row, int(now.timestamp())))
            except (
                ImproperlyConfigured,
                ValueError,
            ) as exc:  # one secret that does not open must not silence the others
                said[row.id] = str(exc)
        deadline = time.monotonic() + 2 * WEBHOOK_MS / 1_000
        while sender.active and time.monotonic() < deadline:
            said |= {answer.token: _error(answer) for answer in sender.turn(TURN_S)}
    finally:
        sender.close()
    return said


def _post(row: Notice, now_s: int) -> Post:
    body = json.dumps(told(row)).encode()
    message_id = f"notice_{row.id}"
    signers = [signer(decrypt(row.channel.secret, channel_place(row.channel)))]
    headers: Mapping[str, str] = {
        "Content-Type": "application/json",
        "User-Agent": "Penstock/1",
        "webhook-id": message_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign(signers, message_id, now_s, body),
    }
    lines = ["Expect:", *(f"{name}: {value}" for name, value in headers.items())]
    return Post(row.id, row.channel.target, lines, body, WEBHOOK_MS)


def _error(answer: Answer) -> str:
    if 200 <= answer.status < 300:
        return ""
    if answer.forbidden:
        return "its address may not be called from here"
    return f"answered {answer.status}" if answer.status else answer.message or "no answer"


def _duration_s(alert: Alert) -> int | None:
    return int((alert.resolved_at - alert.opened_at).total_seconds()) if alert.resolved_at else None
