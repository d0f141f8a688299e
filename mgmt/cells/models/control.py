"""Models that coordinate the controllers: leases, pauses, verdicts, ticks and the control audit."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.cells.models.cells import Cell
from mgmt.pipes.models import Pipe


class Controller(models.TextChoices):
    """Controllers that change cells; at most one of them holds a cell's lease at a time."""

    PROVISION = "provision", "provisioning"
    DEPLOY = "deploy", "deploying"
    SCALE = "scale", "scaling"


class Lease(models.Model):
    """Lease of one controller on a cell.

    `token` grows with each acquisition and is never issued twice, so the row stays when the lease is released; its
    holder is then empty.
    """

    cell = models.OneToOneField(Cell, models.PROTECT, primary_key=True)
    holder = models.CharField(max_length=9, choices=Controller, blank=True)
    token = models.BigIntegerField(default=0)
    what = models.CharField(max_length=200, blank=True, help_text="The change that the holder makes, in words.")
    taken_at = models.DateTimeField()
    until = models.DateTimeField(help_text="When the lease expires: from then on any controller may acquire it.")

    def __str__(self) -> str:
        return f"{self.cell_id}: {self.holder or 'free'}"


class Pause(models.Model):
    """A person's order that a controller leaves one cell, or all cells, unchanged until it ends or expires."""

    controller = models.CharField(max_length=9, choices=Controller)
    cell = models.ForeignKey(Cell, models.PROTECT, null=True, blank=True, related_name="pauses")
    reason = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True, help_text="Empty: until a person ends it.")
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["controller", "cell"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="one_open_pause_per_controller_and_cell",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_controller_display()} is paused {f'on {self.cell_id}' if self.cell_id else 'everywhere'}"


class CellVerdict(models.Model):
    """The Observer's verdict on a cell: stable, unstable with reasons, or unknown because no heartbeats arrive."""

    class State(models.TextChoices):
        STABLE = "stable"
        UNSTABLE = "unstable"
        UNKNOWN = "unknown"

    cell = models.OneToOneField(Cell, models.PROTECT, primary_key=True, related_name="verdict")
    state = models.CharField(max_length=8, choices=State)
    reasons = models.JSONField(default=list, help_text="Sentences; empty for a stable cell.")
    silenced = models.JSONField(
        default=list, help_text="Reasons that do not count because a change of the cell explains them."
    )
    since = models.DateTimeField(help_text="When the cell entered this state.")
    turning = models.DateTimeField(
        null=True, blank=True, help_text="Since when the measurements have contradicted this state."
    )
    at = models.DateTimeField(help_text="When the cell was last judged.")

    class Meta:
        db_table = "mgmt_verdict"

    def __str__(self) -> str:
        return f"{self.cell_id}: {self.state}"


class TaskRun(models.Model):
    """Time at which a periodic task last completed (its tick).

    The task itself writes the row, so that a missing run is noticed also while Redis, beat or the workers are down.
    """

    task = models.CharField(primary_key=True, max_length=40)
    at = models.DateTimeField()
    said = models.CharField(max_length=300, blank=True, help_text="Result of the run, in words.")

    class Meta:
        db_table = "mgmt_tick"

    def __str__(self) -> str:
        return f"{self.task}: {self.said}"


class ControlAction(models.Model):
    """Entry of the control audit: a change of a cell or pipe, or a refusal. The database makes it append-only."""

    PERSON = "person"
    CONTROLLERS = (*Controller.choices, (PERSON, "a person"))

    at = models.DateTimeField()
    controller = models.CharField(max_length=9, choices=CONTROLLERS)
    cell = models.ForeignKey(Cell, models.PROTECT, null=True, blank=True, related_name="+")
    pipe = models.ForeignKey(Pipe, models.PROTECT, null=True, blank=True, related_name="+")
    action = models.CharField(max_length=40)
    outcome = models.CharField(max_length=20)
    reason = models.CharField(max_length=300, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["cell", "-id"], name="actions_on_a_cell"),
            models.Index(fields=["pipe", "-id"], name="actions_on_a_pipe"),
        ]

    def __str__(self) -> str:
        return f"{self.controller} {self.action}: {self.outcome}"
