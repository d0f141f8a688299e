"""What a unit of a group was measured to take, by a load test on a cell."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.models.cells import Cell


class Rating(models.Model):
    """What one unit of one group took in one run of `rate_traffic`: an ingest replica, a process or a transmit lane.

    `per_s` is what was kept up with for as long as a step lasts, all that came counted. It holds for the release and
    the Spark master that it was measured with, and for events like those that were sent.
    """

    class Group(models.TextChoices):
        INGEST = "ingest"
        PROCESS = "process"
        TRANSMIT = "transmit"

    cell = models.ForeignKey(Cell, models.PROTECT, related_name="ratings")
    master = models.CharField(max_length=200, help_text="Where Spark ran the cell.")
    release = models.CharField(max_length=16, blank=True, help_text="The build that its application ran.")
    group = models.CharField(max_length=8, choices=Group)
    units = models.PositiveSmallIntegerField(help_text="How many there were.")
    per_s = models.FloatField(help_text="Events a second that one unit took.")
    at_least = models.BooleanField(help_text="Something else was the limit: a unit may take more.")
    cpu_us = models.FloatField(help_text="CPU of one event in this group, in microseconds.")
    bottleneck = models.CharField(max_length=300, help_text="What kept more from passing, in words.")
    batch = models.PositiveSmallIntegerField(help_text="Events in a request.")
    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cell", "group", "at"], name="one_rating_per_group_and_run"),
            models.CheckConstraint(condition=Q(per_s__gt=0) & Q(units__gte=1), name="a_rating_is_of_units_that_took"),
        ]

    def __str__(self) -> str:
        return f"{self.cell_id}/{self.group}: {self.per_s:.0f}/s"
