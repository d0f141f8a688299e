"""Models of ramps and admissions.

A new revision takes growing shares of the keys while the stable revision takes the rest; a new pipe admits a growing
share of its keys while messages of other keys are held.
"""

from django.conf import settings
from django.db import models

from mgmt.pipes.models import Pipe, PipeRevision


class Ramp(models.Model):
    """Ramp of one revision, from the first share of the keys to all of them or to a rollback.

    `share` only grows while the ramp is in progress; `outcome` says how it ended. After a rollback, `stable` also runs
    the messages that the revision had already been given.
    """

    class Outcome(models.TextChoices):
        UNDER_WAY = ""
        LIVE = "live"
        ROLLED_BACK = "rolled back"
        OVERTAKEN = "overtaken"  # by a newer revision: as if rolled back

    revision = models.OneToOneField(PipeRevision, models.PROTECT, primary_key=True, related_name="ramp")
    stable = models.ForeignKey(
        PipeRevision, models.PROTECT, related_name="+", help_text="Revision for comparison and for a rollback."
    )
    share = models.PositiveSmallIntegerField(help_text="Percent of the keys that it takes.")
    began_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True, help_text="When a person held it at this share.")
    held_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="+",
        help_text="Empty if it ended automatically.",
    )
    outcome = models.CharField(max_length=11, choices=Outcome, default=Outcome.UNDER_WAY, blank=True)
    reason = models.CharField(max_length=300, blank=True, help_text="Why it was rolled back, in words.")

    def __str__(self) -> str:
        return f"{self.revision_id} at {self.share} %"


class RampStep(models.Model):
    """One step of a ramp: its share, its period and the figures at its end (mgmt.ramps.queries.RampFigures).

    `figures`: {"ramping": {...}, "stable": {...}}; empty while the step lasts, and for a step that was not judged.
    """

    ramp = models.ForeignKey(Ramp, models.CASCADE, related_name="steps")
    share = models.PositiveSmallIntegerField()
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    figures = models.JSONField(default=dict)

    class Meta:
        ordering = ["began_at", "share"]
        constraints = [models.UniqueConstraint(fields=["ramp", "share"], name="one_step_per_share")]

    def __str__(self) -> str:
        return f"{self.share} %"


class Admission(models.Model):
    """Admission of one pipe, from the first share of its keys to all of them. A pipe without a row admits all keys.

    It belongs to the pipe, not to a revision: the live revision, whichever it is, runs the admitted messages. `share`
    is lowered automatically when too many admitted messages fail; the admission is then held until a person resumes
    it.
    """

    pipe = models.OneToOneField(Pipe, models.CASCADE, primary_key=True, related_name="admission")
    expected_per_s = models.PositiveIntegerField(help_text="Events per second that the creator of the pipe expects.")
    share = models.PositiveSmallIntegerField(help_text="Percent of the keys that are admitted.")
    step_at = models.DateTimeField(null=True, help_text="When this step began; empty until the first message arrives.")
    held_at = models.DateTimeField(null=True, help_text="When it was held at this share; empty if it is not held.")
    held_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="+",
        help_text="Empty if it was held automatically.",
    )
    reason = models.CharField(max_length=300, blank=True, help_text="What it waits for, or why the share was lowered.")
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.pipe_id} at {self.share} %"
