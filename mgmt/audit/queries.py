"""Queries of the audit log for pages and API."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from mgmt.models import AuditEntry, Membership


@dataclass(frozen=True)
class EntryFilter:
    """Filters of a list of entries; an empty one matches all. `until` is excluded."""

    actor: str = ""  # a user name, or "Penstock"
    action: str = ""
    pipe: str = ""
    since: datetime | None = None
    until: datetime | None = None


def audit_entries(tenant_id: str, wanted: EntryFilter) -> QuerySet[AuditEntry]:
    """Return the tenant's entries that match the filters, newest first."""
    rows = AuditEntry.objects.filter(tenant=tenant_id)
    equal = {"actor": wanted.actor, "action": wanted.action, "pipe": wanted.pipe}
    rows = rows.filter(**{name: value for name, value in equal.items() if value})
    if wanted.since:
        rows = rows.filter(at__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(at__lt=wanted.until)
    return rows.select_related("pipe").order_by("-at", "-id")


def older_than(rows: QuerySet[AuditEntry], mark: tuple[datetime, str] | None) -> QuerySet[AuditEntry]:
    """Return the entries after the one with this time and id, in the order of the list; all without a mark."""
    if mark is None:
        return rows
    at, id_ = mark
    return rows.filter(Q(at__lt=at) | Q(at=at, id__lt=id_))


def member_names(tenant_id: str) -> list[str]:
    """Return the user names of the tenant's members, in order."""
    names = Membership.objects.filter(tenant=tenant_id).values_list("user__username", flat=True)
    return sorted(names)
