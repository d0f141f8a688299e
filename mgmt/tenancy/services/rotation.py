"""Re-encryption of each stored secret with the first key, so that an old key can leave PENSTOCK_FERNET_KEYS."""

from typing import Final

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import F

from dataplane.tables.sealed import credential_place, salt_place, signing_place
from mgmt.audit.services import record
from mgmt.deliveries.services.destinations import with_endpoint
from mgmt.idempotency.services import response_place
from mgmt.models import AlertChannel, Destination, IdempotentResponse, Pipe, SourceWebhook, SsoConnection, Tenant
from mgmt.sso.services.connections import rotate_client_secret
from mgmt.tenancy.secrets import decrypt, encrypt, reencrypt
from mgmt.webhook_sources.services import rotate_webhook_secrets

SECOND_FACTOR_PLACE: Final = "accounts/second-factor/secret"
_SEALED: Final = {Authenticator.Type.TOTP: "secret", Authenticator.Type.RECOVERY_CODES: "seed"}  # keys of `data`


def rotate_secrets() -> int:
    """Re-encrypt all secrets with the first key; return the number of rows. Safe to repeat and to interrupt.

    Each row is a transaction of its own. The data plane gets the new tokens as new versions of its records. Raises as
    `decrypt` does for the first token that cannot be decrypted; that row is unchanged.
    """
    destinations = list(Destination.objects.order_by("id").values_list("id", flat=True))
    channels = list(AlertChannel.objects.exclude(secret="").order_by("id").values_list("id", flat=True))
    tenants = list(Tenant.objects.exclude(mask_salt="").order_by("id").values_list("id", flat=True))
    factors = list(Authenticator.objects.filter(type__in=_SEALED).order_by("id").values_list("id", flat=True))
    for tenant in tenants:
        _rotate_salt(tenant)
    for destination in destinations:
        _rotate_destination(destination)
    for channel in channels:
        _rotate_channel(channel)
    for factor in factors:
        _rotate_factor(factor)
    connections = list(SsoConnection.objects.order_by("id").values_list("id", flat=True))
    for connection in connections:
        rotate_client_secret(connection)
    webhooks = list(SourceWebhook.objects.exclude(secrets=[]).order_by("source").values_list("source_id", flat=True))
    for webhook in webhooks:
        rotate_webhook_secrets(webhook)
    responses = list(IdempotentResponse.objects.order_by("id").values_list("id", flat=True))
    for response in responses:
        _rotate_response(response)
    return sum(len(rows) for rows in (tenants, destinations, channels, factors, connections, webhooks, responses))


@transaction.atomic
def _rotate_destination(row_id: int) -> None:
    """Take a lock for the same reason as rotate_signing_secret."""
    row = Destination.objects.select_for_update().get(id=row_id)
    row.secrets = [reencrypt(token, signing_place(row.pipe_id, row.name)) for token in row.secrets]
    place = credential_place(row.pipe_id, row.name)
    opened = [(endpoint, with_endpoint(decrypt(token, place), endpoint)) for endpoint, token in row.credentials]
    row.credentials = [[endpoint, encrypt(text, place)] for endpoint, text in opened]
    row.version = F("version") + 1
    row.save(update_fields=["secrets", "credentials", "version"])


@transaction.atomic
def _rotate_salt(tenant_id: str) -> None:
    """Also raise the version of the tenant's pipes, whose records carry the salt."""
    row = Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
    row.mask_salt = reencrypt(row.mask_salt, salt_place(row.id))
    row.save(update_fields=["mask_salt"])
    Pipe.objects.filter(tenant=row).update(version=F("version") + 1)
    record(tenant=row, by=None, action="secrets.reencrypted", target=row)


@transaction.atomic
def _rotate_channel(row_id: str) -> None:
    row = AlertChannel.objects.select_for_update().get(id=row_id)
    row.secret = reencrypt(row.secret, channel_place(row))
    row.save(update_fields=["secret"])


@transaction.atomic
def _rotate_factor(row_id: int) -> None:
    row = Authenticator.objects.select_for_update().get(id=row_id)
    sealed = _SEALED[Authenticator.Type(row.type)]
    row.data[sealed] = reencrypt(row.data[sealed], SECOND_FACTOR_PLACE)
    row.save(update_fields=["data"])


@transaction.atomic
def _rotate_response(row_id: int) -> None:
    """Leave out a row that was deleted since the list was made: responses are kept for a day only."""
    row = IdempotentResponse.objects.select_for_update().filter(id=row_id).first()
    if row is not None:
        row.body = reencrypt(row.body, response_place(row.user_id, row.token, row.key))
        row.save(update_fields=["body"])


def channel_place(channel: AlertChannel) -> str:
    """Return the location to which the signing secret of an alert webhook is bound (dataplane.tables.sealed)."""
    return f"{channel.tenant_id}/{channel.id}/secret"
