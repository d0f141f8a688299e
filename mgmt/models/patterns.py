"""What pipes did at each hour, to know what is usual of them, and what was unusual."""

from django.db import models
from django.db.models import Q

from mgmt.models.pipes import Pipe


class PatternHour(models.Model):
    """One hour of one pipe in twelve blocks (mgmt.patterns.blocks.Block); null where nobody listened. Kept for 29 days.

    The pipe is named by id, as in the Observer's other rows.
    """

    pipe_id = models.CharField(max_length=32)
    hour = models.IntegerField(help_text="Hours since the epoch.")
    blocks = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipe_id", "hour"], name="one_row_per_pipe_and_hour")]
        indexes = [models.Index(fields=["hour"], name="oldest_hours")]


class FieldSample(models.Model):
    """What one writer saw of a source's fields in a block (dataplane.ledger.fields). Kept for two hours."""

    pipe_id = models.CharField(max_length=32)
    source = models.CharField(max_length=40)
    block = models.IntegerField()
    sample = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["block", "pipe_id"], name="samples_of_a_block")]


class FieldHour(models.Model):
    """The shares of a source's fields in one hour (mgmt.patterns.shares.FieldHour). Kept as long as PatternHour."""

    pipe_id = models.CharField(max_length=32)
    source = models.CharField(max_length=40)
    hour = models.IntegerField(help_text="Hours since the epoch.")
    shares = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe_id", "source", "hour"], name="one_row_per_source_and_hour")
        ]
        indexes = [models.Index(fields=["hour"], name="oldest_field_hours")]


class PatternMark(models.Model):
    """The newest block that every pipe was judged by; who already has a block is passed over if it comes again."""

    block = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(models.Value(1), name="one_pattern_mark")]


class Finding(models.Model):
    """One unusual pattern of a pipe: a note on its page, no alert.

    `watch` is what judging leaves to the next block: a mgmt.patterns.judge.Watch, of fields one by field. A
    finding that is not told was seen once, or is explained by what `silenced` says.
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
    since = models.DateTimeField(help_text="When the first block of it began.")
    words = models.CharField(max_length=200, help_text="What was seen last, and what is usual.")
    silenced = models.CharField(max_length=200, blank=True, help_text="What explains it; empty if nothing does.")
    told_at = models.DateTimeField(null=True, help_text="When it had lasted long enough to be told.")
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
