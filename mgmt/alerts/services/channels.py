"""Services of notification channels: e-mail addresses, which their owners confirm, webhooks, chats and pagers."""

import re
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from dataplane.spec import SpecError
from dataplane.spec.channels import PAGERS, has_secret_target, shown_target
from dataplane.spec.destination import check_url
from mgmt.audit.services import record
from mgmt.errors import (
    ChannelNotConfirmedError,
    InvalidValue,
    LimitReachedError,
    NameTakenError,
    TooManyConfirmationsError,
    TooManyTestsError,
)
from mgmt.models import AlertChannel, Tenant, User
from mgmt.pipes.spec_check import check_outbound
from mgmt.quotas.services import hold_tenant
from mgmt.tenancy.row_scope import all_tenants
from mgmt.tenancy.secrets import encrypt, new_signing_secret
from mgmt.tenancy.services.rate_limits import TryLimit, hit
from mgmt.tenancy.services.rotation import channel_place

MOST_CHANNELS: Final = 20
CONFIRMATION_MAX_AGE: Final = timedelta(days=7)
# Per day, over all tenants: nobody can flood an address that is not theirs with e-mail.
CONFIRMATIONS_PER_ADDRESS: Final = TryLimit("alert confirmation: address", 5, timedelta(days=1))
CONFIRMATIONS_PER_TENANT: Final = TryLimit("alert confirmation: tenant", 40, timedelta(days=1))
TESTS_PER_CHANNEL: Final = TryLimit("channel test: channel", 20, timedelta(days=1))
TESTS_PER_TENANT: Final = TryLimit("channel test: tenant", 10, timedelta(minutes=1))
_INTEGRATION_KEY: Final = re.compile(r"[A-Za-z0-9]{32}")
_SALT: Final = "penstock.alert-address"
log = structlog.get_logger(__name__)


def add_alert_channel(
    *, tenant: Tenant, kind: str, target: str, now: datetime, by: User | None = None
) -> tuple[AlertChannel, str]:
    """Add a channel; return it and a webhook's signing secret ("" for other kinds), which is not shown again.

    An e-mail address gets a confirmation e-mail first, unless it is that of a member's account.
    Raises InvalidValue, DestinationForbidden, NameTakenError, LimitReachedError, TooManyConfirmationsError.
    """
    target = target.strip()
    _check(kind, target)
    channel = AlertChannel(tenant=tenant, kind=kind, target=shown_target(kind, target))
    secret = new_signing_secret() if kind == AlertChannel.Kind.WEBHOOK else ""
    if sealed := target if has_secret_target(kind) else secret:
        channel.secret = encrypt(sealed, channel_place(channel))
    elif is_member_address(tenant, target):
        channel.confirmed_at = now
    try:
        with transaction.atomic():
            hold_tenant(tenant.id)
            if tenant.alert_channels.count() >= MOST_CHANNELS:
                raise LimitReachedError(f"A tenant may have {MOST_CHANNELS} notification channels. Remove one first.")
            channel.save(force_insert=True)
            record(tenant=tenant, by=by, action="channel.added", target=channel, after={"kind": kind})
            if not channel.is_active:
                _ask(channel, now)
    except IntegrityError as exc:
        raise NameTakenError("This tenant already has a channel with this address or URL.") from exc
    return channel, secret


@transaction.atomic
def remove_alert_channel(*, channel: AlertChannel, by: User | None = None) -> None:
    """Remove a channel and its notifications."""
    if AlertChannel.objects.filter(id=channel.id).delete()[0]:
        before = {"kind": channel.kind}
        record(tenant=channel.tenant_id, by=by, action="channel.removed", target=channel, before=before)


@transaction.atomic
def ask_for_confirmation(*, channel: AlertChannel, now: datetime, by: User | None = None) -> None:
    """Request another confirmation e-mail; no effect on an active channel. Raises TooManyConfirmationsError."""
    if not channel.is_active:
        _ask(channel, now)
        record(tenant=channel.tenant_id, by=by, action="channel.confirmation_sent", target=channel)


