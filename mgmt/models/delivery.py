"""What did not go out: dead letters and held messages by their place in Kafka, and moves that bring them back.

The messages themselves stay in their topics; rows say where. The Observer adds places in the transaction that moves
its offset, a move takes them out in the transaction that makes it: so no place is ever in two moves at once.
"""

from django.conf import settings
from django.db import models

from mgmt.models.ids import id_maker
from mgmt.models.pipes import Pipe


class Listed(models.Model):
    """One message that did not go out, and where its record lies; its body stays in the topic.

    Of a storm only the first ones of each hour are listed (controlplane.observer.ended), counted for each value of
    `HEAP`; all of them are in OffsetSet.
    """

    HEAP: tuple[str, ...] = ("pipe_id", "destination")

    pipe_id = models.CharField(max_length=32)
    destination = models.CharField(max_length=40, blank=True, help_text="Empty if it died before one was chosen.")
    message_id = models.CharField(max_length=64)
    key = models.CharField(max_length=200, blank=True)
    position = models.BigIntegerField()
    child = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(help_text="When it was stored here.")
    topic = models.CharField(max_length=120)
    partition = models.PositiveIntegerField()
    offset = models.BigIntegerField()
    move = models.ForeignKey(
        "Move", models.SET_NULL, null=True, blank=True, related_name="+", help_text="What brought it back."
    )

    class Meta:
        abstract = True


class DeadLetter(Listed):
    """One message that ended, and why it died."""

    HEAP = ("pipe_id", "destination", "cause")

    node = models.CharField(max_length=60)
    cause = models.CharField(max_length=40)
    detail = models.CharField(max_length=300, blank=True)
    answer = models.CharField(max_length=2_100, blank=True, help_text="Status line and beginning of the answer.")
    bucket = models.IntegerField(help_text="Minutes since the epoch.")
    revision = models.PositiveIntegerField()
    attempts = models.PositiveIntegerField(help_text="Rounds of global retry before it ended.")

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


class HeldMessage(Listed):
    """One message that is kept until its destination is sent to again, or somebody chooses it."""

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
    """The places of one hour's messages of one destination that are held, or dead for one cause, and not moved yet.

    Kafka's own append times decide the hour, so within a partition offsets and times have one order; `marks` has the
    first offset of each minute. Emptied sets are deleted.
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
    seen = models.PositiveIntegerField(help_text="How many there ever were, moved ones too.")
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


class Move(models.Model):
    """Bringing held (release) or dead (redrive) messages of one destination back into transmit, in order.

    running -> done; running -> aborting -> aborted. `offsets` are the places it took, `reached` how far each of them is
    done; what an aborted move has not reached goes back to where it was.
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
    chosen = models.JSONField(help_text="The filter it was made with.")
    taken = models.JSONField(help_text="[[cause, hour, {place: offsets}], ...]: what goes back if it is aborted.")
    total = models.PositiveIntegerField()
    moved = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    reached = models.JSONField(default=dict)
    error = models.CharField(max_length=300, blank=True)
    rate_per_s = models.FloatField()
    alert = models.ForeignKey("Alert", models.SET_NULL, null=True, blank=True, related_name="moves")
    probe = models.BooleanField(default=False, help_text="One message, to see whether the destination takes it.")
    through = models.BooleanField(default=False, help_text="What is released goes out although others stay held.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["pipe", "destination", "state"], name="moves_under_way")]

    def __str__(self) -> str:
        return f"{self.what} of {self.total} to {self.destination}: {self.state}"
