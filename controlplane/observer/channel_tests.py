"""Send the test messages that editors request for notification channels, and store the responses.

A test is sent again only if its sender crashed before it stored the answer, with the same webhook-id.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from smtplib import SMTPException, SMTPRecipientsRefused
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
LEASE: Final = timedelta(seconds=60)  # after it, a test whose sender crashed is sent again
GIVE_UP: Final = timedelta(minutes=10)  # after the request: a late test would say nothing about now
TITLE: Final = "Test message from Penstock"
NOT_IN_TIME: Final = "not sent in time, because notifications were delayed; send another test"
BAD_SECRET: Final = "the stored URL, key or secret cannot be read; remove the channel and add it again"  # noqa: S105 a sentence
MAIL_FAILED: Final = "the mail server of this installation did not accept the message"
log = structlog.get_logger(__name__)


def send_channel_tests(now: datetime) -> int:
    """Send the test messages that are due; return how many were accepted."""
    rows = AlertChannel.objects.filter(AlertChannel.ACTIVE, test_due_at__lte=now).select_related("tenant")
    due = [row for row in rows.order_by("test_due_at")[:AT_ONCE] if _claim(row, now)]
    late = [row for row in due if row.test_requested_at is None or row.test_requested_at < now - GIVE_UP]
    accepted = [_store(row, NOT_IN_TIME) for row in late]
    sendable = [row for row in due if row not in late]
    accepted += [_store(row, _mail(row)) for row in sendable if row.kind == AlertChannel.Kind.MAIL]
    hooks = [row for row in sendable if row.kind != AlertChannel.Kind.MAIL]
    errors = _post(hooks, now)
    accepted += [_store(row, errors[number]) for number, row in enumerate(hooks)]
    return sum(accepted)


def _claim(row: AlertChannel, now: datetime) -> bool:
    ours = AlertChannel.objects.filter(id=row.id, test_due_at=row.test_due_at)
    row.test_due_at = now + LEASE
    return bool(ours.update(test_due_at=row.test_due_at))


def _store(row: AlertChannel, error: str) -> bool:
    """Store the answer, unless another worker has the test by now; return True if the message was accepted."""
    mine = AlertChannel.objects.filter(id=row.id, test_due_at=row.test_due_at)
    mine.update(test_due_at=None, tested_at=datetime.now(UTC), test_error=error[:200])
    event = log.warning if error else log.info
    event("channel test", tenant=row.tenant_id, channel=row.id, error=error)
    return not error


def _post(rows: Sequence[AlertChannel], now: datetime) -> Mapping[int, str]:
    """Send to all but e-mail addresses; return the error of each by its place in `rows`.

    The incident of a pager is ended at once, also if it is not known whether the pager has opened one.
    """
    errors, requests, ends = dict[int, str](), list[HttpRequest](), dict[int, HttpRequest]()
    for number, row in enumerate(rows):
        try:
            requests.append(_request(number, row, now))
            if row.kind in PAGERS:
                ends[number] = _request(number, row, now, is_resolved=True)
        except (ImproperlyConfigured, ValueError) as exc:
            log.warning("channel secret", channel=row.id, error=str(exc))
            errors[number] = BAD_SECRET
    errors |= post_all(requests)
    opened = [end for number, end in ends.items() if not errors[number].startswith("returned 4")]
    for number, error in post_all(opened).items():
        if error and not errors[number]:
            errors[number] = f"the event arrived, but its resolution did not: {error}"
    return errors


def _request(number: int, row: AlertChannel, now: datetime, *, is_resolved: bool = False) -> HttpRequest:
    secret = decrypt(row.secret, channel_place(row))
    if has_secret_target(row.kind):
        return chat_request(number, row.kind, secret, replace(_notice(row, now), is_resolved=is_resolved))
    requested_at = row.test_requested_at or now
    content = {
        "type": "channel.test",
        "tenant": row.tenant_id,
        "channel": row.id,
        "at": requested_at.isoformat(),
        "url": _page(),
    }
    message_id = f"{row.id}-{requested_at.timestamp():.6f}"
    return signed_request(number, row.target, secret, content, message_id=message_id, now_s=int(now.timestamp()))


def _notice(row: AlertChannel, now: datetime) -> NoticeText:
    return NoticeText(
        alert=f"{row.id}-test",  # one key for all tests: the next one ends an incident that the last one left open
        title=TITLE,
        facts=[("Tenant", row.tenant.name), ("Note", "Alerts of this tenant arrive here.")],
        url=_page(),
        link_text="Open notification channels",
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
    except SMTPRecipientsRefused as exc:
        code = next((status for status, _ in exc.recipients.values()), 0)
        return f"the address was refused with the status {code}"
    except (SMTPException, OSError) as exc:
        log.warning("channel test mail", channel=row.id, error=f"{type(exc).__name__}: {exc}")
        return MAIL_FAILED
    return ""


def _page() -> str:
    return f"{settings.PENSTOCK_WEB_URL}{reverse('console:channels')}"
