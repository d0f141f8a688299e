"""Service of webhook settings: the sender of a source, its secrets, and the headers that events keep."""

from collections.abc import Sequence
from typing import Any, Final

import structlog
from django.db import transaction

from dataplane.tables.sealed import webhook_place
from dataplane.webhooks import PRESETS, Preset
from mgmt.audit.services import record
from mgmt.errors import InvalidValue, PipeClosedError
from mgmt.models import Pipe, Source, SourceWebhook, User
from mgmt.pipes.header_names import names_a_header_without_secrets
from mgmt.quotas.services import hold_tenant
from mgmt.tenancy.secrets import encrypt, reencrypt

MAX_SECRETS: Final = 2  # the newest one, and the one before while the sender changes over
MAX_HEADERS: Final = 20
_UNKEPT: Final = frozenset({"content-length", "host"})
log = structlog.get_logger(__name__)


@transaction.atomic
def set_webhook(
    *,
    source: Source,
    preset: str,
    by: User,
    secret: str = "",
    headers: Sequence[str] = (),
    keep_previous: bool = True,
) -> SourceWebhook:
    """Set the sender of a source. Ingest applies the change within seconds.

    secret:        signing secret of the sender; "" keeps those that are stored for the preset. The first time it may
                   be missing, because some senders show it only for a URL that they know: ingest answers 503 till then
    headers:       names of request headers that events keep besides those of the preset
    keep_previous: the secret before stays valid too, until this is called without it

    Another preset removes all secrets of the one before. Raises InvalidValue, PipeClosedError.
    """
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{source.pipe.name} is closed. Open it again before you change its webhooks.")
    if (chosen := PRESETS.get(preset)) is None:
        raise InvalidValue("preset", f"needs one of {', '.join(PRESETS)}")
    names = _checked_headers(headers)
    _check_secret(chosen, secret)
    hold_tenant(source.pipe.tenant_id)  # concurrent changes of one source take turns
    row = SourceWebhook.objects.filter(source=source).first() or SourceWebhook(source=source)
    before = _state(row) if row.version else None
    kept: list[str] = row.secrets if row.preset == preset else []
    if secret:
        kept = [encrypt(secret, webhook_place(source.pipe_id, source.name)), *kept]
    if row.secrets and not chosen.can_verify(kept):
        raise InvalidValue("secret", f"needs the signing secret that {chosen.title} shows")
    row.preset, row.headers = preset, names
    row.secrets = kept[: MAX_SECRETS if keep_previous else 1]
    if _state(row) == before and not secret:
        return row
    row.version += 1
    row.save()
    after = _state(row) | {"is_rotated": bool(secret)}
    record(pipe=source.pipe, by=by, action="webhook.set", target=source, before=before, after=after)
    log.info("webhook set", pipe=source.pipe_id, source=source.name, preset=preset, version=row.version)
    return row


def rotate_webhook_secrets(source_id: int) -> None:
    """Encrypt the secrets of a source again with the first key, in a transaction of its own. Safe to repeat."""
    with transaction.atomic():
        row = SourceWebhook.objects.select_for_update().select_related("source").get(source_id=source_id)
        place = webhook_place(row.source.pipe_id, row.source.name)
        row.secrets = [reencrypt(token, place) for token in row.secrets]
        row.version += 1
        row.save(update_fields=["secrets", "version"])


def _state(row: SourceWebhook) -> dict[str, Any]:
    return {"preset": row.preset, "headers": list(row.headers), "accepted_signatures": len(row.secrets)}


def _check_secret(preset: Preset, secret: str) -> None:
    if not secret:
        return
    if preset.name == "none":
        raise InvalidValue("secret", "must be left out: requests of other senders are not verified")
    try:
        preset.check_secret(secret)
    except ValueError as exc:
        raise InvalidValue("secret", str(exc)) from exc


def _checked_headers(headers: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(name.strip().lower() for name in headers))
    if len(names) > MAX_HEADERS:
        raise InvalidValue("headers", f"needs at most {MAX_HEADERS} names, got {len(names)}")
    for name in names:
        if name in _UNKEPT or not names_a_header_without_secrets(name):
            raise InvalidValue("headers", f"needs names of headers without secrets, such as x-event, got {name[:64]!r}")
    return names
