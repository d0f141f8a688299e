"""Services of API keys: create, rotate and revoke. A key is shown once; only its digest is stored."""

import secrets
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from dataplane.spec.keys import PREFIX, PREFIX_CHARS, RANDOM_BYTES, URL_PREFIX, key_digest, key_text
from mgmt.audit.services import record
from mgmt.errors import InvalidValue, KeyEndedError, PipeClosedError
from mgmt.models import ApiKey, Pipe, Source, SourceWebhook, User
from mgmt.quotas.services import check_room_for_key, hold_tenant
from mgmt.tenancy.names import checked_name

MAX_KEY_DAYS: Final = 3_650
OVERLAP_HOURS: Final = 24
MAX_OVERLAP_HOURS: Final = 720
log = structlog.get_logger(__name__)


@transaction.atomic
def create_api_key(
    *, source: Source, label: str = "", days: int | None = None, by: User | None = None, use: str = "key"
) -> tuple[ApiKey, str]:
    """Create a key to one source. Return the row and the key itself, which cannot be shown again.

    days: until it expires, 1 to MAX_KEY_DAYS; None for never
    use:  `url` for the secret part of a URL to which the sender of the source's webhook settings posts

    Raises InvalidValue for a label that is too long or not printable, or a URL of a source without webhook settings,
    PipeClosedError, QuotaExceededError.
    """
    hold_tenant(source.pipe.tenant_id)
    check_room_for_key(source.pipe.tenant_id)
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{source.pipe.name} is closed. Open it again before you create a key.")
    label = checked_name("label", label) if label.strip() else ""
    if days is not None and not 1 <= days <= MAX_KEY_DAYS:
        raise InvalidValue("expires_in_days", f"needs 1 to {MAX_KEY_DAYS} days")
    expires_at = timezone.now() + timedelta(days=days) if days is not None else None
    if use == "url" and not SourceWebhook.objects.filter(source=source).exists():
        raise InvalidValue("use", "needs a source with webhook settings: choose its sender first")
    key = key_text(secrets.token_bytes(RANDOM_BYTES), URL_PREFIX if use == "url" else PREFIX)
    row = ApiKey.objects.create(
        source=source, label=label, prefix=key[:PREFIX_CHARS], digest=key_digest(key), expires_at=expires_at
    )
    record(pipe=source.pipe, by=by, action="key.created", target=row, after={"source": source.name, "use": use})
    log.info("key created", pipe=source.pipe_id, source=source.name, key=row.id)
    return row, key


@transaction.atomic
def rotate_api_key(
    *, key: ApiKey, by: User, overlap: timedelta, now: datetime, days: int | None = None
) -> tuple[ApiKey, str]:
    """Create a successor with the key's label; return it as create_api_key does.

    overlap: how long the old key still works, at most MAX_OVERLAP_HOURS; an earlier expiry is kept

    Raises KeyEndedError for a key that is revoked or has expired, and as create_api_key does.
    """
    if not timedelta() <= overlap <= timedelta(hours=MAX_OVERLAP_HOURS):
        raise InvalidValue("overlap_hours", f"needs 0 to {MAX_OVERLAP_HOURS} hours")
    hold_tenant(key.source.pipe.tenant_id)
    old = ApiKey.objects.get(id=key.id)  # as it is under the lock
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
        raise KeyEndedError(f"Key {old.prefix}… does not work any more. Create a new key of the source.")
    ends_at = now + overlap
    if old.expires_at is None or ends_at < old.expires_at:
        ApiKey.objects.filter(id=old.id).update(expires_at=ends_at, version=F("version") + 1)
    ends = {"ends_at": min(ends_at, old.expires_at) if old.expires_at else ends_at}
    record(pipe=key.source.pipe, by=by, action="key.rotated", target=old, after=ends)
    log.info("key rotated", key=old.id, overlap_s=overlap.total_seconds(), by=by.username)
    return create_api_key(source=key.source, label=old.label, days=days, by=by, use=old.use)


@transaction.atomic
def revoke_api_key(*, key: ApiKey, by: User | None = None) -> bool:
    """Revoke the key for good. Returns False if it was revoked already; the first time is kept."""
    moved = ApiKey.objects.filter(id=key.id, revoked_at=None).update(
        revoked_at=timezone.now(), version=F("version") + 1
    )
    key.refresh_from_db()
    if moved:
        record(pipe=key.source.pipe, by=by, action="key.revoked", target=key, before={"source": key.source.name})
        log.info("key revoked", key=key.id)
    return moved == 1
