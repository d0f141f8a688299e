"""Where the controllers meet: who may change a cell now, who is paused, how each cell is, and what was done to it."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.models.cells import Cell
from mgmt.models.pipes import Pipe


class Controller(models.TextChoices):
    """The controllers that change cells; at most one of them at a time holds a cell's lease."""

    PROVISION = "provision", "provisioning"
    DEPLOY = "deploy", "deploying"
    SCALE = "scale", "scaling"


class Lease(models.Model):
    """Who may change a cell now. `token` grows with each take and is never given twice, so the row stays when the
    lease is given back: its holder is empty then.
    """

    cell = models.OneToOneField(Cell, models.PROTECT, primary_key=True)
    holder = models.CharField(max_length=9, choices=Controller, blank=True)
    token = models.BigIntegerField(default=0)
    what = models.CharField(max_length=200, blank=True, help_text="What the holder does, in words.")
    taken_at = models.DateTimeField()
    until = models.DateTimeField(help_text="From then on anybody may take it.")

    def __str__(self) -> str:
        return f"{self.cell_id}: {self.holder or 'free'}"


class Pause(models.Model):
    """A person keeps a controller from changing a cell, or any cell, until it is ended or its time is over."""

    controller = models.CharField(max_length=9, choices=Controller)
    cell = models.ForeignKey(Cell, models.PROTECT, null=True, blank=True, related_name="pauses")
    reason = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True, help_text="Empty: until somebody ends it.")
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


class Verdict(models.Model):
    """What the Observer makes of a cell: stable, unstable with its reasons, or unknown because nothing is heard."""

    class State(models.TextChoices):
        STABLE = "stable"
        UNSTABLE = "unstable"
        UNKNOWN = "unknown"

    cell = models.OneToOneField(Cell, models.PROTECT, primary_key=True)
    state = models.CharField(max_length=8, choices=State)
    reasons = models.JSONField(default=list, help_text="Sentences; empty for a stable cell.")
    silenced = models.JSONField(default=list, help_text="What would be reasons, were they not caused by a change.")
    since = models.DateTimeField(help_text="When it took this state.")
    turning = models.DateTimeField(null=True, blank=True, help_text="Since when it has looked otherwise.")
    at = models.DateTimeField(help_text="When it was looked at last.")

    def __str__(self) -> str:
        return f"{self.cell_id}: {self.state}"


class Tick(models.Model):
    """When a task that comes again and again was last done to its end. Written by the task itself, so that its silence
    shows while Redis, beat or the workers are gone.
    """

    task = models.CharField(primary_key=True, max_length=40)
    at = models.DateTimeField()
    said = models.CharField(max_length=300, blank=True, help_text="What it did, in words.")

    def __str__(self) -> str:
        return f"{self.task}: {self.said}"


class ControlAction(models.Model):
    """One thing that was done to a cell or a pipe, or refused, and why. The database keeps each as it was written."""

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
