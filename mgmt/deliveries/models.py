"""Models of undelivered messages: dead letters and held messages by offset in Kafka, and the jobs that return them.

The messages themselves stay in their topics; rows hold their offsets. The Observer adds offsets in the transaction that
advances its own position, and a release or redrive removes them in the transaction that creates it: so no offset is
ever in two of these jobs at once.
"""

from django.conf import settings
from django.db import models

from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe


class ListedMessage(models.Model):
    """One undelivered message, with the topic, partition and offset of its record; its body stays in the topic.

    Of many failures only the first of each hour are listed (controlplane.observer.failure_groups), counted separately
    for each combination of the `HEAP` fields; OffsetSet contains all of them.
    """

    HEAP: tuple[str, ...] = ("pipe_id", "destination")

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40, blank=True, help_text="Empty if it ended before the route chose one.")
    message_id = models.CharField(max_length=64)
    key = models.CharField(max_length=200, blank=True)
    position = models.BigIntegerField()
    child = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(help_text="When the record was stored in Kafka.")
    topic = models.CharField(max_length=120)
    partition = models.PositiveIntegerField()
    offset = models.BigIntegerField()
    move = models.ForeignKey(
        "Redrive",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Release or redrive that took it.",
    )

    class Meta:
        abstract = True


class DeadLetter(ListedMessage):
    """Dead letter: a message that ended without delivery, with its node and cause."""

    HEAP = ("pipe_id", "destination", "cause")

    node = models.CharField(max_length=60)
    cause = models.CharField(max_length=40)
    detail = models.CharField(max_length=300, blank=True)
    answer = models.CharField(max_length=2_100, blank=True, help_text="Status line and beginning of the response.")
    bucket = models.IntegerField(help_text="Minutes since the epoch.")
    revision = models.PositiveIntegerField()
    attempts = models.PositiveIntegerField(help_text="Global retries before it ended.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "partition", "offset"], name="dead_letter_stored_once"),
        ]
        indexes = [
            models.Index(fields=["pipe_id", "-id"], name="dead_letters_of_a_pipe"),
            models.Index(fields=["pipe_id", "destination", "cause", "-id"], name="dead_letters_by_cause"),
            models.Index(fields=["pipe_id", "message_id"], name="dead_letters_by_message"),
            models.Index(fields=["at"], name="dead_letters_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} at {self.node}: {self.cause}"


class HeldMessage(ListedMessage):
    """Message on the `held` topic: it waits until its destination is active again, or until a person releases it."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "partition", "offset"], name="held_message_stored_once"),
        ]
        indexes = [
            models.Index(fields=["pipe_id", "destination", "-id"], name="held_messages_of_a_pipe"),
            models.Index(fields=["pipe_id", "message_id"], name="held_messages_by_message"),
            models.Index(fields=["at"], name="held_messages_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} for {self.destination}"


class OffsetSet(models.Model):
    """Offsets of one hour's messages of one destination that are held, or dead for one cause.

    A release or redrive takes them out of the set.

    Kafka's append time decides the hour, so that offsets and times have the same order within a partition; `marks` has
    the first offset of each minute. Empty sets are deleted.
    """

    class Kind(models.TextChoices):
        DEAD = "dead"
        HELD = "held"

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40)
    kind = models.CharField(max_length=4, choices=Kind)
    cause = models.CharField(max_length=40, blank=True)
    topic = models.CharField(max_length=120)
    partition = models.PositiveIntegerField()
    hour = models.IntegerField(help_text="Hours since the epoch.")
    offsets = models.BinaryField(help_text="Serialized 64-bit roaring bitmap.")
    count = models.PositiveIntegerField()
    seen = models.PositiveIntegerField(help_text="Offsets ever added, including those taken since.")
    marks = models.JSONField(help_text="[[minute of the hour, its first offset], ...]")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe_id", "destination", "kind", "cause", "topic", "partition", "hour"],
                name="one_set_of_places_per_hour",
            ),
        ]
        indexes = [models.Index(fields=["hour"], name="sets_of_places_by_age")]

    def __str__(self) -> str:
        return f"{self.count} {self.kind} for {self.destination}"


class Redrive(models.Model):
    """Return of held (release) or dead (redrive) messages of one destination to transmit, in order.

    running -> done; running -> aborting -> aborted. `taken` has the offsets that it took from OffsetSet, `reached` the
    next offset to handle of each partition. Offsets that an aborted job has not reached are put back into OffsetSet.
    """

    class What(models.TextChoices):
        RELEASE = "release"
        REDRIVE = "redrive"

    class State(models.TextChoices):
        RUNNING = "running"
        ABORTING = "aborting"
        ABORTED = "aborted"
        DONE = "done"

    UNDER_WAY = (State.RUNNING, State.ABORTING)

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("move"), editable=False)
    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="moves")
    destination = models.CharField(max_length=40)
    what = models.CharField(max_length=7, choices=What)
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    chosen = models.JSONField(help_text="The selection of messages that it was created with.")
    taken = models.JSONField(help_text="[[cause, hour, marks, {partition: offsets}], ...]: put back if it is aborted.")
    total = models.PositiveIntegerField()
    moved = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    reached = models.JSONField(default=dict)
    error = models.CharField(max_length=300, blank=True)
    rate_per_s = models.FloatField()
    alert = models.ForeignKey("Alert", models.SET_NULL, null=True, blank=True, related_name="moves")
    probe = models.BooleanField(
        default=False, help_text="True for a probe: one message, to test whether the destination works."
    )
    through = models.BooleanField(
        default=False, help_text="True if these messages are sent although their destination stays held."
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "mgmt_move"
        indexes = [models.Index(fields=["pipe", "destination", "state"], name="moves_under_way")]

    def __str__(self) -> str:
        return f"{self.what} of {self.total} to {self.destination}: {self.state}"


class DestinationHealth(models.Model):
    """Health of one destination at the last check, with its undelivered messages (mgmt.deliveries.health).

    Only destinations that had failures or waiting messages have a row. `waiting_minutes`: [[bucket, messages], ...]
    of the oldest minutes with messages that wait for transmit or a retry; `waiting` counts them in all minutes.
    """

    destination = models.OneToOneField("Destination", models.CASCADE, primary_key=True, related_name="health")
    checked_at = models.DateTimeField()
    delivered = models.PositiveIntegerField(default=0, help_text="Messages delivered in the last minutes.")
    failed = models.PositiveIntegerField(default=0, help_text="Failed attempts of the last minutes.")
    waiting = models.PositiveIntegerField(default=0)
    waiting_minutes = models.JSONField(default=list)
    oldest_at = models.DateTimeField(null=True, help_text="Minute of the oldest waiting message; empty if none waits.")
    failing_since = models.DateTimeField(null=True)
    failing_well_since = models.DateTimeField(null=True, help_text="While it is failing: attempts succeed since then.")
    delayed_since = models.DateTimeField(null=True)
    delayed_well_since = models.DateTimeField(null=True, help_text="While it is delayed: no message waits long.")

    def __str__(self) -> str:
        return f"{self.destination_id}: {self.failed} failed, {self.waiting} waiting"
