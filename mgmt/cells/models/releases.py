"""Models of releases of the data plane, and of their rollout cell by cell."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Release(models.Model):
    """Immutable build of the data plane, named by the hash of its bytes (controlplane.compute.releases).

    `wire`: the wire format version that it writes. It reads this version and the one before.
    """

    id = models.CharField(primary_key=True, max_length=16)
    for_ingest = models.BooleanField(
        default=False, db_default=False, help_text="True if its ingest replicas report which release they run."
    )
    wire = models.PositiveSmallIntegerField()
    note = models.CharField(max_length=200, blank=True, help_text="Note of the person or program that registered it.")
    registered_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.id


class Rollout(models.Model):
    """Rollout of one release. It ends with the release on all cells or, rolled back, with their former releases."""

    class State(models.TextChoices):
        RUNNING = "running"
        ROLLING_BACK = "rolling back"
        DONE = "done"
        ROLLED_BACK = "rolled back"

    OPEN = (State.RUNNING, State.ROLLING_BACK)

    release = models.ForeignKey(Release, models.PROTECT, related_name="rollouts")
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    why = models.CharField(max_length=300, blank=True, help_text="Why it is rolled back.")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty if a program requested it.",
    )
    is_repair = models.BooleanField(
        default=False, db_default=False, help_text="True if it also replaces the release of unstable cells."
    )
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                models.Value(1), condition=Q(state__in=["running", "rolling back"]), name="one_open_rollout"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.release_id} {self.state}"


class RolloutStep(models.Model):
    """One step of a rollout, in the order of `number`: that of a cell, of ingest's first replica, or of all replicas.

    The first cell is the canary, and the first replica is that of ingest (`is_canary`).

    before, found: the cell's health before it was touched and since its lanes came up (controlplane.deployer.snapshot)
    lanes:         {writer: [pids]} of the newest application: more than one pid of a writer means a crash
    token:         token of the lease under which the cell is changed
    is_canary:     True if only the first replica of ingest gets the release
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        STARTING = "starting"
        WATCHING = "watching"
        DONE = "done"
        RETURNING = "returning"
        RETURNED = "returned"

    rollout = models.ForeignKey(Rollout, models.CASCADE, related_name="steps")
    number = models.PositiveSmallIntegerField()
    cell = models.ForeignKey("mgmt.Cell", models.PROTECT, related_name="rollout_steps")
    is_canary = models.BooleanField(default=False, db_default=False)
    came_from = models.ForeignKey(
        Release, models.PROTECT, related_name="+", help_text="Release that the cell had before."
    )
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    why = models.CharField(max_length=300, blank=True, help_text="What the step waits for.")
    token = models.BigIntegerField(default=0)
    began_at = models.DateTimeField(null=True, blank=True, help_text="When the cell got the release.")
    touched_at = models.DateTimeField(null=True, blank=True)
    up_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    before = models.JSONField(default=dict)
    found = models.JSONField(default=dict)
    lanes = models.JSONField(default=dict)

    class Meta:
        ordering = ("number",)
        constraints = [
            models.UniqueConstraint(fields=["rollout", "cell", "is_canary"], name="one_step_per_cell"),
            models.UniqueConstraint(fields=["rollout", "number"], name="one_step_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.place} {self.state}"

    @property
    def place(self) -> str:
        """Return where the release runs after this step, for people."""
        return first_replica_of(self.cell_id) if self.is_canary else self.cell_id


def first_replica_of(group: str) -> str:
    """Return the name of the group's canary, for people."""
    return f"{group} (first replica)"
