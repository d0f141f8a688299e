"""Models that coordinate the controllers: leases, pauses, verdicts, ticks and the control audit."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

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
    kinds = models.JSONField(default=list, db_default=[], help_text="Kinds of the reasons, the most severe first.")
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
    """Last run of a periodic task (its tick).

    The task itself writes the row, so that a missing run is noticed also while Redis, beat or the workers are down. A
    run that failed leaves `at` unchanged: a task that only fails is overdue.
    """

    class Outcome(models.TextChoices):
        CHANGED = "changed"
        NOTHING = "nothing", "nothing to do"
        WAITING = "waiting"  # for Kafka
        FAILED = "failed"

    task = models.CharField(primary_key=True, max_length=40)
    at = models.DateTimeField(help_text="When it last completed.")
    outcome = models.CharField(max_length=7, choices=Outcome, default=Outcome.NOTHING, db_default=Outcome.NOTHING)
    since = models.DateTimeField(
        db_default=Now(), help_text="Time of the first of the runs with this outcome that followed each other."
    )
    said = models.CharField(max_length=300, blank=True, help_text="Result of the run, in words.")

    class Meta:
        db_table = "mgmt_tick"
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__in=["changed", "nothing", "waiting", "failed"]), name="a_run_has_a_known_outcome"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task}: {self.said}"


class ControlAction(models.Model):
    """Entry of the control audit: a change of a cell or pipe, or a refusal. The database makes it append-only."""

    PERSON = "person"
    CONTROLLERS = (*Controller.choices, (PERSON, "a person"))

    class Outcome(models.TextChoices):
        DONE = "done"
        REQUESTED = "requested"
        CANCELLED = "cancelled"
        ROLLED_BACK = "rolled back"
        REFUSED = "refused"
        UNFINISHED = "unfinished"  # the change was written, and the lanes did not follow in time
        FAILED = "failed"

    class Refusal(models.TextChoices):
        PAUSED = "paused", "the controller is paused"
        CELL_BUSY = "cell-busy", "another controller changes the cell"
        CELL_UNSTABLE = "cell-unstable", "the cell is unstable"
        CELL_UNKNOWN = "cell-unknown", "the cell's state is unknown"
        CELL_ASLEEP = "cell-asleep", "the cell is asleep"
        VERDICT_OUTDATED = "verdict-outdated", "the cell has not been judged lately"
        LEASE_LOST = "lease-lost", "another controller took the cell meanwhile"
        OTHER = "other", "the reason has no type"  # entries of earlier releases

    at = models.DateTimeField()
    controller = models.CharField(max_length=9, choices=CONTROLLERS)
    cell = models.ForeignKey(Cell, models.PROTECT, null=True, blank=True, related_name="+")
    pipe = models.ForeignKey(Pipe, models.PROTECT, null=True, blank=True, related_name="+")
    action = models.CharField(max_length=40)
    outcome = models.CharField(max_length=20, choices=Outcome)
    refusal = models.CharField(
        max_length=16, choices=Refusal, blank=True, default="", db_default="", help_text="Type of a refusal's reason."
    )
    reason = models.CharField(max_length=300, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["cell", "-id"], name="actions_on_a_cell"),
            models.Index(fields=["pipe", "-id"], name="actions_on_a_pipe"),
            models.Index(fields=["controller", "-id"], name="actions_of_a_controller"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    outcome__in=["done", "requested", "cancelled", "rolled back", "refused", "unfinished", "failed"]
                ),
                name="an_action_has_a_known_outcome",
            ),
            models.CheckConstraint(
                condition=Q(outcome="refused") & ~Q(refusal="") | ~Q(outcome="refused") & Q(refusal=""),
                name="only_a_refusal_has_a_type_of_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.controller} {self.action}: {self.outcome}"
