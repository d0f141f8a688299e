"""Model of capacity test results."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.cells.models.cells import Cell


class CapacityResult(models.Model):
    """Throughput of one unit (an ingest replica, a process lane or a transmit lane) in one run of `rate_traffic`.

    `per_s` is the rate that the unit sustained for a whole step, all traffic of the cell included. It is valid for the
    release and the Spark master of the measurement, and for events like those of the test.
    """

    class Group(models.TextChoices):
        INGEST = "ingest"
        PROCESS = "process"
        TRANSMIT = "transmit"

    cell = models.ForeignKey(Cell, models.PROTECT, related_name="ratings")
    master = models.CharField(max_length=200, help_text="Spark master URL of the cell.")
    release = models.CharField(max_length=16, blank=True, help_text="Release that its application ran.")
    group = models.CharField(max_length=8, choices=Group)
    units = models.PositiveSmallIntegerField(help_text="Number of units in the group.")
    per_s = models.FloatField(help_text="Events per second that one unit sustained.")
    at_least = models.BooleanField(help_text="True if another group was the limit: a unit may sustain more.")
    cpu_us = models.FloatField(help_text="CPU time per event in this group, in microseconds.")
    bottleneck = models.CharField(max_length=300, help_text="The bottleneck of the cell, in words.")
    batch = models.PositiveSmallIntegerField(help_text="Events per request.")
    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")

    class Meta:
        db_table = "mgmt_rating"
        constraints = [
            models.UniqueConstraint(fields=["cell", "group", "at"], name="one_rating_per_group_and_run"),
            models.CheckConstraint(condition=Q(per_s__gt=0) & Q(units__gte=1), name="a_rating_is_of_units_that_took"),
        ]

    def __str__(self) -> str:
        return f"{self.cell_id}/{self.group}: {self.per_s:.0f}/s"
