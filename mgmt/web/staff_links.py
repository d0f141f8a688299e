"""Links of staff pages to rows of tenants."""

from dataclasses import dataclass

from django.urls import reverse

from mgmt.models import User
from mgmt.web import access


@dataclass(frozen=True)
class StaffLinks:
    """Links for one viewer: members of the tenant get the console's page, other staff the admin's.

    tenants: ids of the viewer's tenants
    """

    tenants: frozenset[str]

    def to_pipe(self, pipe_id: str, tenant_id: str) -> str:
        """Return the link to a pipe."""
        return reverse("console:pipe" if tenant_id in self.tenants else "admin:mgmt_pipe_change", args=[pipe_id])

    def to_alert(self, alert_id: str, pipe_id: str, tenant_id: str) -> str:
        """Return the link to an alert."""
        if tenant_id in self.tenants:
            return reverse("console:alert", args=[pipe_id, alert_id])
        return reverse("admin:mgmt_alert_change", args=[alert_id])

    def to_minute(self, pipe_id: str, bucket: int, tenant_id: str) -> str:
        """Return the link to a minute of a pipe; other staff than members get the pipe."""
        if tenant_id in self.tenants:
            return reverse("console:minute", args=[pipe_id, bucket])
        return reverse("admin:mgmt_pipe_change", args=[pipe_id])


def staff_links(viewer: User) -> StaffLinks:
    """Return the links for a viewer; one query."""
    return StaffLinks(frozenset(access.tenants_of(viewer).values_list("id", flat=True)))
