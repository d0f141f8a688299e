"""Models of rejected events: what they have in common, and their number by minute."""

from typing import Final

from django.db import models

from mgmt.pipes.models import Pipe

REJECTIONS_KEPT_D: Final = 3
MOST_OF_TENANT: Final = 300  # kinds of rejections; further ones of a source are counted together
MOST_SAMPLES: Final = 5  # of one kind, the newest


class Rejection(models.Model):
    """Kind of rejected events: one source, event type, reason, place in the event and sender. Kept for three days.

    A tenant has at most MOST_OF_TENANT; the events of all others are counted under the type OTHER of their source and
    reason (dataplane.ledger.rejections). The fields mean what they mean in a RejectionReport.

    samples: [{at_us, size_bytes, body}, ...], the newest last; bodies were masked by ingest
    """

    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="rejections")
    source = models.CharField(max_length=40)
    event_type = models.CharField(max_length=100, blank=True)
    code = models.CharField(max_length=40)
    pointer = models.CharField(max_length=200, blank=True)
    sender = models.CharField(max_length=16)
    detail = models.CharField(max_length=300, blank=True)
    samples = models.JSONField(default=list)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(help_text="Start of the newest minute with a rejected event.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe", "source", "event_type", "code", "pointer", "sender"], name="one_row_per_rejection"
            )
        ]
        indexes = [models.Index(fields=["last_at"], name="rejections_by_age")]

    def __str__(self) -> str:
        return f"{self.code} at {self.pointer or 'the event'} from {self.sender}"


class RejectionMinute(models.Model):
    """Number of rejected events of one kind in one minute, by the clock of ingest."""

    rejection = models.ForeignKey(Rejection, models.CASCADE, related_name="minutes", db_index=False)
    minute = models.IntegerField(help_text="Minutes since the epoch.")
    events = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rejection", "minute"], name="one_count_per_rejection_minute")]
        indexes = [models.Index(fields=["minute"], name="rejections_by_minute")]

    def __str__(self) -> str:
        return f"{self.events} in minute {self.minute}"
