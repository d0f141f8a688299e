"""Bodies of the API's delivery: states, dead letters, held messages, redrives ("moves"), alerts and channels."""

from typing import Any

from rest_framework import serializers

from mgmt.deliveries.services.redrives import MOST_IDS, MOST_RATE_PER_S, RATE_PER_S
from mgmt.models import Alert, AlertChannel, OffsetSet, Redrive
from mgmt.pipes.serializers import NAME, DestinationOut
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut

# -- in


class ChosenIn(StrictSerializer):
    """Selection of messages; an omitted field matches all. Times are whole minutes: `since` <= time < `until`."""

    destination = serializers.RegexField(
        NAME,
        allow_blank=True,
        help_text="Empty for dead letters that failed in the pipe's steps: they run again through the live revision.",
    )
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
        help_text="Message ids (`webhook-id`). For held messages of an ordered destination, select a `key` instead.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse held messages without a destination: they are released when their pipe is resumed."""
        if attrs["kind"] == OffsetSet.Kind.HELD and not attrs["destination"]:
            raise serializers.ValidationError({"destination": "needs the name of a destination for held messages"})
        return attrs


class MoveIn(ChosenIn):
    """Move to start: a redrive of dead letters, or a release of held messages."""

    rate_per_s = serializers.FloatField(
        required=False,
        default=RATE_PER_S,
        min_value=0.01,
        max_value=MOST_RATE_PER_S,
        help_text="Messages per second, at most.",
    )


class SnoozeIn(StrictSerializer):
    """Time until which an alert is snoozed."""

    until = serializers.DateTimeField(help_text="At most 30 days from now.")


class ChannelIn(StrictSerializer):
    """Notification channel to add."""

    kind = serializers.ChoiceField(AlertChannel.Kind.choices)
    target = serializers.CharField(
        max_length=2_000,
        help_text="An e-mail address, the URL of a webhook or of a chat's incoming webhook, or a PagerDuty key.",
    )


# -- out


class WaitingOut(serializers.Serializer[Any]):
    """Dead letters of one cause that can be redriven."""

    cause = serializers.CharField()
    count = serializers.IntegerField()
    oldest = serializers.DateTimeField()


class MoveOut(serializers.Serializer[Any]):
    """A move (a redrive of dead letters, or a release of held messages) and its progress."""

    id = serializers.CharField()
    destination = serializers.CharField()
    what = serializers.ChoiceField(Redrive.What.choices)
    state = serializers.ChoiceField(Redrive.State.choices)
    chosen = serializers.DictField()
    total = serializers.IntegerField()
    moved = serializers.IntegerField()
    skipped = serializers.IntegerField(help_text="Messages that were no longer on the topic, or could not be read.")
    rate_per_s = serializers.FloatField()
    probe = serializers.BooleanField()
    error = serializers.CharField(help_text="Reason why it waits.")
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class HealthOut(serializers.Serializer[Any]):
    """Health of a destination at the last check."""

    checked_at = serializers.DateTimeField()
    delivered = serializers.IntegerField(help_text="Messages delivered in the last three minutes.")
    failed = serializers.IntegerField(help_text="Attempts of the last three minutes that failed and are retried.")
    waiting = serializers.IntegerField(help_text="Messages that wait for transmit or for a retry.")
    oldest_at = serializers.DateTimeField(
        allow_null=True, help_text="Minute of the oldest waiting message; null if none waits."
    )
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="Time since which most attempts fail; null if they succeed."
    )
    delayed_since = serializers.DateTimeField(
        allow_null=True, help_text="Time since which messages wait for too long although attempts succeed."
    )


class StandingOut(serializers.Serializer[Any]):
    """Delivery state of a destination, with its held messages, dead letters and running moves."""

    destination = DestinationOut()
    holds = serializers.BooleanField(
        help_text="True if its messages are held, because the destination or its pipe is paused or suspended."
    )
    held = serializers.IntegerField()
    held_since = serializers.DateTimeField(allow_null=True)
    dead = WaitingOut(many=True)
    health = HealthOut(allow_null=True, help_text="Null if the destination has had no failure and no waiting message.")
    moves = MoveOut(many=True, help_text="Redrives and releases in progress.")


class PreviewOut(serializers.Serializer[Any]):
    """Messages that match a selection now. A move takes the oldest `most` of `count`."""

    count = serializers.IntegerField()
    causes = serializers.DictField(child=serializers.IntegerField())
    oldest = serializers.DateTimeField(allow_null=True)
    newest = serializers.DateTimeField(allow_null=True)
    unready = serializers.IntegerField(
        help_text="Dead letters that failed in a step and cannot be sent or run again. A move does not include them."
    )
    most = serializers.IntegerField()


