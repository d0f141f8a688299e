"""Model of a migration of a pipe to another cell while traffic continues."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.cells.models.cells import Cell
from mgmt.pipes.models import Pipe


class PipeMigration(models.Model):
    """Migration of a pipe from cell `source` to cell `target`; a pipe has at most one in progress.

    requested -> draining, when the pipe's record names the target: new events are sent there from then on
              -> given up, when the pipe cannot be switched, or a person cancels
    draining  -> done, when no message of the pipe is queued on the source
              -> turned back, when the target is unstable: a migration in reverse, `back_of` this one, then drains

    held_at: since when the target holds the pipe's messages, until the source has settled the earlier ones of each key
    ends: [[topic, partition, offset], ...] of the source's ingest topic, once no request could write there any more
    Held, dead and parked messages stay on the source cell. The row stays as well, as the record of the pipe's cells.
    """

    class State(models.TextChoices):
        REQUESTED = "requested"
        DRAINING = "draining"
        DONE = "done"
        TURNED_BACK = "turned back"
        GIVEN_UP = "given up"

    UNDER_WAY = (State.REQUESTED, State.DRAINING)

    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="relocations")
    source = models.ForeignKey(Cell, models.PROTECT, related_name="left_by")
    target = models.ForeignKey(Cell, models.PROTECT, related_name="+")
    state = models.CharField(max_length=11, choices=State, default=State.REQUESTED)
    reason = models.CharField(max_length=300, help_text="Why the pipe is migrated.")
    says = models.CharField(max_length=300, blank=True, help_text="What it waits for, or how it ended.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    asked_at = models.DateTimeField()
    held_at = models.DateTimeField(
        null=True, help_text="Since when the target holds the pipe's messages, to keep their order."
    )
    switched_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True, help_text="When every ingest replica had applied the switch.")
    ends = models.JSONField(default=list)
    finished_at = models.DateTimeField(null=True)
    back_of = models.OneToOneField("self", models.PROTECT, null=True, related_name="way_back")

    class Meta:
        db_table = "mgmt_relocation"
        constraints = [
            models.UniqueConstraint(
                fields=["pipe"], condition=Q(state__in=["requested", "draining"]), name="one_relocation_under_way"
            ),
        ]
        indexes = [models.Index(fields=["pipe", "switched_at"], name="cells_a_pipe_has_left")]

    def __str__(self) -> str:
        return f"{self.pipe_id} from {self.source_id} to {self.target_id}: {self.state}"
