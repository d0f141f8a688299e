"""Quotas of tenants and their current use."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Count, Max, QuerySet, Sum
from django.db.models.functions import Now

from dataplane.names import INGEST_GROUP
from dataplane.tables.quotas import KINDS, QuotaKind, Quotas, limits_of
from mgmt.expiry import unexpired
from mgmt.lookups.queries.feeds import table_sources_in
from mgmt.models import (
    ApiKey,
    ControlAction,
    Destination,
    Heartbeat,
    Pipe,
    Subject,
    SubjectVersion,
    Tenant,
    TenantQuota,
    Usage,
)
from mgmt.tail import seats

FRESH: Final = timedelta(seconds=5)
SET_QUOTA: Final = "set-quota"  # action name in the control audit


@dataclass(frozen=True)
class QuotaLine:
    """One limit of a tenant. `own`: staff set it for this tenant; `used`: None for limits that are not counts."""

    kind: QuotaKind
    limit: int
    own: bool
    used: int | None

    @property
    def share(self) -> float | None:
        """Used part of the limit (0 to 1); None if it is not counted."""
        return self.used / self.limit if self.used is not None and self.limit else None

    @property
    def is_tight(self) -> bool:
        """True if at least 90 % is used."""
        return self.share is not None and self.share >= 0.9


@dataclass(frozen=True)
class TenantLine:
    """Tenant in the list for staff. `refused`: events refused over its quota, today and yesterday."""

    tenant: Tenant
    quotas: Quotas
    own: int
    pipes: int
    events_per_s: int
    refused: int


def quotas_for(tenant_id: str) -> Quotas:
    """Return the limits that apply to a tenant."""
    return limits_of(settings.PENSTOCK_QUOTAS, _own(tenant_id))


def quota_lines(tenant: Tenant, now: datetime) -> list[QuotaLine]:
    """Return every quota of a tenant with its current use."""
    own, used = _own(tenant.id), used_by(tenant.id, now)
    quotas = limits_of(settings.PENSTOCK_QUOTAS, own)
    return [QuotaLine(kind, getattr(quotas, name), name in own, used.get(name)) for name, kind in KINDS.items()]


def used_by(tenant_id: str, now: datetime) -> dict[str, int]:
    """Return a tenant's current use of the countable quotas. Live tails are counted in this process only."""
    events, size_bytes = admitted_rates(now).get(tenant_id, (0.0, 0.0))
    topics = topics_of(tenant_id)
    return {
        "events_per_s": round(events),
        "bytes_per_s": round(size_bytes),
        "pipes": open_pipes(tenant_id).count(),
        "destinations_per_pipe": _most_destinations(tenant_id),
        "topics": len(topics),
        "partitions": sum(topics),
        "api_keys": live_keys(tenant_id).count(),
        "live_tails": seats().open_by(tenant_id),
        "subjects": subjects_in(tenant_id).count(),
        "schema_versions": schema_versions_in(tenant_id).count(),
        "table_sources": table_sources_in(tenant_id),
    }


def open_pipes(tenant_id: str) -> QuerySet[Pipe]:
    """Return the pipes that count towards the quota: those that are not closed."""
    return Pipe.objects.filter(tenant_id=tenant_id).exclude(state=Pipe.State.CLOSED)


def live_keys(tenant_id: str) -> QuerySet[ApiKey]:
    """Return the API keys that count towards the quota: those that are neither revoked nor expired."""
    return ApiKey.objects.filter(unexpired(Now()), source__pipe__tenant_id=tenant_id, revoked_at=None)


def subjects_in(tenant_id: str) -> QuerySet[Subject]:
    """Return the subjects that count towards the quota: all, because none is ever deleted."""
    return Subject.objects.filter(tenant_id=tenant_id)


def schema_versions_in(tenant_id: str) -> QuerySet[SubjectVersion]:
    """Return the versions that count towards the quota: those of all subjects."""
    return SubjectVersion.objects.filter(subject__tenant_id=tenant_id)


def topics_of(tenant_id: str, *, but: str = "") -> list[int]:
    """Return the number of partitions of each topic destination, of all pipes except the pipe with the id `but`."""
    rows = Destination.objects.filter(pipe__tenant_id=tenant_id, config__type="topic").exclude(pipe_id=but)
    kept = rows.exclude(state=Destination.State.REMOVED).values_list("config__partitions", flat=True)
    return [int(partitions or 0) for partitions in kept]


def admitted_rates(now: datetime) -> Mapping[str, tuple[float, float]]:
    """Return the events and bytes per second that ingest admits, by tenant.

    Ingest replicas do not report rates far below a tenant's quota.
    """
    beats = Heartbeat.objects.filter(kind=INGEST_GROUP, at__gte=now - FRESH).values_list("body__taken", flat=True)
    sums: dict[str, tuple[float, float]] = {}
    for taken in beats:
        for tenant, (events, size_bytes) in (taken or {}).items():
            known = sums.get(tenant, (0.0, 0.0))
            sums[tenant] = known[0] + events, known[1] + size_bytes
    return sums


def tenant_lines(now: datetime) -> list[TenantLine]:
    """Return all tenants, those with most refused events first."""
    own = dict(TenantQuota.objects.values_list("tenant_id", "limits"))
    counted = Pipe.objects.exclude(state=Pipe.State.CLOSED).order_by().values("tenant_id")
    pipes = dict(counted.annotate(n=Count("id")).values_list("tenant_id", "n"))
    refused, taken = recently_refused(now), admitted_rates(now)
    lines = [
        TenantLine(
            tenant,
            limits_of(settings.PENSTOCK_QUOTAS, own.get(tenant.id, {})),
            len(own.get(tenant.id, {})),
            pipes.get(tenant.id, 0),
            round(taken.get(tenant.id, (0.0, 0.0))[0]),
            refused.get(tenant.id, 0),
        )
        for tenant in Tenant.objects.all()
    ]
    return sorted(lines, key=lambda line: (-line.refused, -line.own, line.tenant.name))


def recently_refused(now: datetime) -> dict[str, int]:
    """Return the number of events refused over the quota today and yesterday, by tenant."""
    rows = Usage.objects.filter(day__gte=now.date() - timedelta(days=1), refused__gt=0)
    sums = rows.order_by().values("pipe__tenant_id").annotate(n=Sum("refused"))
    return dict(sums.values_list("pipe__tenant_id", "n"))


def changes_of_quota(tenant: Tenant) -> QuerySet[ControlAction]:
    """Return the changes of a tenant's quotas from the control audit, newest first."""
    rows = ControlAction.objects.filter(action=SET_QUOTA, detail__tenant=tenant.id)
    return rows.select_related("author").order_by("-id")


def _own(tenant_id: str) -> dict[str, int]:
    limits = TenantQuota.objects.filter(tenant=tenant_id).values_list("limits", flat=True).first()
    return {name: limit for name, limit in (limits or {}).items() if name in KINDS}


def _most_destinations(tenant_id: str) -> int:
    rows = Destination.objects.filter(pipe__tenant_id=tenant_id).exclude(state=Destination.State.REMOVED)
    counts = rows.exclude(pipe__state=Pipe.State.CLOSED).order_by().values("pipe").annotate(n=Count("id"))
    return int(counts.aggregate(most=Max("n"))["most"] or 0)