class LetterOut(serializers.Serializer[Any]):
    """A dead letter and its cause. Its body is kept for the retention time of the topic."""

    id = serializers.IntegerField()
    destination = serializers.CharField()
    node = serializers.CharField()
    cause = serializers.CharField()
    detail = serializers.CharField()
    answer = serializers.CharField(help_text="Status and beginning of the response, secrets masked.")
    message_id = serializers.CharField()
    key = serializers.CharField()
    revision = serializers.IntegerField()
    attempts = serializers.IntegerField()
    at = serializers.DateTimeField()
    move = serializers.CharField(
        source="move_id", allow_null=True, help_text="Id of the redrive or release that includes it; null if none does."
    )


class HeldOut(serializers.Serializer[Any]):
    """A held message. Its body is kept until it is released, or for the retention time of the topic."""

    id = serializers.IntegerField()
    destination = serializers.CharField()
    message_id = serializers.CharField()
    key = serializers.CharField()
    at = serializers.DateTimeField(help_text="Time at which it was held.")


class StoredOut(serializers.Serializer[Any]):
    """A stored message; a long body is cut."""

    headers = serializers.DictField(child=serializers.CharField())
    body = serializers.CharField()
    body_bytes = serializers.IntegerField()


class OneLetterOut(LetterOut):
    """A dead letter with its message, or null and the reason if the message cannot be read."""

    message = StoredOut(allow_null=True)
    message_missing = serializers.CharField()


class AlertOut(serializers.Serializer[Any]):
    """An alert. There is one per destination, cause, status and response, with a count of the failures."""

    id = serializers.CharField()
    pipe = serializers.CharField(source="pipe_id")
    destination = serializers.CharField()
    cause = serializers.CharField()
    suspended = serializers.BooleanField()
    state = serializers.ChoiceField(Alert.State.choices)
    opened_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    count = serializers.IntegerField(
        help_text="Failures since it opened; a message that is redriven and fails again counts again. `lost`: messages "
        "lost. `failing`, `delayed` and `hot-partition`: most messages that waited at once. "
        "`numeric-drift`: fields. `rejecting`: most events that were rejected in ten minutes. "
        "`sequence-gap`: most gaps with missing numbers at once."
    )
    status = serializers.IntegerField(help_text="HTTP status of the failures; 0 if there is none or they differ.")
    fingerprint = serializers.CharField(
        help_text="Equal for responses that differ only in ids, numbers and times; `other` for an alert with the rest."
    )
    details = serializers.DictField(
        source="figures",
        help_text="`common`: fields that the failing messages share and other events lack. `failing` and `delayed`: "
        "`attempts` and `failed` of the last minutes, and `waiting` messages, the oldest since `oldest_at`. `lost`: "
        "the loss by `nodes` and `end_to_end` (`due`, `lost`, `percent`), and the first lost `messages`. "
        "`hot-partition`: the `partition`, its `share_percent` of the events, the `fair_percent` of an even share, "
        "events `per_s`, `lag` in messages, and the `keys` with the most of its events (`key`, `share_percent`), "
        "masked if the pipe masks them; if none could be read, `keys_unknown` says why. `numeric-drift`: the `fields` "
        "that changed most, each with `source`, `field`, `since`, `words`, its `stability_index` and `threshold`, the "
        "`basis` of the comparison, the numbers of `values` and `usual_values`, `quantiles` and `usual_quantiles` "
        "(`p10` to `p90`), and `ranges` (`low`, `high`, `percent`, `usual_percent`); `more` counts further fields. "
        "`rejecting`: the most frequent `rejections` of the last `window_min` minutes, each with `id`, `source`, "
        "`event_type`, `code`, `reason` and `detail`, `pointer`, `sender` and its number of `events`; `more` counts "
        "further ones. `sequence-gap`: the newest `gaps` of the last `window_min` minutes, each with `source`, `key` "
        "(masked if the pipe masks it), `summary`, how many numbers are `missing`, the `missing_numbers`, the numbers "
        "`previous` and `number` around it, and `position`, `bucket` and `at` of the event after it; `more` counts "
        "further ones.",
    )
    sample = serializers.DictField(
        help_text="One failure: the request, the response and a curl command; secrets masked."
    )
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
    target = serializers.CharField(
        help_text="Address or URL. Of chats and pagers, whose target is a secret: the host and the last characters."
    )
    is_active = serializers.BooleanField(
        help_text="False for an e-mail address that is not confirmed and gets no alerts."
    )
    confirmed_at = serializers.DateTimeField(
        allow_null=True, help_text="Null for other kinds, which need no confirmation."
    )
    confirmation_asked_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the newest request for a confirmation e-mail."
    )
    test_due_at = serializers.DateTimeField(
        allow_null=True, help_text="Set while a test message is being sent; null once it has its result."
    )
    tested_at = serializers.DateTimeField(
        allow_null=True, help_text="When the newest test message was accepted or failed; null while it is being sent."
    )
    test_error = serializers.CharField(help_text="Why the newest test message failed; empty if it was accepted.")
    created_at = serializers.DateTimeField()


class NewChannelOut(ChannelOut):
    """A new channel. The `secret` of a webhook is returned only here; it is empty for other kinds."""

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
