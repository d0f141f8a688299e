"""What pipes took of the machine, by day."""

from django.db import models

from mgmt.models.pipes import Pipe


class Usage(models.Model):
    """What one pipe took of one kind of process of a cell on one day, in UTC; without a pipe, what none took.

    The Observer adds to it in the transaction of its offset. All cpu_us of a cell, kind and day together are the CPU of
    these processes; `units` and `size_bytes` are those of dataplane.ledger.usage.PipeUsage. Ingest serves all cells:
    cell "". The pipe's row is not asked for: what was spent stays spent.
    """

    pipe = models.ForeignKey(Pipe, models.DO_NOTHING, null=True, db_constraint=False, related_name="+", db_index=False)
    day = models.DateField()
    cell = models.CharField(max_length=20, blank=True)
    kind = models.CharField(max_length=16)
    units = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    cpu_us = models.BigIntegerField()
    refused = models.BigIntegerField(
        default=0, db_default=0, help_text="Events of ingest that were over the tenant's quota."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe", "day", "cell", "kind"], name="one_usage_a_day", nulls_distinct=False
            ),
        ]
        indexes = [models.Index(fields=["day"], name="usage_by_day")]

    def __str__(self) -> str:
        return f"{self.pipe_id or 'nobody'} {self.day} {self.cell}/{self.kind}"
