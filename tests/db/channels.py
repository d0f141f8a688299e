"""Notification channels that are active immediately."""

from django.utils import timezone

from mgmt.models import AlertChannel, Tenant
from mgmt.services import add_alert_channel, confirm_channel


def add_active_channel(*, tenant: Tenant, kind: str, target: str) -> tuple[AlertChannel, str]:
    """Add a channel; confirm it if it is an e-mail address."""
    channel, secret = add_alert_channel(tenant=tenant, kind=kind, target=target, now=timezone.now())
    if kind == AlertChannel.Kind.MAIL:
        confirm_channel(channel=channel, now=timezone.now())
        channel.refresh_from_db()
    return channel, secret
