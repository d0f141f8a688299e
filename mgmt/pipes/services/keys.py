"""Services of API keys: create and revoke. A key is shown once; only its digest is stored."""

import secrets

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from dataplane.spec.keys import PREFIX_CHARS, RANDOM_BYTES, key_digest, key_text
from mgmt.audit.services import record
from mgmt.errors import PipeClosedError
from mgmt.models import ApiKey, Pipe, Source, User
from mgmt.quotas.services import check_room_for_key, hold_tenant
from mgmt.tenancy.names import checked_name

log = structlog.get_logger(__name__)


@transaction.atomic
def create_api_key(*, source: Source, label: str = "", by: User | None = None) -> tuple[ApiKey, str]:
    """Create a key to one source. Return the row and the key itself, which cannot be shown again.

    Raises InvalidValue for a label that is too long or not printable, PipeClosedError, QuotaExceededError.
    """
    hold_tenant(source.pipe.tenant_id)
    check_room_for_key(source.pipe.tenant_id)
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{source.pipe.name} is closed. Open it again before you create a key.")
    label = checked_name("label", label) if label.strip() else ""
    key = key_text(secrets.token_bytes(RANDOM_BYTES))
    row = ApiKey.objects.create(source=source, label=label, prefix=key[:PREFIX_CHARS], digest=key_digest(key))
    record(pipe=source.pipe, by=by, action="key.created", target=row, after={"source": source.name})
    log.info("key created", pipe=source.pipe_id, source=source.name, key=row.id)
    return row, key


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
