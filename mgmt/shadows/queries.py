"""Shadow runs of a pipe."""

from django.db.models import QuerySet

from mgmt.models import Pipe, PipeRevision, Shadow


def shadows_of(pipe: Pipe) -> QuerySet[Shadow]:
    """Return a pipe's runs, newest first."""
    return Shadow.objects.filter(pipe=pipe).select_related("by").order_by("-id")


def shadow_under_way(tenant_id: str) -> Shadow | None:
    """Return the tenant's run that has not ended, with its pipe; a tenant has one at a time."""
    return Shadow.objects.filter(tenant_id=tenant_id, state__in=Shadow.UNDER_WAY).select_related("pipe").first()


def compared_revision(shadow: Shadow) -> PipeRevision:
    """Return the revision that was live when the run began."""
    return PipeRevision.objects.get(pipe=shadow.pipe_id, number=shadow.revision)
