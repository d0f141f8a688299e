"""Send the test messages that editors request for notification channels, once each, and store the answers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from msgspec.structs import replace

from controlplane.observer.chat_notices import NoticeText
from controlplane.observer.posting import chat_request, post_all, signed_request
from dataplane.spec.channels import PAGERS, has_secret_target
from dataplane.transmit.http.sender import HttpRequest
from mgmt.models import AlertChannel
from mgmt.tenancy.secrets import decrypt
from mgmt.tenancy.services.rotation import channel_place

AT_ONCE: Final = 50
LEASE: Final = timedelta(seconds=60)  # a test is sent again after its sender crashed
TITLE: Final = "Test message from Penstock"
log = structlog.get_logger(__name__)


def send_channel_tests(now: datetime) -> int:
    """Send the test messages that are due; return how many were accepted."""
    rows = AlertChannel.objects.filter(AlertChannel.ACTIVE, test_due_at__lte=now).select_related("tenant")
    due = [row for row in rows.order_by("test_due_at")[:AT_ONCE] if _claim(row, now)]
    errors = [_mail(row) if row.kind == AlertChannel.Kind.MAIL else "" for row in due]
    hooks = [place for place, row in enumerate(due) if row.kind != AlertChannel.Kind.MAIL]
    for place, error in _post(due, hooks, now).items():
        errors[place] = error
    for row, error in zip(due, errors, strict=True):
        results = {"test_due_at": None, "tested_at": now, "test_error": error[:200]}
        AlertChannel.objects.filter(id=row.id).update(**results)
        event = log.warning if error else log.info
        event("channel test", tenant=row.tenant_id, channel=row.id, error=error)
    return errors.count("")


def _claim(row: AlertChannel, now: datetime) -> bool:
    ours = AlertChannel.objects.filter(id=row.id, test_due_at=row.test_due_at)
    return bool(ours.update(test_due_at=now + LEASE))


def _post(rows: Sequence[AlertChannel], places: Sequence[int], now: datetime) -> dict[int, str]:
    """Send to all but e-mail addresses; return the error of each place. An incident of a pager is ended at once."""
    errors, requests, ends = {}, [], {}
    for place in places:
        row = rows[place]
        try:
            requests.append(_request(place, row, now))
            if row.kind in PAGERS:
                ends[place] = _request(place, row, now, is_resolved=True)
        except (ImproperlyConfigured, ValueError) as exc:  # the secret cannot be decrypted
            errors[place] = str(exc)
    errors |= post_all(requests)
    errors |= post_all([request for place, request in ends.items() if not errors[place]])
    return errors


def _request(place: int, row: AlertChannel, now: datetime, *, is_resolved: bool = False) -> HttpRequest:
    secret = decrypt(row.secret, channel_place(row))
    if has_secret_target(row.kind):
        return chat_request(place, row.kind, secret, replace(_notice(row, now), is_resolved=is_resolved))
    content = {
        "type": "channel.test",
        "tenant": row.tenant_id,
        "channel": row.id,
        "at": now.isoformat(),
        "url": _page(),
    }
    now_s = int(now.timestamp())
    return signed_request(place, row.target, secret, content, message_id=f"{row.id}-{now_s}", now_s=now_s)


def _notice(row: AlertChannel, now: datetime) -> NoticeText:
    return NoticeText(
        alert=f"{row.id}-{int(now.timestamp())}",
        title=TITLE,
        facts=[("Tenant", row.tenant.name), ("Meaning", "Alerts of this tenant arrive here.")],
        url=_page(),
        link_text="Open the channels",
        source=row.tenant.name,
        cause="test",
        at=now,
        is_resolved=False,
        severity="info",
    )


def _mail(row: AlertChannel) -> str:
    """Send the mail; return the error, "" if there was none."""
    text = render_to_string("alerts/emails/channel_test.txt", {"tenant": row.tenant, "url": _page()})
    try:
        send_mail(f"[Penstock] {TITLE}", text, None, [row.target])
    except (SMTPException, OSError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""


def _page() -> str:
    return f"{settings.PENSTOCK_WEB_URL}{reverse('console:channels')}"
