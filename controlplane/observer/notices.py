"""Send due notices of alerts as mails, signed webhooks, and messages to chats and pagers, built from the current rows.

A conditional update that postpones a notice's next time claims it, so a notice is sent again after its sender crashed.
A receiver may therefore get a notice twice, with the same webhook-id.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import send_mail
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.template.loader import render_to_string
from django.urls import reverse

from controlplane.observer.chat_notices import MOST_CHARS, NoticeText
from controlplane.observer.posting import chat_request, post_all, signed_request
from dataplane.causes import Cause
from dataplane.spec.channels import has_secret_target
from dataplane.transmit.http.sender import HttpRequest
from mgmt.alerts.common_fields import in_words
from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.presenters import alert_words
from mgmt.models import Alert, AlertChannel, Notification
from mgmt.tenancy.secrets import decrypt
from mgmt.tenancy.services.rotation import channel_place

AT_ONCE: Final = 50
MOST_TRIES: Final = 8
LEASE: Final = timedelta(seconds=60)
# Template and subject of the mail of causes that need their own.
_OPENED: Final = {
    Cause.FAILING.value: ("failing", "{where} is failing"),
    Cause.DELAYED.value: ("delayed", "Messages to {where} are delayed"),
    Cause.HOT_PARTITION.value: ("hot_partition", "One partition of {where} receives too many events"),
    Cause.NUMERIC_DRIFT.value: ("numeric_drift", "Numeric fields of {where} have unusual values"),
    Cause.REJECTING.value: ("rejecting", "Events of {where} are rejected"),
    Cause.SEQUENCE_GAP.value: ("sequence_gap", "Events of {where} are missing"),
    Cause.LOST.value: ("lost", "Messages of {where} were lost"),
}
_OTHER: Final = ("opened", "{where}: {words}")
log = structlog.get_logger(__name__)


def send_due(now: datetime) -> int:
    """Send the notices that are due, the first one of each tenant first; return how many were sent.

    So a tenant whose webhooks are slow or many delays the notices of others by one round of posting.
    """
    rows = Notification.objects.filter(state=Notification.State.DUE, next_at__lte=now)
    turn = Window(RowNumber(), partition_by="channel__tenant", order_by=["next_at", "id"])
    # Filtered here too, because an earlier release created notices for inactive channels.
    active = AlertChannel.objects.filter(AlertChannel.ACTIVE)
    rows = rows.filter(channel__in=active).annotate(turn=turn).order_by("turn", "next_at")
    due = [row for row in rows.select_related("alert__pipe__tenant", "channel")[:AT_ONCE] if _claim(row, now)]
    mails = [row for row in due if row.channel.kind == AlertChannel.Kind.MAIL]
    hooks = [row for row in due if row.channel.kind != AlertChannel.Kind.MAIL]
    errors = {row.id: _mail(row) for row in mails} | (_call(hooks, now) if hooks else {})
    for row in due:
        _store_result(row, errors[row.id], now)
    return sum(not error for error in errors.values())


def notification_text(notice: Notification) -> dict[str, Any]:
    """Return the JSON body of a webhook."""
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
        "status": alert.status,
        "details": alert.figures,
        "opened_at": alert.opened_at.isoformat(),
        "last_at": alert.last_at.isoformat(),
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
        "duration_s": _duration_s(alert),
        "resolution": alert.resolution,
        "sample": {name: alert.sample.get(name) for name in ("message_id", "position", "status", "reason")},
        "url": page_of(alert),
    }


def notice_text(notice: Notification) -> NoticeText:
    """Return a notice in words, for chats and pagers."""
    alert = notice.alert
    facts = [
        ("Tenant", alert.pipe.tenant.name),
        ("Pipe", alert.pipe.name),
        *([("Destination", alert.destination)] if alert.destination else []),
        (f"{alert.counted.capitalize()}s", f"{alert.count:,}"),
        ("Since", f"{alert.opened_at:%Y-%m-%d %H:%M} UTC"),
        *([("Resolved", alert.resolution)] if notice.what == "resolved" and alert.resolution else []),
        *([("Reason", str(alert.sample["reason"])[:MOST_CHARS])] if alert.sample.get("reason") else []),
    ]
    return NoticeText(
        alert=alert.id,
        title=_title(notice),
        facts=facts,
        url=page_of(alert),
        link_text="Open the alert",
        source=f"{alert.pipe.name}/{alert.destination}" if alert.destination else alert.pipe.name,
        cause=alert.cause,
        at=alert.resolved_at if notice.what == "resolved" and alert.resolved_at else alert.opened_at,
        is_resolved=notice.what == "resolved",
        severity="critical" if alert.cause == Cause.LOST else "error",
    )


def page_of(alert: Alert) -> str:
    """Return the console URL of an alert."""
    return f"{settings.PENSTOCK_WEB_URL}{reverse('console:alert', args=[alert.pipe_id, alert.id])}"


def _claim(row: Notification, now: datetime) -> bool:
    ours = Notification.objects.filter(id=row.id, state=Notification.State.DUE, next_at=row.next_at)
    row.tries += 1
    return bool(ours.update(next_at=now + LEASE, tries=F("tries") + 1))


def _store_result(row: Notification, error: str, now: datetime) -> None:
    mine = Notification.objects.filter(id=row.id)
    due = mine.filter(state=Notification.State.DUE)  # not if its alert was resolved meanwhile
    if not error:
        mine.update(state=Notification.State.SENT, sent_at=now, error="")
    elif row.tries >= MOST_TRIES:
        due.update(state=Notification.State.FAILED, error=error[:200])
    else:
        due.update(next_at=now + timedelta(seconds=10 * 2**row.tries), error=error[:200])
    event = log.warning if error else log.info
    event("alert notice", alert=row.alert_id, channel=row.channel_id, what=row.what, tries=row.tries, error=error)


def _title(row: Notification) -> str:
    alert = row.alert
    title = _OPENED.get(alert.cause, _OTHER)[1]
    title = title.format(words=alert_words(alert), where=alert.destination or alert.pipe.name)
    return f"Resolved: {title}" if row.what == "resolved" else title


def _mail(row: Notification) -> str:
    """Send the mail; return the error, "" if there was none."""
    alert = row.alert
    context = {
        "alert": alert,
        "cause": BY_CODE.get(alert.cause),
        "url": page_of(alert),
        "duration": timedelta(seconds=_duration_s(alert) or 0),
        "common": in_words(alert.details.get("common", ())),
        "oldest_at": _time(alert, "oldest_at"),
        "lost_from": _time(alert, "from"),
        "lost_to": _time(alert, "to"),
    }
    template = _OPENED.get(alert.cause, _OTHER)[0] if row.what == "opened" else row.what
    text = render_to_string(f"alerts/emails/alert_{template}.txt", context)
    try:
        send_mail(f"[Penstock] {_title(row)}", text, None, [row.channel.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""


def _call(rows: Sequence[Notification], now: datetime) -> dict[int, str]:
    """Send webhooks and messages; return the error by id of the notice, "" for one that the receiver accepted."""
    errors: dict[int, str] = {}
    requests = []
    for row in rows:
        try:
            requests.append(_post(row, int(now.timestamp())))
        except (ImproperlyConfigured, ValueError) as exc:
            # A secret that cannot be decrypted must not stop the other notices.
            errors[row.id] = str(exc)
    return errors | post_all(requests)


def _post(row: Notification, now_s: int) -> HttpRequest:
    secret, kind = decrypt(row.channel.secret, channel_place(row.channel)), row.channel.kind
    if has_secret_target(kind):
        return chat_request(row.id, kind, secret, notice_text(row))
    content, message_id = notification_text(row), f"notice_{row.id}"
    return signed_request(row.id, row.channel.target, secret, content, message_id=message_id, now_s=now_s)


def _duration_s(alert: Alert) -> int | None:
    return int((alert.resolved_at - alert.opened_at).total_seconds()) if alert.resolved_at else None


def _time(alert: Alert, name: str) -> datetime | None:
    """Return a time of the alert's details."""
    text = alert.details.get(name)
    return datetime.fromisoformat(text) if text else None
