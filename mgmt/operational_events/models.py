"""Model of operational events that are not published yet."""

from django.db import models
from django.utils import timezone

from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Tenant


class OperationalEvent(models.Model):
    """Operational event, stored in the transaction of its change and deleted once it is on its topic.

    Every row is due, so none is missed, however late its transaction commits (docs/decisions/0314).
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("evt"), editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", db_index=False)
    pipe = models.ForeignKey(Pipe, models.CASCADE, related_name="+", db_index=False)
    pipe_name = models.CharField(max_length=80, help_text="Name of the pipe at that time.")
    type = models.CharField(max_length=60)
    at = models.DateTimeField(default=timezone.now)
    data = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["at", "id"], name="operational_events_in_order")]

    def __str__(self) -> str:
        return f"{self.type} of {self.pipe_name}"
