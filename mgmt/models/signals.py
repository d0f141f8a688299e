"""What lanes last said of destinations: written by the Observer, read by pages. Losing a row costs nobody a message."""

from django.db import models


class LaneSignal(models.Model):
    """One lane's view of one destination (dataplane.tables.signals.Signal). Told when it changes, so it may be old."""

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40)
    writer = models.CharField(max_length=80)
    at = models.DateTimeField()
    breaker = models.CharField(max_length=9)
    until = models.DateTimeField(null=True, help_text="While the breaker is open: when the first probe may be sent.")
    reason = models.CharField(max_length=200, blank=True)
    slow = models.BooleanField(default=False, help_text="Well but slow: the slow lane sends to it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe_id", "destination", "writer"], name="one_view_per_lane"),
        ]
        indexes = [models.Index(fields=["at"], name="views_by_age")]

    def __str__(self) -> str:
        return f"{self.writer} of {self.destination}: {self.breaker}"
