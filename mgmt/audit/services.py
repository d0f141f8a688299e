"""Services of the audit log: add an entry to the transaction of a change, and delete entries past the retention."""

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Model

from mgmt.audit.actions import ACTIONS, CHANGED
from mgmt.audit.models import NAME_CHARS, AuditEntry
from mgmt.audit.origin import current_origin
from mgmt.audit.targets import Target, target_of
from mgmt.ids import storable
from mgmt.models import Membership, Pipe, Tenant, User
from mgmt.operational_events.services import emit_change

ActorKind = AuditEntry.ActorKind
SYSTEM: Final = "Penstock"
VALUE_CHARS: Final = 500  # of one field, as JSON


def record(
    *,
    by: User | None,
    action: str,
    target: Model | Target | tuple[str, str, str] | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    pipe: Pipe | None = None,
    tenant: Tenant | str | None = None,
) -> AuditEntry | None:
    """Add an entry about a change to the caller's transaction; return None, without one, if no given field differs.

    The operational event of the change, if there is one and a pipe receives it, is part of the same transaction.

    by:            None for Penstock itself
    action:        one of mgmt.audit.actions.ACTIONS
    target:        the changed row, or its kind, id and name; by default the pipe
    before, after: fields of the change. Equal fields are left out, and of a field that ACTIONS does not list for the
                   action, the entry has only that it changed
    pipe:          the pipe that the target belongs to
    tenant:        by default that of the pipe

    Raises KeyError for an unknown action, TransactionManagementError outside of a transaction.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("record() belongs to the transaction of the change")
    about = target_of(target if target is not None else pipe)
    tenant_id = tenant.id if isinstance(tenant, Tenant) else tenant or (pipe.tenant_id if pipe else "")
    was, becomes = _difference(ACTIONS[action].fields, before or {}, after or {})
    if (before or after) and not (was or becomes):
        return None
    if pipe is not None:
        emit_change(action=action, pipe=pipe, target=target, after=becomes)
    origin, grant = current_origin(), by.grant if by else None
    return AuditEntry.objects.create(
        tenant_id=tenant_id,
        actor_kind=_actor_kind(by, tenant_id),
        user=by,
        actor=by.get_username() if by else SYSTEM,
        token_id=grant.token_id if grant else "",
        token_name=grant.token_name[:NAME_CHARS] if grant else "",
        address=origin.address[:45],
        request_id=origin.request_id[:64],
        action=action,
        target_kind=about.kind,
        target_id=about.id[:NAME_CHARS],
        target_name=about.name[:NAME_CHARS],
        pipe=pipe,
        before=was,
        after=becomes,
    )


@transaction.atomic
def delete_expired(*, before: datetime, most: int) -> int:
    """Delete the oldest entries from before `before`, `most` at most; return their number.

    The trigger permits it for these entries only, and only in this transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('penstock.audit_before', %s, true)", [before.isoformat()])
        cursor.execute(
            "DELETE FROM mgmt_auditentry WHERE id IN "
            "(SELECT id FROM mgmt_auditentry WHERE at < %s ORDER BY at LIMIT %s)",
            [before, most],
        )
        deleted: int = cursor.rowcount
        cursor.execute("SELECT set_config('penstock.audit_before', '', true)")
    return deleted


def _actor_kind(by: User | None, tenant_id: str) -> ActorKind:
    if by is None:
        return ActorKind.SYSTEM
    if by.grant is not None:
        return ActorKind.TOKEN
    if by.is_staff and not Membership.objects.filter(user=by, tenant_id=tenant_id).exists():
        return ActorKind.STAFF
    return ActorKind.USER


def _difference(
    fields: frozenset[str], before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the changed fields before and after, with bounded values."""
    changed = [name for name in {**before, **after} if name not in before or before[name] != after.get(name, before)]

    def side(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _bounded(values[name]) if name in fields else CHANGED for name in changed if name in values}

    return side(before), side(after)


def _bounded(value: Any) -> Any:
    """Return the value as JSON stores it; a long one as its first characters."""
    text = json.dumps(_without_nul(value), default=_plain, ensure_ascii=False)
    return json.loads(text) if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…"


def _without_nul(value: Any) -> Any:
    """Return the value with U+0000 replaced in all texts: Postgres stores none."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {_without_nul(name): _without_nul(part) for name, part in value.items()}
    return [_without_nul(part) for part in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
