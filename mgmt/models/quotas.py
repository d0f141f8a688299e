"""Limits of a tenant's own, where staff have set any."""

from django.conf import settings
from django.db import models

from mgmt.models.tenancy import Tenant


class TenantQuota(models.Model):
    """A tenant's own limits, by kind (dataplane.tables.quotas). Kinds that `limits` leaves out have the default.

    A tenant without a row has the defaults. Every change is in the audit (`set-quota`).
    """

    tenant = models.OneToOneField(Tenant, models.CASCADE, primary_key=True, related_name="quota")
    limits = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"quota of {self.tenant_id}"
