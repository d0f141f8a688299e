"""API keys: made, shown once, revoked. Only a digest is kept."""

import secrets

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from dataplane.spec.keys import PREFIX_CHARS, RANDOM_BYTES, key_digest, key_text
from mgmt.models import ApiKey, Pipe, Source
from mgmt.services.errors import PipeClosed
from mgmt.services.names import checked_name
from mgmt.services.quotas import check_room_for_key, hold_tenant

log = structlog.get_logger(__name__)


@transaction.atomic
def create_api_key(*, source: Source, label: str = "") -> tuple[ApiKey, str]:
    """A new key to one source: the row, and the key itself, which nobody can show again.

    Raises InvalidValue for a label that cannot be shown, PipeClosed if the pipe takes no events, QuotaExceeded.
    """
    hold_tenant(source.pipe.tenant_id)
    check_room_for_key(source.pipe.tenant_id)
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosed(f"{source.pipe.name} is closed. Open it again before you make a key.")
    label = checked_name("label", label) if label.strip() else ""
    key = key_text(secrets.token_bytes(RANDOM_BYTES))
    row = ApiKey.objects.create(source=source, label=label, prefix=key[:PREFIX_CHARS], digest=key_digest(key))
    log.info("key made", pipe=source.pipe_id, source=source.name, key=row.id)
    return row, key


def revoke_api_key(*, key: ApiKey) -> bool:
    """End the key for good. False if it was revoked already; the first time stands."""
    moved = ApiKey.objects.filter(id=key.id, revoked_at=None).update(
        revoked_at=timezone.now(), version=F("version") + 1
    )
    key.refresh_from_db()
    if moved:
        log.info("key revoked", key=key.id)
    return moved == 1
