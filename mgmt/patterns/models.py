"""Models of usual behaviour: hourly figures of pipes and fields, and the findings of what was unusual."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe


class PatternHour(models.Model):
    """One hour of one pipe in twelve blocks (mgmt.patterns.blocks.PatternBlock). Kept for 29 days.

    A block in which the pipe's cell was not fully observed is null.
    The pipe is named by id, as in the Observer's other rows.
    """

    pipe_id = models.CharField(max_length=32)
    hour = models.IntegerField(help_text="Hours since the epoch.")
    blocks = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipe_id", "hour"], name="one_row_per_pipe_and_hour")]
        indexes = [models.Index(fields=["hour"], name="oldest_hours")]


class FieldSample(models.Model):
    """One writer's sample of a source's fields in a block (dataplane.ledger.fields). Kept for two hours."""

    pipe_id = models.CharField(max_length=32)
    source = models.CharField(max_length=40)
    block = models.IntegerField()
    sample = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["block", "pipe_id"], name="samples_of_a_block")]


class FieldHour(models.Model):
    """Shares of a source's fields in one hour (mgmt.patterns.shares.FieldShares). Kept as long as PatternHour."""

    pipe_id = models.CharField(max_length=32)
    source = models.CharField(max_length=40)
    hour = models.IntegerField(help_text="Hours since the epoch.")
    shares = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe_id", "source", "hour"], name="one_row_per_source_and_hour")
        ]
        indexes = [models.Index(fields=["hour"], name="oldest_field_hours")]


class NumberState(models.Model):
    """State in which a source's numeric fields are watched: {path: mgmt.patterns.numbers.NumberWatch}.

    `block` is the newest one with which it changed. Kept for 29 days from then.
    """

    pipe_id = models.CharField(max_length=32)
    source = models.CharField(max_length=40)
    block = models.IntegerField()
    watches = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipe_id", "source"], name="one_state_of_numbers_per_source")]
        indexes = [models.Index(fields=["block"], name="oldest_states_of_numbers")]


class IgnoredField(models.Model):
    """Numeric field of a source whose drift opens no alert."""

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("field"), editable=False)
    pipe = models.ForeignKey(Pipe, models.CASCADE, related_name="ignored_fields")
    source = models.CharField(max_length=40)
    path = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipe", "source", "path"], name="ignored_field_once_per_source")]

    def __str__(self) -> str:
        return f"{self.path} of source {self.source}"


class PatternMark(models.Model):
    """Newest block for which every pipe was judged; a pipe that already has a block is skipped in a repeated run."""

    block = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(models.Value(1), name="one_pattern_mark")]


class Finding(models.Model):
    """One unusual pattern of a pipe: a note on its page, not an alert.

    `watch` is the state that one judgement leaves for the next block: a mgmt.patterns.judge.PatternStreak, or one per
    field for kinds of fields. A finding without `told_at` was seen once, or is explained by `silenced`.
    """

    class Kind(models.TextChoices):
        QUIET = "quiet"
        BUSY = "busy"
        FAILING = "failing"
        SLOW = "slow"
        MISSING = "missing"
        NEW = "new"
        TYPE = "type"
        SKEW = "skew"

    pipe = models.ForeignKey(Pipe, models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=7, choices=Kind)
    since = models.DateTimeField(help_text="When its first block began.")
    words = models.CharField(max_length=200, help_text="The last measured figure and the usual range, in words.")
    silenced = models.CharField(
        max_length=200, blank=True, help_text="The change that explains it; empty if none does."
    )
    told_at = models.DateTimeField(null=True, help_text="When it had lasted long enough to be reported.")
    ended_at = models.DateTimeField(null=True)
    watch = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe", "kind"], condition=Q(ended_at=None), name="one_open_finding_per_pattern"
            ),
        ]
        indexes = [models.Index(fields=["pipe", "-since"], name="findings_of_a_pipe")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"
