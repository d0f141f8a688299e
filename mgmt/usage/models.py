"""Model of the usage of each pipe by day."""

from django.db import models

from mgmt.pipes.models import Pipe


class Usage(models.Model):
    """Usage of one pipe in one kind of process of a cell on one UTC day; without a pipe, usage by no pipe.

    The Observer adds to it in the transaction that advances its offset. The sum of cpu_us over a cell, kind and day is
    the CPU time of these processes; `units` and `size_bytes` are those of dataplane.ledger.usage.PipeUsage. Ingest
    serves all cells and has the cell "". There is no foreign key constraint: usage outlives its pipe.
    """

    pipe = models.ForeignKey(Pipe, models.DO_NOTHING, null=True, db_constraint=False, related_name="+", db_index=False)
    day = models.DateField()
    cell = models.CharField(max_length=20, blank=True)
    kind = models.CharField(max_length=16)
    units = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    cpu_us = models.BigIntegerField()
    refused = models.BigIntegerField(
        default=0, db_default=0, help_text="Events that ingest refused because of the tenant's quota."
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
