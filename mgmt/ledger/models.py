"""Models of the ledger, which the Observer writes: facts, lags, progress, seals and attempts.

Pipes and cells are named by id, without foreign keys, so that a checkpoint can be stored whatever else happened to its
pipe.

One Observer owns an audit partition; each row belongs to one partition, and queries merge the rows. Tables that grow
with each minute of a pipe are partitioned by day (controlplane.observer.days) and have only their natural key.
"""

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from dataplane.names import REPLAY_ID_PREFIX


class AuditOffset(models.Model):
    """The Observer's position in an audit partition; advanced in the transaction that stores the records it read."""

    topic = models.CharField(max_length=120)
    partition = models.PositiveIntegerField()
    next_offset = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["topic", "partition"], name="one_audit_offset_per_partition")]


class ReportRun(models.Model):
    """Last audit record counted of one run of a writer, so that a repeated record adds no lags and no usage.

    Written in the transaction that stores the records. The row of an ended run is deleted after a day.
    """

    pk = models.CompositePrimaryKey("audit_partition", "cell", "writer", "run")
    audit_partition = models.PositiveIntegerField()
    cell = models.CharField(max_length=20, blank=True, help_text='"" for reports about no cell.')
    writer = models.CharField(max_length=60)
    run = models.CharField(max_length=40)
    sequence = models.BigIntegerField(help_text="Sequence number of the last record that was counted.")
    at = models.DateTimeField()


class FactRow(models.Model):
    """Set of units with one fact (dataplane.ledger.audit.FactSet); `pipe_id` may be a replay, whose copies it counts.

    Queries over all pipes filter by OF_PIPES.
    """

    OF_PIPES = ~Q(pipe_id__startswith=REPLAY_ID_PREFIX)  # dataplane.names.is_replay

    pk = models.CompositePrimaryKey("pipe_id", "bucket", "node", "fact", "detail", "child", "audit_partition")
    pipe_id = models.CharField(max_length=32)
    bucket = models.IntegerField(help_text="Minutes since the epoch.")
    node = models.CharField(max_length=60)
    fact = models.CharField(max_length=10)
    detail = models.CharField(max_length=60, blank=True)
    child = models.PositiveIntegerField(default=0)
    audit_partition = models.PositiveIntegerField()
    positions = models.BinaryField(help_text="Serialized 64-bit roaring bitmap.")
    count = models.PositiveIntegerField()

    class Meta:
        indexes = [
            BrinIndex(fields=["bucket"], name="facts_by_minute", autosummarize=True),
            models.Index(
                fields=["pipe_id", "bucket"],
                condition=models.Q(fact__in=["parked", "held", "redriven"]),
                name="facts_of_waiting_units",
            ),
        ]


class LagRow(models.Model):
    """Timing of the messages of one (pipe, bucket) that left one node, merged from audit records.

    Rows from lanes of an earlier release have no `own`, and their `lag_in` and `lag_out` are of different messages.
    """

    pk = models.CompositePrimaryKey("pipe_id", "bucket", "node", "audit_partition")
    pipe_id = models.CharField(max_length=32)
    bucket = models.IntegerField()
    node = models.CharField(max_length=60)
    audit_partition = models.PositiveIntegerField()
    lag_in = models.BinaryField(null=True, help_text="Sketch of lags on arrival.")
    lag_out = models.BinaryField(null=True, help_text="Sketch of lags on departure.")
    own = models.BinaryField(null=True, help_text="Sketch of the time between the two, message by message.")
    breakdown = models.BinaryField(null=True, help_text="Breakdown of the time of messages that the node delivered.")

    class Meta:
        indexes = [BrinIndex(fields=["bucket"], name="lags_by_minute", autosummarize=True)]


class HighOffset(models.Model):
    """Highest offset in a topic partition that carries a unit of the bucket; lanes pass the bucket by settling it."""

    pk = models.CompositePrimaryKey("pipe_id", "bucket", "topic", "partition")
    pipe_id = models.CharField(max_length=32)
    bucket = models.IntegerField()
    topic = models.CharField(max_length=120)
    partition = models.PositiveIntegerField()
    offset = models.BigIntegerField()

    class Meta:
        db_table = "mgmt_reach"


class SettledOffset(models.Model):
    """Settled prefix of a topic partition: its lanes have settled every offset below `offset`."""

    topic = models.CharField(max_length=120)
    partition = models.PositiveIntegerField()
    offset = models.BigIntegerField()

    class Meta:
        db_table = "mgmt_passed"
        constraints = [models.UniqueConstraint(fields=["topic", "partition"], name="one_mark_per_partition")]


class Seal(models.Model):
    """The final account of one pipe's bucket. Never updated; facts that arrive afterwards are counted as late.

    `bins`: {destination: {bin: count}}; `nodes`: [{node, arrived, lost}] in order of travel.
    """

    pk = models.CompositePrimaryKey("pipe_id", "bucket")
    pipe_id = models.CharField(max_length=32)
    bucket = models.IntegerField()
    sealed_at = models.DateTimeField()
    accepted = models.PositiveIntegerField()
    unacked = models.PositiveIntegerField()
    lost = models.PositiveIntegerField()
    bins = models.JSONField()
    nodes = models.JSONField()

    class Meta:
        indexes = [
            BrinIndex(fields=["bucket"], name="seals_by_minute", autosummarize=True),
            models.Index(fields=["-bucket"], condition=Q(lost__gt=0), name="lossy_seals_by_minute"),
            models.Index(fields=["pipe_id", "bucket"], condition=Q(lost__gt=0), name="seals_with_losses"),
        ]