@transaction.atomic
def request_channel_test(*, channel: AlertChannel, now: datetime, by: User | None = None) -> None:
    """Request a test message; the Observer sends it within seconds. No effect while one is due.

    Raises ChannelNotConfirmedError, TooManyTestsError.
    """
    if not channel.is_active:
        raise ChannelNotConfirmedError(f"{channel.target} is not confirmed, so nothing is sent to it.")
    if hit(TESTS_PER_TENANT, channel.tenant_id, now):
        raise TooManyTestsError(f"A tenant may send {TESTS_PER_TENANT.most} test messages a minute. Wait a minute.")
    if hit(TESTS_PER_CHANNEL, channel.id, now):
        raise TooManyTestsError(f"A channel may get {TESTS_PER_CHANNEL.most} test messages a day. Try again tomorrow.")
    changes = {"test_requested_at": now, "test_due_at": now, "tested_at": None, "test_error": ""}
    if AlertChannel.objects.filter(id=channel.id, test_due_at=None).update(**changes):
        record(tenant=channel.tenant_id, by=by, action="channel.tested", target=channel)
    channel.refresh_from_db()


def confirmation_token(channel: AlertChannel) -> str:
    """Return the signed token of a confirmation link, which names the channel and its address."""
    return signing.dumps([channel.id, channel.target], salt=_SALT)


@all_tenants("link")
def channel_of_token(*, token: str) -> AlertChannel | None:
    """Return the channel of a confirmation link; None if the link is forged or too old, or the channel was removed."""
    try:
        channel_id, target = signing.loads(token, salt=_SALT, max_age=CONFIRMATION_MAX_AGE)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    rows = AlertChannel.objects.select_related("tenant")
    return rows.filter(id=channel_id, target=target, kind=AlertChannel.Kind.MAIL).first()


@transaction.atomic
def confirm_channel(*, channel: AlertChannel, now: datetime) -> None:
    """Mark a channel as confirmed: alerts are sent to it from now on. Safe to repeat: the first time counts."""
    changes = {"confirmed_at": now, "confirmation_due_at": None}
    if AlertChannel.objects.filter(id=channel.id, confirmed_at=None).update(**changes):
        record(tenant=channel.tenant_id, by=None, action="channel.confirmed", target=channel)
        log.info("alert channel confirmed", tenant=channel.tenant_id, channel=channel.id)


def is_member_address(tenant: Tenant, address: str) -> bool:
    """Return True if a member who has signed in has this address. Only staff enter accounts' addresses."""
    members = User.objects.filter(tenants=tenant, is_active=True, last_login__isnull=False)
    return members.filter(email__iexact=address).exists()


def _ask(channel: AlertChannel, now: datetime) -> None:
    for limit, subject in (
        (CONFIRMATIONS_PER_ADDRESS, channel.target.casefold()),
        (CONFIRMATIONS_PER_TENANT, channel.tenant_id),
    ):
        if hit(limit, subject, now):
            raise TooManyConfirmationsError(
                "Too many confirmation e-mails were sent today. Look for the newest one, or try again tomorrow."
            )
    waiting = AlertChannel.objects.filter(id=channel.id, confirmed_at=None)
    waiting.update(confirmation_asked_at=now, confirmation_due_at=now)
    channel.refresh_from_db()


def _check(kind: str, target: str) -> None:
    if kind == AlertChannel.Kind.MAIL:
        try:
            validate_email(target)
        except ValidationError as exc:
            raise InvalidValue("target", "needs an e-mail address") from exc
        if len(target) > 254 or not target.isascii():
            raise InvalidValue("target", "needs an e-mail address of at most 254 ASCII characters")
        return
    if kind in PAGERS:
        if not _INTEGRATION_KEY.fullmatch(target):
            raise InvalidValue(
                "target", "needs the integration key of an Events API v2 integration: 32 letters and digits"
            )
        return
    try:
        check_url("$.target", target[:2_000])
    except SpecError as exc:
        raise InvalidValue("target", exc.reason) from exc
    if len(target) > 2_000 or not target.isascii():
        raise InvalidValue("target", "needs a URL of at most 2000 ASCII characters")
    check_outbound("target", target)
