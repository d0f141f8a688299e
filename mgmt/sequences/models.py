"""Model of the places where the sequence of a key is broken."""

from typing import Final

from django.db import models

from dataplane.ledger.facts import GAP, OUT_OF_ORDER, REPEATED
from mgmt.pipes.models import Pipe

BREAKS_KEPT_D: Final = 7
MOST_OF_KIND: Final = 500  # rows of a pipe, the newest; the ledger counts all


class SequenceBreakRow(models.Model):
    """One event that does not follow the earlier ones of its key (dataplane.ledger.sequence_breaks.SequenceBreak).

    A pipe has at most MOST_OF_KIND rows of each kind, kept for seven days.

    ranges: [[first, last], ...] of the missing numbers
    is_tracked: False for a gap that numbers no longer close
    """

    class Kind(models.TextChoices):
        """Kind of break."""

        GAP = GAP, "Gap"
        OUT_OF_ORDER = OUT_OF_ORDER, "Out of order"
        REPEATED = REPEATED, "Repeated"

    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="sequence_breaks", db_index=False)
    revision = models.PositiveIntegerField(help_text="As stamped at ingest.")
    source = models.CharField(max_length=40)
    key = models.CharField(max_length=256)
    kind = models.CharField(max_length=12, choices=Kind)
    bucket = models.IntegerField(help_text="Minutes since the epoch, as stamped at ingest.")
    position = models.BigIntegerField()
    at = models.DateTimeField(help_text="Ingest time of the event.")
    is_clock = models.BooleanField(help_text="The numbers are clocks of TimeUuids, in microseconds since 1970.")
    number = models.BigIntegerField()
    previous = models.BigIntegerField(help_text="The highest earlier number of the key.")
    missing = models.BigIntegerField(help_text="Of a gap, how many numbers have not arrived so far.")
    ranges = models.JSONField(default=list)
    is_tracked = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe", "position", "kind"], name="one_row_per_sequence_break"),
        ]
        indexes = [
            models.Index(fields=["pipe", "bucket"], name="sequence_breaks_by_minute"),
            models.Index(fields=["at"], name="sequence_breaks_by_age"),
            models.Index(fields=["at"], condition=models.Q(kind=GAP, missing__gt=0), name="open_gaps_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.number} of {self.key}"
