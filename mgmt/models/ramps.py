"""How a revision of a pipe with traffic comes live: by shares of its keys, beside the revision it is to replace."""

from django.conf import settings
from django.db import models

from mgmt.models.pipes import PipeRevision


class Ramp(models.Model):
    """One revision's way from the first share of the keys to all of them, or back.

    `share` only grows while the ramp is under way. When it is over `outcome` says how: what a rolled back revision had
    been given already is from then on run by `stable`.
    """

    class Outcome(models.TextChoices):
        UNDER_WAY = ""
        LIVE = "live"
        ROLLED_BACK = "rolled back"
        OVERTAKEN = "overtaken"  # by a newer revision: as if rolled back

    revision = models.OneToOneField(PipeRevision, models.PROTECT, primary_key=True, related_name="ramp")
    stable = models.ForeignKey(
        PipeRevision, models.PROTECT, related_name="+", help_text="Compared with, and gone back to."
    )
    share = models.PositiveSmallIntegerField(help_text="Percent of the keys that it takes.")
    began_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True, help_text="Since when a person lets it go no further.")
    held_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", help_text="Nobody: by itself."
    )
    outcome = models.CharField(max_length=11, choices=Outcome, default=Outcome.UNDER_WAY, blank=True)
    reason = models.CharField(max_length=300, blank=True, help_text="Why it went back, in words.")

    def __str__(self) -> str:
        return f"{self.revision_id} at {self.share} %"


class RampStep(models.Model):
    """One share of a ramp, from when to when, and the figures on which it was left (mgmt.queries.ramps.Figures).

    `figures`: {"ramping": {...}, "stable": {...}}; empty while the step lasts, and for one nobody judged.
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
