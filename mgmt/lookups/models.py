"""Models of look-up tables and their rows. The control plane publishes each version above the last published one."""

from django.db import models
from django.db.models import Q

from mgmt.ids import id_maker
from mgmt.tenancy.models import Tenant


class LookupTable(models.Model):
    """Look-up table that pipes of its tenant refer to by name.

    `version` grows by one for each row that is written, under the lock of this row, so that each row has its own
    version and versions become visible in order. `sent_version`: the rows up to this version are on the topic.
    `published_version`: the table's own record is there as well. Only the publisher writes both; they refer to the
    topic `published_to`.
    """

    class State(models.TextChoices):
        LIVE = "live"
        REMOVED = "removed"

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("tab"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="lookup_tables")
    name = models.CharField(max_length=40)
    state = models.CharField(max_length=7, choices=State, default=State.LIVE)
    row_count = models.PositiveIntegerField(default=0)
    version = models.BigIntegerField(default=1)
    sent_version = models.BigIntegerField(default=0)
    published_version = models.BigIntegerField(default=0)
    published_to = models.CharField(max_length=40, blank=True, help_text="Kafka's topic id.")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=Q(state="live"), name="lookup_table_name_once_per_tenant"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def progress(self) -> str:
        """`publishing` until all stored rows and the table's record are on the topic, then `live`."""
        return "live" if self.published_version >= self.version else "publishing"


class LookupRow(models.Model):
    """One row of a table by its key: a JSON object as text; null after its removal."""

    table = models.ForeignKey(LookupTable, models.CASCADE, related_name="rows")
    key = models.CharField(max_length=400)
    version = models.BigIntegerField()
    row = models.TextField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["table", "key"], name="one_row_per_key"),
            models.UniqueConstraint(fields=["table", "version"], name="one_row_per_version"),
        ]

    def __str__(self) -> str:
        return f"{self.table_id}/{self.key}"
