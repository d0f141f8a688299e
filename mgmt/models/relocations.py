"""How a pipe is moved from one cell to another, under traffic."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.models.cells import Cell
from mgmt.models.pipes import Pipe


class Relocation(models.Model):
    """One way of a pipe from `source` to `target`; a pipe has one under way at most.

    requested -> draining, when the pipe's record names the target: new events go there from then on
              -> given up, when it cannot be switched, or nobody wants it any more
    draining  -> done, when nothing of the pipe is queued on the source
              -> turned back, when the target is unstable: a relocation the other way, `back_of` this one, drains then

    held_at: the target was told to hold what comes, until the source has worked off what has earlier messages of a key
    ends: [[topic, partition, offset], ...] of the source's ingest topic once no request could write there any more
    What is held, dead or parked on the source stays there, so the row stays, too: it says where the pipe has been.
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
    reason = models.CharField(max_length=300, help_text="Why it is moved.")
    says = models.CharField(max_length=300, blank=True, help_text="What it waits for, or how it ended.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    asked_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True, help_text="Since when the target holds what comes, to keep its order.")
    switched_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True, help_text="When every ingest replica had the switch.")
    ends = models.JSONField(default=list)
    finished_at = models.DateTimeField(null=True)
    back_of = models.OneToOneField("self", models.PROTECT, null=True, related_name="way_back")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe"], condition=Q(state__in=["requested", "draining"]), name="one_relocation_under_way"
            ),
        ]
        indexes = [models.Index(fields=["pipe", "switched_at"], name="cells_a_pipe_has_left")]

    def __str__(self) -> str:
        return f"{self.pipe_id} from {self.source_id} to {self.target_id}: {self.state}"
