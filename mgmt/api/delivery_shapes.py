"""What goes in and out about delivery: states, credentials, dead letters, moves, alerts, channels."""

from typing import Any

from rest_framework import serializers

from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import NAME, DestinationOut, PageOut
from mgmt.models import Alert, AlertChannel, Move, OffsetSet
from mgmt.services.moves import MOST_IDS, MOST_RATE_PER_S, RATE_PER_S

# -- in


class ChosenIn(StrictSerializer):
    """Which messages: what is left out lets everything pass. Times in whole minutes, `since` <= time < `until`."""

    destination = serializers.RegexField(NAME)
    kind = serializers.ChoiceField(OffsetSet.Kind.choices, default=OffsetSet.Kind.DEAD)
    cause = serializers.CharField(required=False, max_length=40, default="")
    since = serializers.DateTimeField(required=False, allow_null=True, default=None)
    until = serializers.DateTimeField(required=False, allow_null=True, default=None)
    key = serializers.CharField(required=False, max_length=200, default="")
    ids = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        max_length=MOST_IDS,
        default=list,
        help_text="Message ids (webhook-id). Not of held messages where order is kept: choose a key there.",
    )


class MoveIn(ChosenIn):
    """A move to be made."""

    rate_per_s = serializers.FloatField(
        required=False, default=RATE_PER_S, min_value=0.01, max_value=MOST_RATE_PER_S, help_text="At most so many."
    )


class SnoozeIn(StrictSerializer):
    """How long an alert is put aside."""

    until = serializers.DateTimeField(help_text="At most 30 days from now.")


class ChannelIn(StrictSerializer):
    """Where alerts are told."""

    kind = serializers.ChoiceField(AlertChannel.Kind.choices)
    target = serializers.CharField(max_length=2_000, help_text="A mail address or a URL.")


# -- out


class WaitingOut(serializers.Serializer[Any]):
    """Dead letters of one cause that can be redriven."""

    cause = serializers.CharField()
    count = serializers.IntegerField()
    oldest = serializers.DateTimeField()


class MoveOut(serializers.Serializer[Any]):
    """A move, and how far it has come."""

    id = serializers.CharField()
    destination = serializers.CharField()
    what = serializers.ChoiceField(Move.What.choices)
    state = serializers.ChoiceField(Move.State.choices)
    chosen = serializers.DictField()
    total = serializers.IntegerField()
    moved = serializers.IntegerField()
    skipped = serializers.IntegerField(help_text="Gone from the topic, or unreadable.")
    rate_per_s = serializers.FloatField()
    probe = serializers.BooleanField()
    error = serializers.CharField(help_text="What it waits for, in words.")
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class StandingOut(serializers.Serializer[Any]):
    """Whether a destination is sent anything, and what waits for it."""

    destination = DestinationOut()
    holds = serializers.BooleanField(help_text="Its messages are held: it, or its pipe, is paused or suspended.")
    held = serializers.IntegerField()
    held_since = serializers.DateTimeField(allow_null=True)
    dead = WaitingOut(many=True)
    moves = MoveOut(many=True, help_text="Under way.")


class PreviewOut(serializers.Serializer[Any]):
    """What a move would take now: the oldest `most` of `count`."""

    count = serializers.IntegerField()
    causes = serializers.DictField(child=serializers.IntegerField())
    oldest = serializers.DateTimeField(allow_null=True)
    newest = serializers.DateTimeField(allow_null=True)
    unready = serializers.IntegerField(help_text="Died in a step, before they were ready to be sent: not taken.")
    most = serializers.IntegerField()


class LetterOut(serializers.Serializer[Any]):
    """A dead letter: why it ended. Its body is in the topic until that drops it."""

    id = serializers.IntegerField()
    destination = serializers.CharField()
    node = serializers.CharField()
    cause = serializers.CharField()
    detail = serializers.CharField()
    answer = serializers.CharField(help_text="Status and beginning of the answer, secrets masked.")
    message_id = serializers.CharField()
    key = serializers.CharField()
    revision = serializers.IntegerField()
    attempts = serializers.IntegerField()
    at = serializers.DateTimeField()
    move = serializers.CharField(source="move_id", allow_null=True, help_text="What brought it back.")


class HeldOut(serializers.Serializer[Any]):
    """A held message. Its body is in the topic until it is released, or the topic drops it."""

    id = serializers.IntegerField()
    destination = serializers.CharField()
    message_id = serializers.CharField()
    key = serializers.CharField()
    at = serializers.DateTimeField(help_text="When it was held.")


class StoredOut(serializers.Serializer[Any]):
    """The message itself, as far as it is shown."""

    headers = serializers.DictField(child=serializers.CharField())
    body = serializers.CharField()
    body_bytes = serializers.IntegerField()


class OneLetterOut(LetterOut):
    """A dead letter with its message; null with a reason if the topic cannot give it."""

    message = StoredOut(allow_null=True)
    message_missing = serializers.CharField()


class AlertOut(serializers.Serializer[Any]):
    """An alert: one for each destination and cause, however many messages it met."""

    id = serializers.CharField()
    pipe = serializers.CharField(source="pipe_id")
    destination = serializers.CharField()
    cause = serializers.CharField()
    suspended = serializers.BooleanField()
    state = serializers.ChoiceField(Alert.State.choices)
    opened_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    count = serializers.IntegerField()
    sample = serializers.DictField(help_text="One failure: request, answer, curl; secrets masked.")
    acknowledged_by = serializers.CharField(source="acknowledged_by.username", allow_null=True, default=None)
    snoozed_until = serializers.DateTimeField(allow_null=True)
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolution = serializers.CharField()
    probe = serializers.ChoiceField(Alert.Probe.choices)
    probe_says = serializers.CharField()


class ChannelOut(serializers.Serializer[Any]):
    """A notification channel of alerts."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(AlertChannel.Kind.choices)
    target = serializers.CharField()
    is_active = serializers.BooleanField(
        help_text="False for an e-mail address that is not confirmed: it gets no alerts."
    )
    confirmed_at = serializers.DateTimeField(
        allow_null=True, help_text="null for webhooks, which need no confirmation."
    )
    confirmation_asked_at = serializers.DateTimeField(
        allow_null=True, help_text="When the newest confirmation mail was asked for."
    )
    created_at = serializers.DateTimeField()


class NewChannelOut(ChannelOut):
    """A channel just made. A webhook's `secret` is shown this once; it is empty for mail."""

    secret = serializers.CharField()


class LetterPageOut(PageOut):
    """A page of dead letters, newest first."""

    results = LetterOut(many=True)


class HeldPageOut(PageOut):
    """A page of held messages, newest first."""

    results = HeldOut(many=True)


class MovePageOut(PageOut):
    """A page of moves, newest first."""

    results = MoveOut(many=True)


class AlertPageOut(PageOut):
    """A page of alerts, newest first."""

    results = AlertOut(many=True)