class PipeRollup(models.Model):
    """Sums of one pipe over a block of minutes (controlplane.observer.rollups); pipes without facts in it have no row.

    The sums are those of mgmt.ledger.queries.minute_sums. Lags are those of messages delivered, from the time of the
    event; they are stored as dataplane.ledger.sketch.PackedSketch.
    """

    pk = models.CompositePrimaryKey("pipe_id", "length", "bucket")
    pipe_id = models.CharField(max_length=32)
    length = models.PositiveSmallIntegerField(help_text="Minutes of the block.")
    bucket = models.IntegerField(help_text="First bucket of the block, a multiple of its length.")
    is_final = models.BooleanField(default=False, help_text="The sums are complete; false again after a late fact.")
    version = models.PositiveIntegerField(default=0, help_text="Number of times that late facts arrived.")
    checked_at = models.DateTimeField(null=True, help_text="Last time at which the block could not be added up.")
    accepted = models.BigIntegerField(default=0)
    delivered = models.BigIntegerField(default=0)
    undelivered = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0)
    lag_keys = models.BinaryField(null=True)
    lag_counts = models.BinaryField(null=True)
    lag_min = models.BigIntegerField(null=True)
    lag_max = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["length", "checked_at"], condition=models.Q(is_final=False), name="open_rollups"),
        ]


class RollupMark(models.Model):
    """The minutes that the rollup covers: from `since` (included) to `until` (excluded). One row.

    A transaction that stores facts holds a key share lock on the row, so that it is not moved past these facts.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    since = models.IntegerField()
    until = models.IntegerField()


class LedgerDay(models.Model):
    """A day of the ledger. It is closed when each of its buckets is sealed, and opened again by new facts."""

    day = models.DateField(primary_key=True)
    closed_at = models.DateTimeField(null=True)


class PartitionWatch(models.Model):
    """Last check of a busy pipe for a hot partition (mgmt.alerts.hot_partitions). Deleted when it is not busy."""

    pipe_id = models.CharField(primary_key=True, max_length=32)
    checked_at = models.DateTimeField()
    counts = models.JSONField(default=dict, help_text="{bucket: [events on each partition]} of the last minutes.")
    partition = models.PositiveIntegerField(null=True, help_text="The fullest one; empty if too few events arrived.")
    lag = models.BigIntegerField(default=0, help_text="Records of that partition that no lane had settled.")
    suspect_since = models.DateTimeField(null=True, help_text="It has been hot and harmful since then.")
    hot_since = models.DateTimeField(null=True, help_text="Time at which the alert was due.")
    well_since = models.DateTimeField(null=True, help_text="While the alert is open: all is well since then.")

    def __str__(self) -> str:
        return f"{self.pipe_id}: partition {self.partition}"


class CloseMark(models.Model):
    """End offsets of a cell's ingest topics at a time when no unit of the bucket could arrive any more.

    `ends`: [[topic, partition, offset]]
    """

    cell = models.CharField(max_length=20)
    bucket = models.IntegerField()
    ends = models.JSONField()
    noted_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cell", "bucket"], name="bucket_closed_once_per_cell")]


class LateCount(models.Model):
    """Number of units that gained a fact after their bucket was sealed; FactRow has the facts themselves."""

    pipe_id = models.CharField(max_length=32)
    bucket = models.IntegerField()
    node = models.CharField(max_length=60)
    fact = models.CharField(max_length=10)
    count = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe_id", "bucket", "node", "fact"], name="one_late_count_per_fact"),
        ]


class AttemptCount(models.Model):
    """Messages that a destination accepted, and attempts that failed and are retried, by minute of the attempt.

    DeliveryAttempt has only a sample of the successes, and facts have the minute of the event.
    """

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40)
    minute = models.IntegerField(help_text="Minutes since the epoch.")
    delivered = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pipe_id", "destination", "minute"], name="one_attempt_count_a_minute"),
        ]
        indexes = [models.Index(fields=["minute"], name="attempt_counts_by_minute")]

    def __str__(self) -> str:
        return f"{self.destination} {self.minute}: {self.delivered} delivered, {self.failed} failed"


class DeliveryAttempt(models.Model):
    """One attempt: all failed ones, and a sample of the successful (dataplane.ledger.audit.AttemptRecord)."""

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40)
    message_id = models.CharField(max_length=64)
    position = models.BigIntegerField()
    revision = models.PositiveIntegerField()
    bucket = models.IntegerField()
    number = models.PositiveIntegerField()
    at = models.DateTimeField()
    status = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10)
    reason = models.CharField(max_length=200, blank=True)
    address = models.CharField(max_length=64, blank=True)
    timing_us = models.JSONField(help_text="{dns, connect, tls, first_byte, total}")
    next_at = models.DateTimeField(null=True)
    gives_up_at = models.DateTimeField(null=True)
    answer = models.CharField(
        max_length=512, blank=True, help_text="The beginning of the response, with secrets masked."
    )

    class Meta:
        db_table = "mgmt_attempt"
        indexes = [
            models.Index(fields=["pipe_id", "-at"], name="latest_attempts_of_a_pipe"),
            models.Index(fields=["pipe_id", "destination", "outcome", "-at"], name="latest_outcomes"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["pipe_id", "destination", "position", "number", "at"], name="attempt_stored_once"
            ),
        ]
