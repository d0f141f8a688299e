"""How a new pipe's traffic is let in: by shares of its keys, the rest is held and follows in order."""

from django.conf import settings
from django.db import models

from mgmt.models.pipes import Pipe


class Admission(models.Model):
    """One pipe's way from the first share of its keys to all of them. Pipes without a row take everything.

    It goes by the pipe, not by a revision: whatever revision is live runs what is admitted. `share` falls back by
    itself when what it admits does badly; it is held then, until a person resumes it.
    """

    pipe = models.OneToOneField(Pipe, models.CASCADE, primary_key=True, related_name="admission")
    expected_per_s = models.PositiveIntegerField(help_text="Events a second that its maker expects.")
    share = models.PositiveSmallIntegerField(help_text="Percent of the keys that may pass.")
    step_at = models.DateTimeField(null=True, help_text="Since when this share is tried; empty until traffic comes.")
    held_at = models.DateTimeField(null=True, help_text="Since when it goes no further.")
    held_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", help_text="Nobody: by itself."
    )
    reason = models.CharField(max_length=300, blank=True, help_text="What it waits for, or why it went back.")
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.pipe_id} at {self.share} %"
