"""Queries of operational events: which pipes want those of a tenant."""

from django.db.models import QuerySet

from mgmt.models import Pipe, PipeRevision


def receiving_pipes(tenant_id: str, *, but: str) -> QuerySet[Pipe]:
    """Return the tenant's open pipes with a source of type penstock in a revision that is live or to come.

    but: id of a pipe to leave out
    """
    revisions = PipeRevision.objects.filter(
        has_penstock_source=True, state__in=PipeRevision.IN_USE, pipe__tenant_id=tenant_id
    )
    rows = Pipe.objects.filter(id__in=revisions.values("pipe_id"))
    return rows.exclude(id=but).exclude(state=Pipe.State.CLOSED)
