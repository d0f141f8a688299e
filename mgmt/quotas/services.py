"""Services of quotas: set a tenant's quotas, and refuse writes that would exceed them.

A service that creates a counted row locks the tenant's row until its transaction ends (`hold_tenant`), so that
concurrent calls cannot exceed the limit together.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import F

from dataplane.spec import PipeSpec, SpecError, TableSource, TopicDestination
from dataplane.tables.quotas import KINDS, QuotaError, checked_limits
from mgmt.audit.services import record
from mgmt.cells.services.control import note
from mgmt.errors import InvalidValue, QuotaExceededError
from mgmt.lookups.queries.feeds import table_sources_in
from mgmt.models import ControlAction, Tenant, TenantQuota, User
from mgmt.quotas.queries import (
    SET_QUOTA,
    live_keys,
    open_pipes,
    quotas_for,
    schema_versions_in,
    subjects_in,
    topics_of,
)

LONGEST: Final = 200
log = structlog.get_logger(__name__)


@transaction.atomic
def set_quota(*, tenant: Tenant, limits: Mapping[str, int | None], reason: str, by: User, now: datetime) -> TenantQuota:
    """Set limits of a tenant by kind; None resets one to the default. Other limits are unchanged.

    The data plane gets the change with the next control record. Existing rows stay, also above a lower limit.
    Raises InvalidValue, naming the kind.
    """
    reason = reason.strip()
    if not 1 <= len(reason) <= LONGEST:
        raise InvalidValue("reason", f"needs 1 to {LONGEST} characters; the control audit shows it")
    try:
        given = checked_limits(limits)
    except QuotaError as exc:
        raise InvalidValue(exc.kind, exc.reason) from exc
    hold_tenant(tenant.id)
    row, _ = TenantQuota.objects.get_or_create(
        tenant=tenant, defaults={"changed_at": now, "changed_by": by, "version": 0}
    )
    before = dict(row.limits)
    kept = {name: limit for name, limit in before.items() if name not in limits}
    TenantQuota.objects.filter(tenant=tenant).update(
        limits=kept | given, version=F("version") + 1, changed_at=now, changed_by=by
    )
    row.refresh_from_db()
    detail = {"tenant": tenant.id, "before": before, "after": row.limits}
    words = f"{tenant.name}: {_difference(before, row.limits)}. {reason}"
    outcome = ControlAction.Outcome.DONE
    note(ControlAction.PERSON, SET_QUOTA, outcome=outcome, at=now, reason=words, author=by, detail=detail)
    after = {"limits": row.limits, "reason": reason}
    record(tenant=tenant, by=by, action="quota.set", target=tenant, before={"limits": before}, after=after)
    log.info("quota set", by=by.username, **detail)
    return row


def hold_tenant(tenant_id: str) -> None:
    """Lock the tenant's row: until this transaction ends no other one can create counted rows of the tenant."""
    Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)


def check_room_for_pipe(tenant_id: str) -> None:
    """Raise QuotaExceededError if the tenant may not have one more open pipe."""
    limit, used = quotas_for(tenant_id).pipes, open_pipes(tenant_id).count()
    if used >= limit:
        raise QuotaExceededError(
            f"You have {used} of {limit} pipes. Close one, or ask the operator for a higher quota."
        )


def check_room_for_table_sources(tenant_id: str, pipe_id: str, reading: int) -> None:
    """Raise QuotaExceededError if a closed pipe with so many table sources may not be opened again."""
    limit, used = quotas_for(tenant_id).table_sources, table_sources_in(tenant_id, but=pipe_id)
    if reading and used + reading > limit:
        raise QuotaExceededError(
            f"You have {used} of {limit} table sources, and this pipe has {reading}. Ask the operator for more."
        )


def check_room_for_key(tenant_id: str) -> None:
    """Raise QuotaExceededError if the tenant may not have one more API key."""
    limit, used = quotas_for(tenant_id).api_keys, live_keys(tenant_id).count()
    if used >= limit:
        raise QuotaExceededError(
            f"You have {used} of {limit} API keys. Revoke one, or ask the operator for a higher quota."
        )


def check_room_for_subject(tenant_id: str) -> None:
    """Raise QuotaExceededError if the tenant may not have one more subject of the schema registry."""
    limit, used = quotas_for(tenant_id).subjects, subjects_in(tenant_id).count()
    if used >= limit:
        raise QuotaExceededError(f"You have {used} of {limit} subjects. Ask the operator for a higher quota.")


def check_room_for_schema_version(tenant_id: str) -> None:
    """Raise QuotaExceededError if the tenant may not have one more version of a subject."""
    limit, used = quotas_for(tenant_id).schema_versions, schema_versions_in(tenant_id).count()
    if used >= limit:
        raise QuotaExceededError(f"You have {used} of {limit} schema versions. Ask the operator for a higher quota.")


def check_spec_within_quota(tenant_id: str, spec: PipeSpec, pipe_id: str = "") -> None:
    """Raise SpecError if a spec has more destinations, topics or table sources than the tenant may have.

    The caller holds the tenant, so that two specs cannot take the same room.
    `pipe_id`: the pipe whose revision it is; its present topics and table sources are not counted.
    """
    quotas = quotas_for(tenant_id)
    if len(spec.destinations) > quotas.destinations_per_pipe:
        reason = f"needs at most {quotas.destinations_per_pipe}, which is your quota, got {len(spec.destinations)}"
        raise SpecError("$.destinations", reason)
    reading = [name for name, source in spec.sources.items() if isinstance(source, TableSource)]
    if reading and table_sources_in(tenant_id, but=pipe_id) + len(reading) > quotas.table_sources:
        reason = f"is one too many: your quota is {quotas.table_sources} sources of type table"
        raise SpecError(f"$.sources.{reading[-1]}", reason)
    mine = {name: to for name, to in spec.destinations.items() if isinstance(to, TopicDestination)}
    if not mine:
        return
    others, last = topics_of(tenant_id, but=pipe_id), next(reversed(mine))
    if len(others) + len(mine) > quotas.topics:
        reason = f"is one too many: your quota is {quotas.topics} destinations of type topic"
        raise SpecError(f"$.destinations.{last}", reason)
    if sum(others) + sum(to.partitions for to in mine.values()) > quotas.partitions:
        reason = f"is one too many: your quota is {quotas.partitions} partitions of topics"
        raise SpecError(f"$.destinations.{last}.partitions", reason)


def _difference(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    changed = [name for name in KINDS if before.get(name) != after.get(name)]
    words = [f"{name} {before.get(name, 'default')} to {after.get(name, 'default')}" for name in changed]
    return ", ".join(words) or "nothing changed"
