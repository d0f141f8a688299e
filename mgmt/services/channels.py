"""Where a tenant's alerts are told."""

from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from dataplane.spec import SpecError
from dataplane.spec.destination import check_url
from mgmt.models import AlertChannel, Tenant
from mgmt.services.errors import InvalidValue, LimitReached, NameTaken
from mgmt.services.reach import check_outbound
from mgmt.services.rotation import channel_place
from mgmt.services.secrets import encrypt, new_signing_secret

MOST_CHANNELS: Final = 20


def add_alert_channel(*, tenant: Tenant, kind: str, target: str) -> tuple[AlertChannel, str]:
    """A mail address or a webhook: the row, and a webhook's signing secret, which is not shown again ("" for mail).

    Raises InvalidValue, DestinationForbidden, NameTaken, LimitReached.
    """
    target = target.strip()
    _check(kind, target)
    channel = AlertChannel(tenant=tenant, kind=kind, target=target)
    secret = new_signing_secret() if kind == AlertChannel.Kind.WEBHOOK else ""
    if secret:
        channel.secret = encrypt(secret, channel_place(channel))
    try:
        with transaction.atomic():
            # A lock, because a count cannot be a constraint.
            Tenant.objects.select_for_update().get(id=tenant.id)
            if tenant.alert_channels.count() >= MOST_CHANNELS:
                raise LimitReached(f"A tenant has at most {MOST_CHANNELS} of them. Remove one first.")
            channel.save(force_insert=True)
    except IntegrityError as exc:
        raise NameTaken("Alerts are told there already.") from exc
    return channel, secret


def remove_alert_channel(*, channel: AlertChannel) -> None:
    """Tell nothing more there."""
    AlertChannel.objects.filter(id=channel.id).delete()


def _check(kind: str, target: str) -> None:
    if kind == AlertChannel.Kind.MAIL:
        try:
            validate_email(target)
        except ValidationError as exc:
            raise InvalidValue("target", "needs a mail address") from exc
        if len(target) > 254 or not target.isascii():
            raise InvalidValue("target", "needs a mail address of at most 254 ASCII characters")
        return
    try:
        check_url("$.target", target[:2_000])
    except SpecError as exc:
        raise InvalidValue("target", exc.reason) from exc
    if len(target) > 2_000 or not target.isascii():
        raise InvalidValue("target", "needs a URL of at most 2000 ASCII characters")
    check_outbound("target", target)
