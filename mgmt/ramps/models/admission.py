"""Model of an admission: a new pipe admits a growing share of its keys; messages of other keys are held."""

from django.conf import settings
from django.db import models

from mgmt.pipes.models import Pipe


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
