"""Model of a tenant's quotas that staff have set."""

from django.conf import settings
from django.db import models

from mgmt.tenancy.models import Tenant


class TenantQuota(models.Model):
    """Limits of one tenant by kind (dataplane.tables.quotas). Kinds that `limits` leaves out have the default.

    A tenant without a row has the defaults. The control audit has every change (`set-quota`).
    """

    tenant = models.OneToOneField(Tenant, models.CASCADE, primary_key=True, related_name="quota")
    limits = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"quota of {self.tenant_id}"
