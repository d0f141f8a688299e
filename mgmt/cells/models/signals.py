"""Model of lanes' newest signals: written by the Observer, read by pages. A lost row loses no message."""

from django.db import models


class LaneSignal(models.Model):
    """One lane's newest signal about one destination (dataplane.tables.signals.DestinationSignal).

    Lanes report changes only, so the row may be old.
    """

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40)
    writer = models.CharField(max_length=80)
    at = models.DateTimeField()
    breaker = models.CharField(max_length=9)
    until = models.DateTimeField(
        null=True, help_text="While the breaker is open: the earliest time of the first probe."
    )
    reason = models.CharField(max_length=200, blank=True)
    slow = models.BooleanField(default=False, help_text="True if it is healthy but slow: the slow lane sends to it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe_id", "destination", "writer"], name="one_view_per_lane"),
        ]
        indexes = [models.Index(fields=["at"], name="views_by_age")]

    def __str__(self) -> str:
        return f"{self.writer} of {self.destination}: {self.breaker}"
